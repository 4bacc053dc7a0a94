"""State of a run: what it does now, what is wrong, and how fast it is."""

from __future__ import annotations

import math
import time

from notebook_probe.errors import TrainingStopped
from notebook_probe.probes.observer import Observer
from notebook_probe.probes.reading.closed_steps import ClosedSteps
from notebook_probe.probes.step.budget import Budget
from notebook_probe.record.write.writer import RecordWriter
from notebook_probe.run.background import Background
from notebook_probe.run.breakpoints.breakpoints import Breakpoints
from notebook_probe.run.failure import EndReason
from notebook_probe.run.flight.recorder import FlightRecorder
from notebook_probe.run.gate import Gate
from notebook_probe.run.health.meter import Meter
from notebook_probe.run.health.status import State, StatusHead
from notebook_probe.run.health.why_silent import OF_OTHERS
from notebook_probe.run.mirror.mirror import Mirrors
from notebook_probe.run.rows.row_keeper import RowKeeper

__all__ = ["WANTED", "RunState"]

WANTED = (KeyboardInterrupt, TrainingStopped)
"""Exceptions by which a user ends a loop: no failures."""
UNDER_WAY = ("training", "paused")
MANY_FORWARDS = 5
"""Training forwards without any step after which something may be missing."""
MANY_SHARED = 3
"""Number of shared steps to tolerate: after an interrupt another thread may continue once."""
MANY_ELSEWHERE = 10
"""Steps of other parameters after which the model that trains may be another one."""
MANY_MORE = 4
"""Multiple of the usual number of forwards per step that is suspicious."""


class RunState:
    """The state of a run, read from those who know a part of it.

    Attributes
    ----------
    background : Background or None
        The training that was started last in the background.
    failure : EndReason or None
        Failure that ended the last loop, until training continues.
    start_step, end_step, epoch : int
        Progress reported by the loop; -1 if unknown.
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
        mirrors: Mirrors,
        breakpoints: Breakpoints,
        flight: FlightRecorder,
    ) -> None:
        self._writer, self._rows, self._steps = writer, rows, steps
        self._observer, self._gate = observer, gate
        self._meter, self._budget, self._mirrors = meter, budget, mirrors
        self._breakpoints, self._flight = breakpoints, flight
        self.background: Background | None = None
        self._failure: EndReason | None = None
        self._rested_at = self._progress
        self.start_step, self.end_step, self.epoch = 0, -1, -1

    @property
    def failure(self) -> EndReason | None:
        return None if self.has_trained else self._failure

    @property
    def _progress(self) -> tuple[int, int]:
        """Changes with every call and every update of training."""
        return self._observer.clock.step, self._observer.steps.n_forwards

    @property
    def has_trained(self) -> bool:
        """True if there was a step since the last loop ended."""
        # Compared instead of counted, so that a training step pays nothing for it.
        return self._progress != self._rested_at

    def rest(self, error: BaseException | None = None) -> None:
        """Note the end of a loop; an error is a failure unless the user ended the loop."""
        if self.has_trained:
            self._failure = None
        if error is not None and not isinstance(error, WANTED):
            self._failure = EndReason.of(error)
        self._rested_at = self._progress
        self._meter.rest()

    @property
    def trains_in_background(self) -> bool:
        return self.background is not None and self.background.running

    def head(self, name: str, n_probes: int, closed: bool, device: str) -> StatusHead:
        """Return everything but the probes."""
        writer, meter = self._writer, self._meter
        flushed, failure = writer.flushed_at, self.failure
        state, step = self.state(closed), self._observer.clock.upcoming
        end_step = self.end_step if step <= self.end_step else -1  # it continued past it
        return StatusHead(
            name=name,
            location=writer.location,
            state=state,
            step=step,
            steps_per_second=meter.steps_per_second,
            cost_percent=meter.cost_percent,
            graphs_percent=meter.graphs_percent,
            n_probes=n_probes,
            dropped_rows=writer.dropped_rows,
            nbytes=writer.nbytes,
            flushed_age_s=math.nan if flushed is None else time.monotonic() - flushed,
            background=self.trains_in_background,
            scalars={name: float(value) for name, value in self._steps.scalars.items()},
            problem=self._problem(),
            progress=self._observer.replay.progress,
            compiling=self._observer.in_graphs.compiles,
            total_s=meter.total_s,
            total_cost_s=meter.total_cost_s,
            n_measured=meter.n_steps,
            budget_percent=self._budget.percent,
            budget=self._budget.text,
            epoch=self.epoch,
            end_step=end_step,
            pause_reason=self._breakpoints.pause_reason,
            within_step=self._gate.is_within_step,
            flight=self._flight.text,
            device=device,
            traceback=failure.traceback if failure is not None else self._breakpoints.traceback,
            seconds_left=self._seconds_for(end_step - step) if state in UNDER_WAY else None,
        )

    def _seconds_for(self, n_steps: int) -> float | None:
        """Return the seconds of a number of steps; None if negative or before the first step."""
        rate = self._meter.steps_per_second
        return n_steps / rate if n_steps >= 0 and math.isfinite(rate) else None

    def state(self, closed: bool) -> State:
        if closed:
            return "finished"
        if self.failure is not None:
            return "failed"
        if self._gate.is_waiting:
            return "paused"
        is_busy = bool(self._observer.replay.progress) or self._observer.in_graphs.compiles
        # A slow measurement between two steps is part of training, though no step ends.
        if self._meter.is_moving or self.trains_in_background or is_busy:
            return "training"
        return "idle" if self._observer.clock.step > 0 else "waiting"

    def _problem(self) -> str:
        text = self.failure.text if self.failure is not None else ""
        known = text or self._writer.last_error or self._rows.problem or self._gate.problem
        return (
            known
            or self._writer.stopped
            or self._mirrors.problem
            or self._no_steps()
            or self._elsewhere()
            or self._shared()
        )

    def _no_steps(self) -> str:
        """Return a warning about a loop whose steps have no visible end."""
        observer = self._observer
        n_forwards, before = observer.steps.n_forwards, observer.steps.most_forwards
        # A model may be called often per step, as in accumulation: the usual number is the measure.
        if observer.clock.has_stepped or n_forwards < max(MANY_FORWARDS, MANY_MORE * before):
            return ""
        if observer.updates.n_elsewhere:
            return f"{n_forwards} training forwards and no step of this model: {OF_OTHERS}"
        step = observer.clock.step - 1
        if before:
            return f"{n_forwards} training forwards since step {step}, and no update"
        return (
            f"{n_forwards} training forwards and no optimizer step yet: in a loop without "
            "an optimizer call run.step() after each backward"
        )

    def _shared(self) -> str:
        """Return a warning about several threads that train the model at once."""
        shared = self._observer.updates.shared
        if shared.n < MANY_SHARED:
            return ""
        return (
            f"several threads trained this model at the same time, in {shared.n} steps since step "
            f"{shared.first}: a row of such a step has the values of all of them; train a model "
            "on one thread at a time"
        )

    def _elsewhere(self) -> str:
        """Return a warning about a training of other parameters than this model's."""
        observer = self._observer
        n = observer.updates.n_elsewhere
        is_used = observer.was_rooted or observer.clock.has_stepped or observer.clock.step > 0
        if is_used or n < MANY_ELSEWHERE:
            return ""
        return (
            f"{n} optimizer steps, all of parameters that are not this model's, and no training "
            "forward of it: watch the model that trains, not a copy of it"
        )
