"""What the training loop logs: each number to the step, or the state, that it belongs to."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import get_args

from torch import Tensor

from notebook_probe.errors import QuantityError, ReplacedWarning
from notebook_probe.probes.observer import Observer
from notebook_probe.probes.reading.closed_steps import ClosedSteps
from notebook_probe.probes.step.frame import StepFrame
from notebook_probe.probes.step.probe import PhaseName
from notebook_probe.quantities.reduce.stat import Number
from notebook_probe.run.backfill import PastSteps
from notebook_probe.run.rows.row_keeper import RowKeeper

__all__ = ["ScalarLog"]

Scalars = Mapping[str, Number]


class ScalarLog:
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
        self._last: dict[str, int] = {}
        self._warned: set[str] = set()

    def log(self, scalars: Scalars, phase: PhaseName) -> None:
        """Keep numbers of the step that was trained, or of the state that is evaluated.

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
            self._log_of_state(scalars)
        else:
            self._log_of_step(scalars)

    def _log_of_step(self, scalars: Scalars) -> None:
        observer = self._observer
        if observer.phase.is_past and observer.evaluation.frame is not None:
            _put(observer.evaluation.frame, scalars)  # to write over what is there
            return
        frame = self._training_frame()
        self._note(scalars, frame.step)
        _put(frame, scalars)
        frame.recorded_beside -= scalars.keys()

    def _log_of_state(self, scalars: Scalars) -> None:
        step = self._observer.clock.upcoming
        self._note(scalars, step)
        if step > max(self._steps.last_state, self._rows.last_state):
            _put(self._steps.of_state(step), scalars)
        else:  # its row has been recorded, by an earlier cell perhaps
            frame = StepFrame(step)
            frame.of_state = True
            _put(frame, scalars)
            self._past.keep(frame)
        self._show(scalars)

    def _show(self, scalars: Scalars) -> None:
        """Let quantities of the step, such as `train_eval_gap`, read what is logged of a state."""
        frame = self._training_frame()
        of_step = frame.scalars.keys() - frame.recorded_beside
        shown = {name: value for name, value in scalars.items() if name not in of_step}
        _put(frame, shown)
        frame.recorded_beside |= shown.keys()

    def _training_frame(self) -> StepFrame:
        """That of the step which was trained last, or else of the next."""
        observer = self._observer
        return observer.frame or self._steps.between_steps(observer.clock.step)

    def _note(self, scalars: Scalars, step: int) -> None:
        """Warn of names that have a value at this step, once for each."""
        again = [name for name in scalars if self._last.get(name) == step]
        self._last |= dict.fromkeys(scalars, step)
        new = [name for name in again if name not in self._warned]
        self._warned.update(new)
        if new:
            warnings.warn(_advice(new, step), ReplacedWarning, stacklevel=5)


def _put(frame: StepFrame, scalars: Scalars) -> None:
    frame.scalars.update(scalars)
    frame.on_device |= any(isinstance(value, Tensor) for value in scalars.values())


def _advice(names: list[str], step: int) -> str:
    listed = ", ".join(names)
    return (
        f"log({listed}): step {step} has a value of this name already, which is replaced. "
        f"A number of an evaluation is of a state: run.log({names[0]}=..., phase='eval'); of "
        f"micro-batches log one number per optimizer step; what differs has a name of its own"
    )
