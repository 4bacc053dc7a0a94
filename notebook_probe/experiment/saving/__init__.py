"""Saving of units: which, and how.

::

    k, frequencies ─▶ due ─▶ saver ─▶ record (numbers at state k), checkpoints/, recent/
                                            └─▶ units: what there is of them, read again
"""

from notebook_probe.experiment.saving.saver import Saver
from notebook_probe.experiment.saving.units import SavedUnit, read_units

__all__ = ["SavedUnit", "Saver", "read_units"]
