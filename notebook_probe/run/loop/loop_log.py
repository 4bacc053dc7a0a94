"""Logging of the training loop: each number goes to its step or state."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Set
from typing import Any, TypeVar, get_args

from torch import Tensor

from notebook_probe.errors import QuantityError, ReplacedWarning
from notebook_probe.probes.observer import Observer
from notebook_probe.probes.reading.closed_steps import ClosedSteps
from notebook_probe.probes.step.frame import StepFrame
from notebook_probe.probes.step.probe import PhaseName
from notebook_probe.quantities.reduce.stat import Number
from notebook_probe.record.format.loss_names import (
    BACKWARD_LOSS,
    LOSS,
    LOSS_NAMES,
    loss_name,
)
from notebook_probe.record.format.schema import module_label
from notebook_probe.run.backfill import PastSteps
from notebook_probe.run.loop.series_owners import SeriesOwners
from notebook_probe.run.rows.row_keeper import RowKeeper

__all__ = ["LoopLog"]

FEW = 4
"""More names are not written out."""

GIVEN_LOSSES = frozenset(LOSS_NAMES) - {BACKWARD_LOSS}
"""Names under which a loop logs the loss of a step; the other one is measured."""

PHASES = get_args(PhaseName)

Scalars = Mapping[str, Number]
NONE: Set[Any] = frozenset()
Key = TypeVar("Key", str, tuple[str, str])


class LoopLog:
    """Accept what the loop logs.

    Parameters
    ----------
    rows : RowKeeper
    steps : ClosedSteps
    observer : Observer
    past : PastSteps
    """

    def __init__(
        self, rows: RowKeeper, steps: ClosedSteps, observer: Observer, past: PastSteps
    ) -> None:
        self._rows, self._steps, self._observer, self._past = rows, steps, observer, past
        self._last: dict[str, int] = {}  # name -> step of the last state it was logged of
        self._after: tuple[tuple[int, int], set[Any]] = (-1, 0), set()
        """A step, how many of its updates are over, and what was logged since the last of them."""
        self._warned: set[str] = set()
        self._owners = SeriesOwners(self)
        self._loss_names: set[str] = set()
        """Names among `GIVEN_LOSSES` that were logged of steps so far."""
        self._loss_step = -1

    def log(
        self, scalars: Scalars, on_device: bool, phase: PhaseName, collector: object | None = None
    ) -> None:
        """Keep numbers of the step that was trained, or of the state that is evaluated.

        With ``on_device`` some are tensors. A ``collector`` gave them if it is not the loop.

        Raises
        ------
        QuantityError
            For another phase, and a name that cannot be a variable's.
        """
        if phase not in PHASES:
            raise QuantityError(f"log(phase={phase!r}); allowed: 'training', 'eval'")
        of_state = phase == "eval"
        past = self._observer.evaluation.frame if self._observer.phase.is_past else None
        if past is not None:
            self._log_of_past(past.step, scalars, on_device, of_state)
            return
        if (collector is not None or self._owners.has_collectors) and not of_state:
            scalars = self._owners.named(scalars, collector)
        if BACKWARD_LOSS in scalars and self._observer.updates.loss.listens:
            self._rows.declare_losses()
        new = self._rows.declare_scalars(scalars, of_state)
        if new and collector is None and not of_state:
            self._owners.claim(new)
        if of_state:
            self._log_of_state(scalars, on_device)
        else:
            self._log_of_step(scalars, on_device)

    def log_array(self, name: str, module: str, array: Any) -> None:
        """Keep an array, which is a copy, of the step that was trained.

        Raises
        ------
        QuantityError, UnknownNameError
            The value cannot be recorded, because of its name, module or shape.
        RuntimeError
            While a passed step is evaluated.
        """
        if self._observer.phase.is_past:
            raise RuntimeError(f"log_array({name!r}) inside at_step: of passed steps numbers only")
        label = module_label(module)
        self._rows.declare_array(name, label, tuple(array.shape))
        frame, key = self._training_frame(), (label, name)
        early = self._steps.apart.arrays(frame.step) & {key}
        if self._of_next(frame, {key}, early):
            frame = self._steps.apart.before(frame.step + 1)
        if key in frame.arrays.keys() | self._steps.apart.arrays(frame.step):
            self._warn_of_array(name, frame.step)
        frame.arrays[key] = array
        frame.on_device |= isinstance(array, Tensor)

    def _log_of_step(self, scalars: Scalars, on_device: bool) -> None:
        frame = self._training_frame()
        early = self._steps.apart.names(frame.step, scalars.keys())
        if later := self._of_next(frame, scalars.keys(), early):
            to_come = {name: value for name, value in scalars.items() if name in later}
            scalars = {name: value for name, value in scalars.items() if name not in later}
            following = self._steps.apart.before(frame.step + 1)
            there = self._steps.apart.names(following.step, later)
            self._warn(self._known(following, to_come, there), following.step)
            self._put_of_step(following, to_come, on_device)
        if known := self._known(frame, scalars, early):
            self._warn(known, frame.step)
        self._put_of_step(frame, scalars, on_device)

    def _put_of_step(self, frame: StepFrame, scalars: Scalars, on_device: bool) -> None:
        frame.scalars.update(scalars)
        frame.on_device |= on_device
        if frame.recorded_beside:
            frame.recorded_beside -= scalars.keys()
        self._show_loss(frame, scalars)

    def _log_of_past(self, step: int, scalars: Scalars, on_device: bool, of_state: bool) -> None:
        """Write over what a passed step has; a name that is none of steps is one of states."""
        of_steps = set() if of_state else self._rows.are_of_steps(scalars)
        for is_of_state in (False, True):
            some = {
                name: scalars[name] for name in scalars if (name not in of_steps) == is_of_state
            }
            if some:
                self._rows.declare_scalars(some, is_of_state)
                frame = StepFrame(step)
                frame.of_state = is_of_state
                _put(frame, some, on_device)
                self._past.keep(frame)

    def _of_next(self, frame: StepFrame, keys: Set[Key], early: Set[Key]) -> Set[Key]:
        """Return the names whose value belongs to the next step.

        A step has one of each: what is logged after its update that was logged before its forward,
        or once already after the update, was logged before the next forward.
        """
        observer = self._observer
        clock = observer.clock
        if not clock.stepped or clock.explicit or frame is not observer.training.frame:
            return NONE
        now, before = (frame.step, len(clock.stepped)), self._after
        if before[0] != now:
            self._after = now, {*keys}
            return early
        later = early | (keys & before[1])
        before[1].update(keys)
        return later

    def _show_loss(self, frame: StepFrame, scalars: Scalars) -> None:
        """Pass the loss of a step to quantities, whichever usual name it is logged under.

        If it is logged rarely, such as the mean of an epoch, they read `backward_loss`, which is
        recorded unless the loop logs a loss of nearly every step.
        """
        if GIVEN_LOSSES.isdisjoint(scalars):
            return
        self._loss_names |= GIVEN_LOSSES & scalars.keys()
        name = loss_name(self._loss_names)
        if name not in scalars:
            return
        loss = self._observer.updates.loss
        if frame.step != self._loss_step:
            self._loss_step = frame.step
            loss.n_logged += 1
        if loss.is_given:
            frame.loss = None  # that of this step is known
        if LOSS not in scalars and (loss.is_logged or LOSS not in frame.scalars):
            frame.scalars[LOSS] = scalars[name]
            frame.recorded_beside |= {LOSS}

    def _log_of_state(self, scalars: Scalars, on_device: bool) -> None:
        step = self._observer.clock.upcoming
        self._warn([name for name in scalars if self._last.get(name) == step], step)
        self._last |= dict.fromkeys(scalars, step)
        if step > max(self._steps.apart.last_state, self._rows.last_state):
            _put(self._steps.of_state(step), scalars, on_device)
        else:  # its row has been recorded, by an earlier cell perhaps
            frame = StepFrame(step)
            frame.of_state = True
            _put(frame, scalars, on_device)
            self._past.keep(frame)
        self._show(scalars, on_device)

    def _show(self, scalars: Scalars, on_device: bool) -> None:
        """Pass logged values of a state to quantities of the step, such as `train_eval_gap`.

        A loss of a state is not the step's loss.
        """
        frame = self._training_frame()
        of_step = frame.scalars.keys() - frame.recorded_beside | {LOSS}
        shown = {name: value for name, value in scalars.items() if name not in of_step}
        _put(frame, shown, on_device)
        frame.recorded_beside |= shown.keys()

    def _training_frame(self) -> StepFrame:
        """Return the frame of the last trained step, or else of the next."""
        frame, clock = self._observer.training.frame, self._observer.clock
        if frame is not None and frame.is_over:
            return self._steps.apart.before(frame.step + 1)
        is_in_doubt = clock.has_raised or clock.begun is not None
        if frame is None or (is_in_doubt and clock.awaits_another_try):
            return self._steps.apart.before(clock.step)
        return frame

    def _known(self, frame: StepFrame, scalars: Scalars, early: Set[str]) -> list[str]:
        """Return the names that have a value at the step of a frame, or were logged ``early``."""
        known = frame.logged(scalars.keys()) | early
        return [name for name in scalars if name in known] if known else []

    def _warn(self, names: list[str], step: int) -> None:
        """Warn of names whose value is replaced, once for each."""
        new = [name for name in names if name not in self._warned]
        self._warned.update(new)
        if new:
            warnings.warn(_advice(new, step), ReplacedWarning, stacklevel=5)

    def _warn_of_array(self, name: str, step: int) -> None:
        if name not in self._warned:
            self._warned.add(name)
            warnings.warn(
                f"log_array({name!r}): step {step} has an array of this name already, which is "
                f"replaced; give different arrays different names or modules",
                ReplacedWarning,
                stacklevel=4,
            )


def _put(frame: StepFrame, scalars: Scalars, on_device: bool) -> None:
    frame.scalars.update(scalars)
    frame.on_device |= on_device


def _advice(names: list[str], step: int) -> str:
    listed = ", ".join(names[:FEW]) + (f" and {len(names) - FEW} more" if len(names) > FEW else "")
    return (
        f"log({listed}): step {step} has a value of this name already, which is replaced. "
        f"A number of an evaluation is of a state: run.log({_typed(names[0])}, phase='eval'); of "
        f"micro-batches log one number per optimizer step, as an update that a gradient scaler "
        f"skips is none; give different numbers different names"
    )


def _typed(name: str) -> str:
    """Return a name as it is typed in the call."""
    return f"{name}=..." if name.isidentifier() else f"{{{name!r}: ...}}"
