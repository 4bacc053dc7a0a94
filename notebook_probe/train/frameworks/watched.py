"""Reports of other libraries' trainers to the run that records."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from inspect import signature
from numbers import Real
from typing import Any

from torch import Tensor, nn

from notebook_probe.errors import QuantityError, RecordWarning, TrainingStopped, near
from notebook_probe.model.unwrapped import unwrap
from notebook_probe.run.begin.earlier import run_of
from notebook_probe.run.run import Run
from notebook_probe.run.watch import watch
from notebook_probe.schedules.span import UNKNOWN
from notebook_probe.train.frameworks.configuration import recordable
from notebook_probe.train.loop.recording import Recording

__all__ = ["Watched", "harmless"]

OPTIONS = [*signature(watch).parameters]


@contextmanager
def harmless(what: str) -> Iterator[None]:
    """Turn an error inside into a warning that begins with ``what``: training continues.

    Examples
    --------
    >>> import warnings
    >>> with warnings.catch_warnings(record=True), harmless("not watched"):
    ...     raise ValueError("a full disk")
    """
    try:
        yield
    except Exception as error:
        text = f"{what}: {type(error).__name__}: {error}"
        warnings.warn(text, RecordWarning, stacklevel=4)


class Watched:
    """A training by a framework, and the run that records it, if there is one in this process.

    Parameters
    ----------
    run : Run, optional
        One that watches already; else `begin` watches the model.
    options : mapping
        Options of `watch`. With ``rank=None`` only the main process watches, and the others do
        nothing.

    Attributes
    ----------
    options : dict
        Options of `watch`.
    joins : bool
        `begin` takes a run that watches the model already, such as that of ``nbp run``.
    config : dict
        Settings that are recorded.

    Raises
    ------
    TypeError
        For both of them, for anything but a run, and for an option that `watch` has not.
    """

    def __init__(self, run: Run | None, options: Mapping[str, Any]) -> None:
        if run is not None and not isinstance(run, Run):
            raise TypeError(f"run={type(run).__name__}: what notebook_probe.watch returns")
        if run is not None and options:
            raise TypeError(f"options of watch, {', '.join(options)}, for a run that watches")
        for name in options:
            if name not in OPTIONS:
                raise TypeError(f"watch has no option {name!r}; {near(name, OPTIONS)}")
        self.options = dict(options)
        self.joins = False
        self.config: dict[str, Any] = {}
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
        return self._run.controls.status_head().step if self.is_recording else 0

    def begin(
        self, model: nn.Module, done: int = 0, total: int = UNKNOWN, *, is_main: bool = True
    ) -> None:
        """Start a training of ``total`` updates, ``done`` of which are done already."""
        if self._watches_itself and not self._watches(model):
            run = run_of(model) if self.joins else None
            if run is None and self.options.get("rank", "auto") is None and not is_main:
                return
            self._recording = Recording(run or watch(model, **self._options_at(done)))
        if total != UNKNOWN:  # else what the user may have said holds
            self.expect(done, total)

    def join(self, run: Run) -> None:
        """Record into a run that another part of the program began."""
        self._recording = Recording(run)
        self.configure({})

    def expect(self, done: int, total: int) -> None:
        """Set how far training goes, in updates, and how many are done."""
        if self.is_recording:
            end = self.step + max(total - done, 0)
            self._run.expect(start_step=self.step, end_step=end)

    def expects(self, epoch: int) -> None:
        """Note the start of an epoch, counted from 0; loaders note it themselves."""
        if self.is_recording:
            self._run.expect(epoch=epoch)

    def epoch(self, number: int) -> None:
        """Start an epoch, counted from 0."""
        if self.is_recording:
            self.expects(number)
            self._run.note("epoch", f"epoch {number + 1} begins", epoch=number)

    def trained(self, values: Mapping[str, Any]) -> None:
        """Record numbers of a step that is over, before its boundary; other values are skipped."""
        self._log(values, "training")

    def evaluated(self, values: Mapping[str, Any]) -> None:
        """Record numbers of the state between two steps; other values are skipped."""
        self._log(values, "eval")

    def configure(self, config: Mapping[str, Any]) -> None:
        """Record settings of the training, without secrets; those given to `watch` count first."""
        self.config |= recordable(config)
        if self.is_recording and self.config:
            self._run.controls.keep_config(self.config)

    def annotate(self, values: Mapping[str, Any]) -> None:
        """Record numbers of the whole training; other values are skipped."""
        if self.is_recording:
            numbers = {name: float(value) for name, value in values.items() if _is_number(value)}
            self._run.annotate(**numbers)

    def boundary(self) -> None:
        """Apply Pause, Step and Stop; raises TrainingStopped."""
        if self._recording is not None:
            self._recording.boundary()

    def is_stopped(self) -> bool:
        """Apply `boundary`, and return whether to stop, for trainers with a flag."""
        try:
            self.boundary()
        except TrainingStopped:
            return True
        return False

    def ended(self, error: BaseException | None = None) -> None:
        """End the steps for now; the run stays open for inspection."""
        if self._recording is not None:
            self._recording.ended(error)

    # ---------------------------------------------------------------- inside

    @property
    def _run(self) -> Run:
        assert self.run is not None
        return self.run

    def _watches(self, model: nn.Module) -> bool:
        return self.is_recording and self._run.controls.watches(unwrap(model))

    def _options_at(self, done: int) -> dict[str, Any]:
        """Return options that continue the named record of a resumed training."""
        is_resumed = done > 0 and self.options.get("store") is not None
        return {"step": done, **self.options} if is_resumed else self.options

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
