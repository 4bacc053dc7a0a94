"""Conversion of a closed step to numbers: the values of its probes, made on the host.

Several steps are converted together: code that just ran costs a fifth of code that a training step
has driven out of the caches. Values on an accelerator wait there and are copied together, once in a
while, so that no step waits for the device.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import numpy as np
from torch import Tensor

from notebook_probe.probes.reading.closed_losses import ClosedLosses, LossRows
from notebook_probe.probes.reading.copies import Copies, finish, has_come, wait_for
from notebook_probe.probes.reading.host_copy import HostCopy
from notebook_probe.probes.reading.last_scalars import LastScalars
from notebook_probe.probes.reading.logged_apart import LoggedApart
from notebook_probe.probes.step.frame import PassedStep, StepFrame
from notebook_probe.probes.step.measured import MeasuredStep
from notebook_probe.probes.step.plain_mode import plain_mode
from notebook_probe.probes.step.probe import Probe
from notebook_probe.quantities.define.window import Window
from notebook_probe.quantities.reduce.stat import Number
from notebook_probe.uninterrupted import whole

__all__ = ["ClosedSteps", "Recorder", "StepAccount"]

COPY_S = 0.5
"""Maximum seconds that values wait on a device before they are copied."""

KEEP_S = 0.25
"""Approximate maximum of seconds that closed steps wait here while training continues."""

MOST_KEPT, MOST_LOSSES = 64, 512
"""Steps and losses that may wait here."""


class Recorder(Protocol):
    """Protocol of the recorder, which receives what was measured, step by step."""

    def record(self, steps: Sequence[MeasuredStep]) -> None:
        """Record some steps, in their order."""

    def record_losses(self, rows: LossRows) -> None:
        """Record the losses of some steps, in their order."""

    @property
    def is_followed(self) -> bool:
        """True if each step is watched, also one with nothing but its loss."""

    def failed(self, step: int, n_rows: int, error: Exception) -> None:
        """Count a step, of so many rows, that could not be made into numbers."""

    def announce(self, place: str, name: str) -> None:
        """Make room for what the model collects; may refuse the name."""


class StepAccount(Protocol):
    """Protocol of the account of the time that steps take."""

    def add(
        self, step: int, seconds: float, cost: float, planned: float = 0.0, is_due: bool = False
    ) -> None:
        """Add a step that took ``seconds``, ``cost`` of them in our own code.

        ``planned`` seconds of it were spent once; ``is_due``: something was measured.
        """

    def add_passed(self, passed: Mapping[int, PassedStep]) -> None:
        """Add steps in which nothing was due."""


class ClosedSteps:
    """Queue of closed `StepFrame`s, of which it makes `MeasuredStep`s.

    Parameters
    ----------
    recorder : Recorder
        Recorder that takes the steps.
    costs : StepAccount
        Account that gets the cost of each step.

    Attributes
    ----------
    passed : dict of int to PassedStep
        Steps that were at rest, until they are accounted for.
    recorded_s : float
        Time at which something was recorded last.
    apart : LoggedApart
        Values logged while their step is not open. While there are any, each step is published.
    on_device, copying
        Steps and a copy that wait for a device.
    """

    def __init__(self, recorder: Recorder, costs: StepAccount) -> None:
        self._recorder, self._costs = recorder, costs
        self.on_device: deque[StepFrame] = deque()
        self.copying: HostCopy | None = None
        self._copied = time.monotonic()
        self._on_host: deque[StepFrame] = deque()
        self._copies = Copies()
        self._measured: list[MeasuredStep] = []
        self._losses = ClosedLosses()
        self.passed: dict[int, PassedStep] = {}
        self._last_passed = -1
        self.recorded_s = time.perf_counter()
        self._at_once = self._has_failures = False
        self._lock = threading.Lock()  # a reader may drain while the training thread keeps
        self.apart = LoggedApart()
        self._scalars = LastScalars()

    @property
    def scalars(self) -> LastScalars:
        """Last value of everything the user logged, on the host or on a device."""
        with self._lock:
            self._take_passed()
        return self._scalars

    def of_state(self, step: int) -> StepFrame:
        """Return the frame for scalars of the state after ``step`` updates."""
        state = self.apart.state
        if state is None or state.step != step:
            self.settled()
            state = self.apart.begin_state(step)
        return state

    @whole
    def settled(self) -> None:
        """Keep the values that were logged of the state."""
        self.account_passed()
        state = self.apart.end_state()
        if state is not None:
            self.keep(state)

    # ---------------------------------------------------------------- steps

    def publish(self, frame: StepFrame) -> None:
        """Take a closed step of the training."""
        begun = time.perf_counter()
        if self.passed:
            self.account_passed()
        apart = self.apart
        if apart.early:
            frame = apart.joined(frame)
        if frame.scalars:
            self._scalars.take(frame.scalars)
        if apart.state is not None and apart.state.step <= frame.step:
            self.settled()
        self.keep(frame)
        now = time.perf_counter()
        spent = frame.seconds + now - begun
        is_due = frame.plan is not None and not frame.plan.are_none
        self._costs.add(frame.step, now - frame.begun, spent, frame.planned, is_due)

    @whole
    def account_passed(self) -> None:
        """Account for the steps that have passed by, and record them; on the training thread."""
        if self.passed:
            with self._lock:
                self._take_passed()
                passed, self.passed, self._last_passed = self.passed, {}, -1
            self._costs.add_passed(passed)
            self._record_when_due()
            try:
                self._copy_when_due()
            except Exception as error:  # the device's trouble is not the training's
                self._recorder.failed(max(passed), len(passed), error)

    def _take_passed(self) -> None:
        """Add what the steps that have passed by hold to the rest; with the lock."""
        for step, row in [*self.passed.items()]:
            if step <= self._last_passed:
                continue
            if row.loss is not None:
                self._losses.add(step, row.time_ms, row.loss)
            if row.logged is not None:
                self._scalars.take(row.logged.scalars)
                self._put_in_order(row.logged)
            self._last_passed = step

    def _put_in_order(self, frame: StepFrame) -> bool:
        """Put a frame behind those before it; return False if it waits for a device."""
        waits = bool(frame.on_device or self.on_device or self.copying)
        (self.on_device if waits else self._on_host).append(frame)
        return not waits

    def evaluated(self, frame: StepFrame) -> None:
        """Keep the evaluation of the state between two updates."""
        self.keep(frame)

    def announce(self, place: str, name: str) -> None:
        """Make room for what the model collects; may refuse the name."""
        self._recorder.announce(place, name)

    def keep(self, frame: StepFrame) -> None:
        """Keep a closed frame; errors do not reach the caller."""
        try:
            with self._lock:
                if frame.has_copies:
                    self._copies.begin(frame)
                self._take_passed()
                is_followed = frame.loss is not None and self._take_loss(frame, frame.loss)
                is_kept = is_followed or frame.on_device or not frame.is_empty
                if is_kept and self._put_in_order(frame):
                    self._measure_heavy(frame)
            self._record_when_due()
            self._copy_when_due()
            frame.has_failures |= self._has_failures  # of an earlier step, reported with this one
            self._has_failures = False
        except Exception as error:  # training must not end because a step could not be kept
            self._lose([frame], error)

    def _take_loss(self, frame: StepFrame, loss: Number) -> bool:
        """Keep the loss, and return whether the step is to be recorded for its sake."""
        self._losses.add(frame.step, frame.time_ms, loss)
        if not self._recorder.is_followed:
            return False
        frame.on_device |= isinstance(loss, Tensor)
        return True

    def _measure_heavy(self, frame: StepFrame) -> None:
        """Make values of the last frame on the host at once, if its contents are large."""
        self._at_once |= frame.has_failures  # its successes are counted before it fails again
        if self._at_once or (frame.plan is not None and not frame.plan.are_light):
            self._measure_kept()

    def measured(self, frame: StepFrame, is_final: bool) -> MeasuredStep:
        """Return what a frame would have measured if it ended now; probes count what is final."""
        here = _here(frame)
        if here.plan is not None and not here.closed:
            here.plan.look_at_windows(here)
        return _measured(here, is_final)

    def windows_after(self, frame: StepFrame) -> dict[Probe, dict[object, Window]]:
        """Return each probe's windows as they would be if an open frame ended now, once drained."""
        here = _here(frame)
        return here.plan.windows_after(here) if here.plan is not None else {}

    def drain(self) -> None:
        """Record everything that waits, here or on a device; from any thread."""
        self._await_copies()
        with self._lock:
            self._finish_copy()
            self._begin_copy()
            self._finish_copy()
            self._record()

    def close(self) -> None:
        """Record everything, and end the thread that measures copies; twice is fine."""
        self.drain()
        self._copies.close()

    def hurry(self) -> None:
        """Record what is known without waiting for a device.

        Values that were measured on a device in the last step are copied meanwhile, and available
        at the next step.
        """
        self._await_copies()
        with self._lock:
            self._finish_copy()
            self._begin_copy()
            if self._has_come:
                self._finish_copy()
            self._record()

    def record(self) -> None:
        """Record the waiting steps; from any thread."""
        self._await_copies()
        with self._lock:
            self._record()

    @whole
    def _await_copies(self) -> None:
        """Wait until the copies of waiting frames are measured; training continues meanwhile."""
        with self._lock:
            waiting = [*self._on_host]
        for frame in waiting:
            wait_for(frame)

    def _record_when_due(self) -> None:
        late = time.perf_counter() - self.recorded_s > KEEP_S
        n_kept = len(self._on_host) + len(self._measured)
        if n_kept >= MOST_KEPT:
            self.record()
        elif late or len(self._losses) >= MOST_LOSSES:
            with self._lock:
                self._record()

    @whole
    def _record(self) -> None:
        self._take_passed()
        self._measure_kept()
        measured, self._measured = self._measured, []
        self.recorded_s = time.perf_counter()
        if len(self._losses):
            self._recorder.record_losses(self._losses.take())
        self._recorder.record(measured)

    def _copy_when_due(self) -> None:
        """Begin a copy, or take the result of the last one; never wait."""
        if not self.on_device and self.copying is None and not self._losses.are_elsewhere:
            return
        with self._lock:
            if self._has_come:
                self._finish_copy()
            if not self._is_coming and time.monotonic() - self._copied > COPY_S:
                self._begin_copy()

    @property
    def _has_come(self) -> bool:
        """True if something is being copied, and finishing takes no waiting."""
        has_come = self.copying is None or _has_come(self.copying)
        return self._is_coming and has_come and self._losses.have_come

    @property
    def _is_coming(self) -> bool:
        return self.copying is not None or self._losses.are_coming

    @whole
    def _begin_copy(self) -> None:
        self._take_passed()
        frames = [*self.on_device]
        if frames or self._losses.are_elsewhere:
            self._copied = time.monotonic()
        self._losses.begin_copy()
        if frames:
            self.on_device.clear()
            try:
                self.copying = HostCopy(frames)
            except Exception as error:
                self._lose(frames, error)

    @whole
    def _finish_copy(self) -> None:
        self._losses.finish_copy()
        coming, self.copying = self.copying, None
        if coming is None:
            return
        self._measure_kept(waits=True)
        try:
            frames = coming.frames()
        except Exception as error:
            self._lose(coming.on_device, error)
            return
        for frame in frames:
            self._measure(frame)

    def _lose(self, frames: Sequence[StepFrame], error: Exception) -> None:
        """Count all rows that these steps would have been as failed."""
        for frame in frames:
            self._recorder.failed(frame.step, frame.n_rows, error)

    def _measure_kept(self, waits: bool = False) -> None:
        """Make values of the steps that are kept, up to one that another thread measures still."""
        while self._on_host and (waits or has_come(self._on_host[0])):
            self._measure(self._on_host.popleft())

    def _measure(self, frame: StepFrame) -> None:
        """Make the values of a step; one that fails does not keep the others from being made."""
        try:
            finish(frame)
            plain_mode(self._make_values, frame)
        except Exception as error:
            self._lose([frame], error)
        self._has_failures |= frame.has_failures

    def _make_values(self, frame: StepFrame) -> None:
        if frame.plan is not None:
            frame.plan.end_windows(frame, on_host=True)
        self._measured.append(_measured(frame, is_final=True))


def _here(frame: StepFrame) -> StepFrame:
    """Return a frame as if it ended now, with all of its numbers on the host."""
    here = frame.settled()
    finish(here)
    return HostCopy([here]).frames()[0] if here.on_device else here


def _has_come(coming: HostCopy) -> bool:
    """Return whether a copy needs no waiting; a failed one raises when it is finished."""
    try:
        return coming.has_come
    except Exception:
        return True


def _measured(frame: StepFrame, is_final: bool) -> MeasuredStep:
    """Return the values of a frame, all of whose numbers are on the host."""
    streams = frame.plan.values(frame, is_final) if frame.plan is not None else ()
    named = {key: pooled.value for key, pooled in frame.collected.items()}
    logged: dict[str, Any] = frame.scalars  # all on the host by now
    if frame.recorded_beside or not is_final:  # otherwise nothing changes them any more
        logged = dict(logged)
        for name in frame.recorded_beside:
            logged.pop(name, None)
    arrays = {key: np.asarray(array) for key, array in frame.arrays.items()}
    loss = None if isinstance(frame.loss, Tensor) else frame.loss  # one on a device is on its way
    return MeasuredStep(
        step=frame.step,
        time_ms=frame.time_ms,
        streams=streams,
        named=named,
        logged=logged,
        of_state=frame.of_state,
        arrays=arrays,
        loss=loss,
    )
