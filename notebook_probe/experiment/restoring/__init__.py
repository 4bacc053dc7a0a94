"""Start of a training: five rules, of which the first that applies counts.

::

    do_restore? ─▶ own place ─▶ from_ckpt ─▶ another place, by query ─▶ fresh
"""

from notebook_probe.experiment.restoring.restore import Restored, restore

__all__ = ["Restored", "restore"]
