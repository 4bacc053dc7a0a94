"""From where a training goes on: five rules, the first that applies.

::

    do_restore? ─▶ own place ─▶ from_ckpt ─▶ another place, by query ─▶ fresh
"""

from notebook_probe.experiment.restoring.restore import Restored, restore

__all__ = ["Restored", "restore"]
