"""Passes through the training data: where each begins, and how many samples a step takes."""

from __future__ import annotations

import json
from collections.abc import Callable

from notebook_probe.probes.step.sink import EventSink
from notebook_probe.record.format.notes import EPOCH, SAMPLES

__all__ = ["DataPass", "DataPasses", "samples_per_batch"]

EVERY_ONE = 128
"""Number of passes that are all noted; with twice as many every second one, and so on."""


class DataPasses:
    """Notes passes in the record, as events: few, however long the training is.

    A pass without a step, such as a validation, does not count. If two passes are drawn from in
    turns, the one that started last counts.

    Parameters
    ----------
    notes : EventSink
    step : callable
        The number of updates that are complete.
    """

    def __init__(self, notes: EventSink, step: Callable[[], int]) -> None:
        self._notes, self.step = notes, step
        self._open: list[DataPass] = []
        self._n_begun = 0
        self._noted = 0.0, 0.0  # samples of a batch, and of a step, as they were noted last
        self._over: DataPass | None = None

    def begin(self, loader: object) -> DataPass:
        """Start a pass over a loader, from its start or from where it was left."""
        if self._over is not None:  # now its last step is complete, too
            self._over.take()
            self._over = None
        begun = DataPass(self, samples_per_batch(loader), is_new=not getattr(loader, "position", 0))
        self._open.append(begun)
        return begun

    def is_followed(self, one: DataPass) -> bool:
        """Return whether it is the innermost open pass."""
        return one is self._open[-1]

    def end(self, one: DataPass) -> None:
        """End a pass: nothing more is drawn in it."""
        self._open.remove(one)

    def exhausted(self, one: DataPass) -> None:
        """Note the end of a pass's data; the step of the remaining batches may follow."""
        self._over = one

    def is_told(self, per_batch: float) -> bool:
        """Return whether the samples per step were noted for batches of this size."""
        return per_batch == self._noted[0]

    def trained(self, one: DataPass) -> None:
        """Note the first complete step of a pass."""
        if not one.is_new:
            return
        number, self._n_begun = self._n_begun, self._n_begun + 1
        distance = 1 << max(0, (number // EVERY_ONE).bit_length() - 1)
        if number % distance == 0:
            told = json.dumps({"epoch": number})
            self._notes.event(one.first_step, EPOCH, f"epoch {number + 1} begins", told)

    def taken(self, one: DataPass, per_batch: float, per_step: float) -> None:
        """Note the samples per step, valid from the start of a pass."""
        before, self._noted = self._noted[1], (per_batch, per_step)
        if per_step != before:
            told = json.dumps({"per_step": per_step})
            self._notes.event(one.first_step, SAMPLES, f"{per_step:g} samples a step", told)


class DataPass:
    """One pass: counts batches drawn and steps trained."""

    def __init__(self, passes: DataPasses, per_batch: float | None, *, is_new: bool) -> None:
        self._passes, self._per_batch, self.is_new = passes, per_batch, is_new
        self.first_step = passes.step()
        self._n_drawn = 0
        self._has_trained = False

    def draw(self) -> None:
        """Count a batch for the loop; earlier ones have been used."""
        if self._n_drawn and not self._has_trained:
            self._look()
        self._n_drawn += 1

    def exhaust(self) -> None:
        """Note the end of the data: all drawn batches count."""
        self._look()
        if self._has_trained:
            self._passes.exhausted(self)

    def close(self) -> None:
        """End the pass: nothing more is drawn."""
        if self._n_steps == 1:  # a loop that was to make a single step
            self._look()
        self._passes.end(self)

    def take(self) -> None:
        """Note how many samples a step takes, all in all."""
        per_batch, n_steps = self._per_batch, self._n_steps
        if per_batch is not None:
            self._passes.taken(self, per_batch, per_batch * self._n_drawn / n_steps)

    def _look(self) -> None:
        """Note the counts of a complete step."""
        if self._has_trained or not (self._n_steps and self._passes.is_followed(self)):
            return
        self._has_trained = True
        self._passes.trained(self)
        if self._per_batch is not None and not self._passes.is_told(self._per_batch):
            self.take()  # else when the pass is over, and all of it is known

    @property
    def _n_steps(self) -> int:
        """Steps that are complete in it."""
        return self._passes.step() - self.first_step


def samples_per_batch(loader: object) -> float | None:
    """Return the average samples per batch over a pass; None if the loader does not say.

    Examples
    --------
    >>> from torch.utils.data import DataLoader
    >>> samples_per_batch(DataLoader(range(10), batch_size=4)), samples_per_batch([1, 2])
    (3.3333333333333335, None)
    """
    own = getattr(loader, "samples_per_batch", None)
    if own is not None:
        return float(own)
    size = getattr(loader, "batch_size", None)
    if not isinstance(size, int) or isinstance(size, bool) or size < 1:
        return None
    try:
        n_samples, n_batches = len(loader.sampler), len(loader)  # type: ignore[attr-defined,arg-type]
    except Exception:  # a stream, or a loader of one's own
        return float(size)
    whole = getattr(loader, "drop_last", False) or not n_batches
    return float(size) if whole else n_samples / n_batches
