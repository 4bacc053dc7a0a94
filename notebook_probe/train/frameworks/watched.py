"""What somebody else's trainer tells the run that records it."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from numbers import Real
from typing import Any

from torch import Tensor, nn

from notebook_probe.errors import QuantityError, TrainingStopped
from notebook_probe.model.unwrapped import unwrap
from notebook_probe.run.run import Run
from notebook_probe.run.watch import watch
from notebook_probe.schedules.span import UNKNOWN
from notebook_probe.train.loop.recording import Recording

__all__ = ["Watched"]


class Watched:
    """A training by a framework, and the run that records it, if there is one in this process.

    Parameters
    ----------
    run : Run, optional
        One that watches already; else `begin` watches the model.
    options : mapping
        Of `watch`. With ``rank=None`` the main process alone watches, and the others do nothing.

    Raises
    ------
    TypeError
        For both of them, and for anything but a run.
    """

    def __init__(self, run: Run | None, options: Mapping[str, Any]) -> None:
        if run is not None and not isinstance(run, Run):
            raise TypeError(f"run={type(run).__name__}: what notebook_probe.watch returns")
        if run is not None and options:
            raise TypeError(f"options of watch, {', '.join(options)}, for a run that watches")
        self._options = dict(options)
        self._watches_itself = run is None
        self._recording = None if run is None else Recording(run)
        self._refused: set[str] = set()

    @property
    def run(self) -> Run | None:
        """The run; None before it begins, and where nothing is recorded."""
        return None if self._recording is None else self._recording.run

    @property
    def is_recording(self) -> bool:
        return self.run is not None and not self.run.closed

    @property
    def step(self) -> int:
        """Number of updates completed; 0 where nothing is recorded."""
        return self._run.status_head().step if self.is_recording else 0

    def begin(
        self, model: nn.Module, done: int = 0, total: int = UNKNOWN, *, is_main: bool = True
    ) -> None:
        """A training begins: of ``total`` updates so many are ``done`` already."""
        if self._watches_itself and not self._watches(model):
            if self._options.get("rank", "auto") is None and not is_main:
                return
            self._recording = Recording(watch(model, **self._options_at(done)))
        if total != UNKNOWN:  # else what the user may have said holds
            self.expect(done, total)

    def expect(self, done: int, total: int) -> None:
        """Say how far the training goes, in updates, of which so many are done."""
        if self.is_recording:
            end = self.step + max(total - done, 0)
            self._run.expect(start_step=self.step, end_step=end)

    def expects(self, epoch: int) -> None:
        """An epoch, counted from 0, begins; whoever draws its batches notes it."""
        if self.is_recording:
            self._run.expect(epoch=epoch)

    def epoch(self, number: int) -> None:
        """An epoch, counted from 0, begins."""
        if self.is_recording:
            self.expects(number)
            self._run.note("epoch", f"epoch {number + 1} begins", epoch=number)

    def trained(self, values: Mapping[str, Any]) -> None:
        """A step is over, before its boundary is passed; what is no number is left out."""
        self._log(values, "training")

    def evaluated(self, values: Mapping[str, Any]) -> None:
        """The state between two steps has these numbers; what is no number is left out."""
        self._log(values, "eval")

    def annotate(self, values: Mapping[str, Any]) -> None:
        """The whole training has these numbers; what is no number is left out."""
        if self.is_recording:
            numbers = {name: float(value) for name, value in values.items() if _is_number(value)}
            self._run.annotate(**numbers)

    def boundary(self) -> None:
        """Let Pause, Step and Stop act; raises TrainingStopped."""
        if self._recording is not None:
            self._recording.boundary()

    def is_stopped(self) -> bool:
        """As `boundary`, for trainers that are told to stop."""
        try:
            self.boundary()
        except TrainingStopped:
            return True
        return False

    def ended(self, error: BaseException | None = None) -> None:
        """No step follows for now; the run stays open, to be looked at."""
        if self._recording is not None:
            self._recording.ended(error)

    # ---------------------------------------------------------------- inside

    @property
    def _run(self) -> Run:
        assert self.run is not None
        return self.run

    def _watches(self, model: nn.Module) -> bool:
        return self.is_recording and self._run.watches(unwrap(model))

    def _options_at(self, done: int) -> dict[str, Any]:
        """A training that goes on from a checkpoint goes on in its record, if it is named."""
        is_resumed = done > 0 and self._options.get("store") is not None
        return {"resume": done, **self._options} if is_resumed else self._options

    def _log(self, values: Mapping[str, Any], phase: Any) -> None:
        if not self.is_recording:
            return
        for name, value in values.items():
            if name not in self._refused and _is_number(value):
                try:
                    self._run.log({name: value}, phase=phase)
                except QuantityError as error:  # a name of theirs must not end their training
                    self._refused.add(name)
                    warnings.warn(f"not recorded: {error}", stacklevel=3)


def _is_number(value: Any) -> bool:
    if isinstance(value, Tensor):
        return value.numel() == 1
    return isinstance(value, Real)
