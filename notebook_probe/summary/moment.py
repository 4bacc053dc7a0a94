"""Interface of a collector's items, and the moments at which they are called."""

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
from notebook_probe.summary.budget import ByteCounter
from notebook_probe.summary.outlook import Units, UnitSchedule
from notebook_probe.summary.settings import CollectorSettings
from notebook_probe.summary.units import NOTHING, Due
from notebook_probe.train.data.dataset import Dataset
from notebook_probe.train.loop.loop import Loop

__all__ = ["FLOAT", "Item", "Moment"]

FLOAT = 4
"""Bytes of a number in the record."""


@dataclass(frozen=True, slots=True)
class Moment:
    """Moment of a training: its step, and the objects that items read.

    Attributes
    ----------
    step : int
        Step of the record: updates completed before its batch.
    unit : int or None
        The unit that ends with this step, counted from 1; None within an epoch.
    due : Due
    run : Run
        Run that records everything.
    settings : CollectorSettings
    units : Units
        Returns what is due at any step.
    budget : ByteCounter
        Budget of each stream.
    schedule, tensor_schedule : UnitSchedule
        The steps at which data, and tensors, are due, for probes.
    loop : Loop or None
        None where the loop is the user's own.
    data : Dataset or None
        Training data, if known.
    loss : Any
        Loss of this step, or its outputs; a number or a tensor in a `Loop`.
    is_over : bool
        True if the run had closed this step before it was known to be due.
    """

    step: int
    unit: int | None
    run: Run
    settings: CollectorSettings
    units: Units
    budget: ByteCounter
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
        return self.run.controls.model

    @property
    def optimizers(self) -> list[Optimizer]:
        """Known optimizers of the model."""
        return self.run.controls.optimizers if self.loop is None else [self.loop.trainer.optimizer]

    def log(self, scalars: Mapping[str, Any]) -> bool:
        """Record numbers, one element each; False where there is no room for them."""
        if not self.budget.takes("scalars", FLOAT * len(scalars)):
            return False
        # The row of that step is closed, so that the value is written into it afterwards.
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
    """Base class of collected items; each method does nothing unless overridden.

    All are called on the training thread. An item that raises causes a warning and is not called
    again: training continues.

    Attributes
    ----------
    name : str
        Name for the user: the key of ``collect_specified_data``.
    is_off : bool
        True after the item has failed.
    dropped : Counter
        Values that could not be stored, as text, and how often.
    """

    name = ""

    def __init__(self) -> None:
        self.is_off = False
        self.dropped: Counter[str] = Counter()

    def start(self, moment: Moment) -> None:
        """Handle the start or continuation of training: ``moment.step`` is not trained yet."""

    def begin(self, moment: Moment) -> None:
        """Handle the first trained step of this process; called once."""

    def collect(self, moment: Moment) -> None:
        """Collect what is due: anything logged to ``moment.run`` is of ``moment.step``.

        In a `Loop` the step has just been trained; in a user's own loop it is about to be.
        """

    def given(self, moment: Moment) -> None:
        """Handle ``moment.loss`` of a step with due data; recorded as in `collect`."""

    def awaits(self, step: int) -> bool:
        """Return whether `stepped` is to be called after a step; called for each step."""
        return True

    def stepped(self, moment: Moment) -> None:
        """Handle a trained step, due or not; the model is at state ``moment.step + 1``."""

    def epoch_ended(self, moment: Moment) -> None:
        """Handle a trained epoch, ``moment.loop.epoch`` in all; only in a `Loop`."""

    def evaluated(self, moment: Moment, metrics: Mapping[str, float]) -> None:
        """Handle an evaluation of the loop, with the metrics as recorded."""

    def end(self, moment: Moment) -> None:
        """Handle the end of training for now, whatever its cause."""

    def remove(self) -> None:
        """Remove everything that was added to the model; nothing is collected any more."""

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
