"""The time between two steps of a loop that says when one is over."""

from __future__ import annotations

import time

from notebook_probe.probes.step.frame import StepFrame

__all__ = ["Interval"]


class Interval:
    """Time from the boundary to the forward that opens the next step, of which it is a part."""

    def __init__(self) -> None:
        self._begun: float | None = None
        self._waited = 0.0

    def begin(self) -> None:
        """Begin after a step; the loop may draw a batch."""
        self._begun, self._waited = time.perf_counter(), 0.0

    def forget(self) -> None:
        """Forget the boundary: what comes next is not the step that it was for."""
        self._begun = None

    def wait(self, frame: StepFrame | None, seconds: float) -> None:
        """Note that the loop waited for a batch, while ``frame`` was open or none."""
        if frame is not None and not frame.is_over:
            frame.of_step["wait_seconds"] = frame.of_step.get("wait_seconds", 0.0) + seconds
        elif self._begun is not None:
            self._waited += seconds

    def join(self, frame: StepFrame) -> None:
        """Add the time to the step that has opened."""
        begun, self._begun = self._begun, None
        if begun is not None:
            frame.begun = begun
            if self._waited:
                self.wait(frame, self._waited)
