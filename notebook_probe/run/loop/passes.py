"""Passes through the training data: where each begins, and how many samples a step takes."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Protocol

from notebook_probe.record.format.notes import EPOCH, SAMPLES

__all__ = ["Pass", "Passes", "samples_per_batch"]

EVERY_ONE = 128
"""So many passes are all noted; of twice as many every second one, and so on."""


class Notes(Protocol):
    """Who keeps what happened at a step, with details for programs."""

    def event(self, step: int, kind: str, text: str, detail: str = "") -> None: ...


class Passes:
    """Notes passes in the record, as events: few, however long the training is.

    One that comes to no step, of a validation, is none. Of two that are drawn from by turns the
    one counts that began last.

    Parameters
    ----------
    notes : Notes
    step : callable
        The number of updates that are complete.
    """

    def __init__(self, notes: Notes, step: Callable[[], int]) -> None:
        self._notes, self.step = notes, step
        self._open: list[Pass] = []
        self._n_begun = 0
        self._noted = 0.0, 0.0  # samples of a batch, and of a step, as they were noted last
        self._over: Pass | None = None

    def begin(self, loader: object) -> Pass:
        """A loader is gone through, from its beginning or from where it was left."""
        if self._over is not None:  # now its last step is complete, too
            self._over.take()
            self._over = None
        begun = Pass(self, samples_per_batch(loader), is_new=not getattr(loader, "position", 0))
        self._open.append(begun)
        return begun

    def is_followed(self, one: Pass) -> bool:
        """It began last of those that are open."""
        return one is self._open[-1]

    def end(self, one: Pass) -> None:
        """Nothing more is drawn in it."""
        self._open.remove(one)

    def exhausted(self, one: Pass) -> None:
        """Its data has come to its end; the step of what was left over may follow."""
        self._over = one

    def is_told(self, per_batch: float) -> bool:
        """How many samples a step takes has been noted, of batches as large as these."""
        return per_batch == self._noted[0]

    def trained(self, one: Pass) -> None:
        """The first step of a pass is complete."""
        if not one.is_new:
            return
        number, self._n_begun = self._n_begun, self._n_begun + 1
        distance = 1 << max(0, (number // EVERY_ONE).bit_length() - 1)
        if number % distance == 0:
            told = json.dumps({"epoch": number})
            self._notes.event(one.first_step, EPOCH, f"epoch {number + 1} begins", told)

    def taken(self, one: Pass, per_batch: float, per_step: float) -> None:
        """So many samples a step are taken from the beginning of a pass on."""
        before, self._noted = self._noted[1], (per_batch, per_step)
        if per_step != before:
            told = json.dumps({"per_step": per_step})
            self._notes.event(one.first_step, SAMPLES, f"{per_step:g} samples a step", told)


class Pass:
    """One pass: counts what is drawn, and the steps that come of it."""

    def __init__(self, passes: Passes, per_batch: float | None, *, is_new: bool) -> None:
        self._passes, self._per_batch, self.is_new = passes, per_batch, is_new
        self.first_step = passes.step()
        self._n_drawn = 0
        self._has_trained = False

    def draw(self) -> None:
        """A batch is handed to the loop; what was drawn before has been used."""
        if self._n_drawn and not self._has_trained:
            self._look()
        self._n_drawn += 1

    def exhaust(self) -> None:
        """The data has come to its end: all that was drawn counts."""
        self._look()
        if self._has_trained:
            self._passes.exhausted(self)

    def close(self) -> None:
        """Nothing more is drawn."""
        if self._n_steps == 1:  # a loop that was to make a single step
            self._look()
        self._passes.end(self)

    def take(self) -> None:
        """Note how many samples a step takes, all in all."""
        per_batch, n_steps = self._per_batch, self._n_steps
        if per_batch is not None:
            self._passes.taken(self, per_batch, per_batch * self._n_drawn / n_steps)

    def _look(self) -> None:
        """Note what is known, once a step is complete."""
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
    """How many samples a batch has, on average over a pass; None where a loader does not tell.

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
