"""How a run is doing: what it does now, what is wrong, and how fast it goes."""

from __future__ import annotations

import math
import time

from notebook_probe.probes.observer import Observer
from notebook_probe.probes.reading.closed_steps import ClosedSteps
from notebook_probe.probes.step.budget import Budget
from notebook_probe.record.write.writer import RecordWriter
from notebook_probe.run.background import Background
from notebook_probe.run.gate import Gate
from notebook_probe.run.health.meter import Meter
from notebook_probe.run.health.status import State, StatusHead
from notebook_probe.run.rows.row_keeper import RowKeeper

__all__ = ["RunState"]

MANY_FORWARDS = 5
"""Training forwards without any step after which something may be missing."""
MANY_MORE = 4
"""So many times the forwards of the steps before are many, too."""


class RunState:
    """The state of a run, read from those who know a part of it.

    Attributes
    ----------
    background : Background or None
        The training that was started last in the background.
    """

    def __init__(
        self,
        writer: RecordWriter,
        rows: RowKeeper,
        steps: ClosedSteps,
        observer: Observer,
        gate: Gate,
        meter: Meter,
        budget: Budget,
    ) -> None:
        self._writer, self._rows, self._steps = writer, rows, steps
        self._observer, self._gate = observer, gate
        self._meter, self._budget = meter, budget
        self.background: Background | None = None

    @property
    def trains_in_background(self) -> bool:
        return self.background is not None and self.background.running

    def head(self, name: str, n_probes: int, closed: bool) -> StatusHead:
        """Everything but the probes."""
        writer, meter = self._writer, self._meter
        flushed = writer.flushed_at
        return StatusHead(
            name=name,
            location=writer.location,
            state=self.state(closed),
            step=self._observer.clock.upcoming,
            steps_per_second=meter.steps_per_second,
            cost_percent=meter.cost_percent,
            n_probes=n_probes,
            dropped_rows=writer.dropped_rows,
            nbytes=writer.nbytes,
            flushed_age_s=math.nan if flushed is None else time.monotonic() - flushed,
            background=self.trains_in_background,
            scalars={name: float(value) for name, value in self._steps.scalars.items()},
            problem=self._problem(),
            progress=self._observer.replay.progress,
            total_s=meter.total_s,
            total_cost_s=meter.total_cost_s,
            budget=self._budget.text,
        )

    def state(self, closed: bool) -> State:
        if closed:
            return "finished"
        if self._failed() is not None:
            return "failed"
        if self._gate.is_held:
            return "paused"
        is_measuring = bool(self._observer.replay.progress)
        if self._meter.is_moving or self.trains_in_background or is_measuring:
            return "training"
        return "idle" if self._observer.clock.step > 0 else "waiting"

    def _failed(self) -> Background | None:
        """The background training that ended in an error, until a later step is trained."""
        background = self.background
        if background is None or background.error is None:
            return None
        return None if self._meter.moved_since(background.ended_at) else background

    def _problem(self) -> str:
        failed = self._failed()
        text = failed.error_text if failed is not None else ""
        known = text or self._writer.last_error or self._rows.problem or self._gate.problem
        return known or self._writer.stopped or self._no_steps()

    def _no_steps(self) -> str:
        """Nothing has told where the open step of this loop ends."""
        observer = self._observer
        n_forwards, before = observer.n_forwards, observer.most_forwards
        if observer.clock.has_stepped or n_forwards < max(MANY_FORWARDS, MANY_MORE * before):
            return ""
        since = f" since step {observer.clock.step - 1}" if before else ""
        return (
            f"{n_forwards} training forwards{since} and no optimizer step yet: in a loop without "
            "an optimizer call run.step() after each backward"
        )
