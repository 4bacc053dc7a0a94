"""What the training loop logs: each number to the step, or the state, that it belongs to."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any, get_args

from torch import Tensor

from notebook_probe.errors import QuantityError, ReplacedWarning
from notebook_probe.probes.observer import Observer
from notebook_probe.probes.reading.closed_steps import ClosedSteps
from notebook_probe.probes.step.frame import StepFrame
from notebook_probe.probes.step.probe import PhaseName
from notebook_probe.quantities.reduce.stat import Number
from notebook_probe.record.format.loss_names import LOSS, LOSS_NAMES, loss_name
from notebook_probe.record.format.schema import module_label
from notebook_probe.run.backfill import PastSteps
from notebook_probe.run.rows.row_keeper import RowKeeper

__all__ = ["LoopLog"]

FEW = 4
"""More names are not written out."""

Scalars = Mapping[str, Number]


class LoopLog:
    """Takes what the loop logs.

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
        self._warned: set[str] = set()
        self._loss_names: set[str] = set()
        """Those of `LOSS_NAMES` that were logged of steps so far."""

    def log(self, scalars: Scalars, on_device: bool, phase: PhaseName) -> None:
        """Keep numbers of the step that was trained, or of the state that is evaluated.

        With ``on_device`` some are tensors.

        Raises
        ------
        QuantityError
            For another phase, and a name that cannot be a variable's.
        """
        if phase not in get_args(PhaseName):
            raise QuantityError(f"log(phase={phase!r}); allowed: 'training', 'eval'")
        of_state = phase == "eval" and not self._observer.phase.is_past
        self._rows.declare_scalars(scalars, of_state)
        if of_state:
            self._log_of_state(scalars, on_device)
        else:
            self._log_of_step(scalars, on_device)

    def log_array(self, name: str, module: str, array: Any) -> None:
        """Keep an array, which is a copy, of the step that was trained.

        Raises
        ------
        QuantityError, UnknownNameError
            Where it cannot be recorded, by its name, module or shape.
        RuntimeError
            While a passed step is evaluated.
        """
        if self._observer.phase.is_past:
            raise RuntimeError(f"log_array({name!r}) inside at_step: of passed steps numbers only")
        label = module_label(module)
        self._rows.declare_array(name, label, tuple(array.shape))
        frame, key = self._training_frame(), (label, name)
        if key in frame.arrays.keys() | self._steps.arrays_early(frame.step):
            self._warn_of_array(name, frame.step)
        frame.arrays[key] = array
        frame.on_device |= isinstance(array, Tensor)

    def _log_of_step(self, scalars: Scalars, on_device: bool) -> None:
        observer = self._observer
        if observer.phase.is_past and observer.evaluation.frame is not None:
            _put(observer.evaluation.frame, scalars, on_device)  # to write over what is there
            return
        frame = self._training_frame()
        self._warn(self._known(frame, scalars), frame.step)
        _put(frame, scalars, on_device)
        if frame.recorded_beside:
            frame.recorded_beside -= scalars.keys()
        self._show_loss(frame, scalars)

    def _show_loss(self, frame: StepFrame, scalars: Scalars) -> None:
        """Let quantities read the loss of a step as such, by whatever usual name it is logged."""
        self._loss_names.update(name for name in LOSS_NAMES if name in scalars)
        if self._loss_names:  # what `backward()` is called on is of no interest any more
            self._observer.updates.loss.give_way()
            frame.loss = None
        name = loss_name(self._loss_names)
        if name in scalars and LOSS not in scalars:
            frame.scalars[LOSS] = scalars[name]
            frame.recorded_beside |= {LOSS}

    def _log_of_state(self, scalars: Scalars, on_device: bool) -> None:
        step = self._observer.clock.upcoming
        self._warn(self._known(self._training_frame(), scalars, step), step)
        self._last |= dict.fromkeys(scalars, step)
        if step > max(self._steps.last_state, self._rows.last_state):
            _put(self._steps.of_state(step), scalars, on_device)
        else:  # its row has been recorded, by an earlier cell perhaps
            frame = StepFrame(step)
            frame.of_state = True
            _put(frame, scalars, on_device)
            self._past.keep(frame)
        self._show(scalars, on_device)

    def _show(self, scalars: Scalars, on_device: bool) -> None:
        """Let quantities of the step, such as `train_eval_gap`, read what is logged of a state.

        A loss of a state is none of the step.
        """
        frame = self._training_frame()
        of_step = frame.scalars.keys() - frame.recorded_beside | {LOSS}
        shown = {name: value for name, value in scalars.items() if name not in of_step}
        _put(frame, shown, on_device)
        frame.recorded_beside |= shown.keys()

    def _training_frame(self) -> StepFrame:
        """That of the step which was trained last, or else of the next."""
        observer = self._observer
        return observer.frame or self._steps.between_steps(observer.clock.step)

    def _known(self, frame: StepFrame, scalars: Scalars, step: int | None = None) -> list[str]:
        """Names that have a value at a step, by default that of the frame."""
        step = frame.step if step is None else step
        names = scalars.keys()
        known = {name for name in names & self._last.keys() if self._last[name] == step}
        known |= self._steps.logged_early(step, names)
        if frame.step == step:
            known |= frame.logged(names)
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
                f"replaced; what differs has a name or a module of its own",
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
        f"skips is none; what differs has a name of its own"
    )


def _typed(name: str) -> str:
    """How one writes it in the call."""
    return f"{name}=..." if name.isidentifier() else f"{{{name!r}: ...}}"
