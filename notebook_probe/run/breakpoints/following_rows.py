"""Rows on their way to the record, seen by the breakpoints as they go by."""

from __future__ import annotations

from collections.abc import Sequence

from notebook_probe.probes.reading.closed_losses import LossRows
from notebook_probe.probes.reading.closed_steps import Recorder
from notebook_probe.probes.step.measured import MeasuredStep
from notebook_probe.run.breakpoints.breakpoints import Breakpoints

__all__ = ["FollowingRows"]


class FollowingRows:
    """A `Recorder` that shows rows to the breakpoints and passes them on.

    Parameters
    ----------
    recorder : Recorder
    breakpoints : Breakpoints
    """

    def __init__(self, recorder: Recorder, breakpoints: Breakpoints) -> None:
        self._recorder, self._breakpoints = recorder, breakpoints

    def record(self, steps: Sequence[MeasuredStep]) -> None:
        self._recorder.record(steps)
        for step in steps:
            self._breakpoints.see(step)

    def record_losses(self, rows: LossRows) -> None:
        self._recorder.record_losses(rows)

    @property
    def is_followed(self) -> bool:
        return not self._breakpoints.is_idle

    def failed(self, step: int, n_rows: int, error: Exception) -> None:
        self._recorder.failed(step, n_rows, error)

    def announce(self, place: str, name: str) -> None:
        self._recorder.announce(place, name)
