"""Outlook of a loop: the steps of an epoch, and the end of the training."""

from __future__ import annotations

from notebook_probe.summary.outlook import Outlook
from notebook_probe.train.data.dataset import Dataset
from notebook_probe.train.loop.loop import Loop

__all__ = ["LoopOutlook"]


class LoopOutlook:
    """Looks ahead in a loop, epoch by epoch.

    Attributes
    ----------
    shift : int
        Difference between the record's steps and the loop's.
    """

    def __init__(self) -> None:
        self.shift = 0
        self._data: Dataset | None = None
        self._began = 0
        self._length: int | None = None
        """Steps of the epoch before, where the data does not tell."""

    def begin(self, loop: Loop, data: Dataset, shift: int) -> Outlook:
        """Start a run of the loop, and return its outlook."""
        if data is not self._data:
            self._data, self._length = data, None
        self.shift, self._began = shift, loop.loop_step
        return self._ahead(loop)

    def ended(self, loop: Loop) -> Outlook:
        """Return the outlook at the end of an epoch, which the step before completed."""
        return Outlook(None, loop.epoch, loop.loop_step - 1 + self.shift)

    def next(self, loop: Loop) -> Outlook:
        """Return the outlook for the next epoch."""
        self._length, self._began = loop.loop_step - self._began, loop.loop_step
        return self._ahead(loop)

    def _ahead(self, loop: Loop) -> Outlook:
        whole, left = self._steps_of_epoch(loop)
        end = loop.end_step if loop.end_step >= loop.loop_step else None
        n_epochs = None
        if end is not None and whole:
            n_epochs = loop.epoch + -(-(end - loop.loop_step + whole - left) // whole)
        return Outlook(
            end_step=end,  # units of steps are the loop's
            epoch=loop.epoch + 1,
            epoch_end=loop.loop_step + left - 1 + self.shift if whole else None,
            n_epochs=n_epochs,
            shift=self.shift,
        )

    def _steps_of_epoch(self, loop: Loop) -> tuple[int, int]:
        """Return the steps of a whole epoch and the remaining steps; 0 if unknown."""
        data, size = self._data, loop.trainer.accumulate
        if data is None or data.length is None:
            return self._length or 0, self._length or 0
        # Data that is continued in the middle of a pass has fewer batches left.
        return -(-data.length // size), -(-(data.length - data.position) // size)
