"""What a collector asks its items for, and when."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from torch import Tensor, nn
from torch.optim import Optimizer

from notebook_probe.errors import ClosedRunError, RecordWarning
from notebook_probe.run.run import Run
from notebook_probe.summary.budget import Budget
from notebook_probe.summary.outlook import Units, UnitSchedule
from notebook_probe.summary.settings import Settings
from notebook_probe.summary.units import NOTHING, Due
from notebook_probe.train.data.dataset import Dataset
from notebook_probe.train.loop.loop import Loop

__all__ = ["FLOAT", "Item", "Moment"]

FLOAT = 4
"""Bytes of a number in the record."""


@dataclass(frozen=True, slots=True)
class Moment:
    """A moment of a training: where it is, and what there is of it.

    Attributes
    ----------
    step : int
        Of the record: updates completed before its batch.
    unit : int or None
        Counted from 1, the one that ends with this step; None in the midst of an epoch.
    due : Due
    run : Run
        Whose record everything goes into.
    settings : Settings
    units : Units
        Says of any step what is due at it.
    budget : Budget
        What each stream may come to.
    schedule, tensor_schedule : UnitSchedule
        The steps at which data, and tensors, are due, for probes.
    loop : Loop or None
        None where the loop is the user's own.
    data : Dataset or None
        What is trained on, as far as it is known.
    loss : Any
        What this step has given; a number or a tensor in a `Loop`.
    is_over : bool
        The run has closed this step, as it was known too late that something is due at it.
    """

    step: int
    unit: int | None
    run: Run
    settings: Settings
    units: Units
    budget: Budget
    schedule: UnitSchedule
    tensor_schedule: UnitSchedule
    due: Due = NOTHING
    loop: Loop | None = None
    data: Dataset | None = None
    loss: Any = None
    is_over: bool = False

    @property
    def model(self) -> nn.Module:
        """The watched one, without wrappers."""
        return self.run.watched_model

    @property
    def optimizers(self) -> list[Optimizer]:
        """Those that train the model, as far as they are known."""
        return self.run.optimizers if self.loop is None else [self.loop.trainer.optimizer]

    def log(self, scalars: Mapping[str, Any]) -> bool:
        """Record numbers, one element each; False where there is no room for them."""
        if not self.budget.takes("scalars", FLOAT * len(scalars)):
            return False
        if self.is_over:
            for name, value in scalars.items():
                self.run.backfill("", name, self.step, float(value))
        else:
            self.run.log(scalars)
        return True

    def log_array(self, name: str, array: Tensor) -> bool:
        """Record an array; False where there is no room for it."""
        if not self.budget.takes(name, FLOAT * array.numel()):
            return False
        self.run.log_array(name, array)
        return True


class Item:
    """Something that is collected; each method does nothing unless it is overridden.

    All are called on the thread that trains. One that raises is told of in a warning, and its item
    is asked no more: the training goes on.

    Attributes
    ----------
    name : str
        As its user knows it: the key of ``collect_specified_data``.
    is_off : bool
        It has failed.
    dropped : Counter
        What could not be kept, in words, and how often.
    """

    name = ""

    def __init__(self) -> None:
        self.is_off = False
        self.dropped: Counter[str] = Counter()

    def start(self, moment: Moment) -> None:
        """A training begins, or goes on after a pause: nothing of ``moment.step`` is done yet."""

    def begin(self, moment: Moment) -> None:
        """The first step of this process has been trained; once."""

    def collect(self, moment: Moment) -> None:
        """Something is due: what is logged to ``moment.run`` now is recorded at ``moment.step``.

        In a `Loop` the step has just been trained; in a loop of the user's own it is about to be.
        """

    def given(self, moment: Moment) -> None:
        """Data is due, and the step has given ``moment.loss``; recorded as in `collect`."""

    def awaits(self, step: int) -> bool:
        """Tell whether `stepped` is to be called once a step has been trained; asked of each."""
        return True

    def stepped(self, moment: Moment) -> None:
        """A step has been trained, due or not; the model is at state ``moment.step + 1``."""

    def epoch_ended(self, moment: Moment) -> None:
        """An epoch has been trained, ``moment.loop.epoch`` in all; of a `Loop` alone."""

    def evaluated(self, moment: Moment, metrics: Mapping[str, float]) -> None:
        """The loop has evaluated its model, with these numbers as they are recorded."""

    def end(self, moment: Moment) -> None:
        """No step follows for now, however the training has ended."""

    def remove(self) -> None:
        """Take off whatever was put on the model; nothing is collected any more."""

    def attempt(self, act: Callable[[], None]) -> None:
        """Do it; of an error a warning tells, and the item is off."""
        try:
            act()
        except ClosedRunError:  # by its user, or another thread
            self.is_off = True
        except Exception as error:
            self.is_off = True
            warnings.warn(
                f"{self.name} is off for this training: {error}", RecordWarning, stacklevel=2
            )
