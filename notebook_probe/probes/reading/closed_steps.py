"""From a closed step to numbers: the values of its probes, made on the host.

They are made of a few steps together: code that just ran costs a fifth of code that a training
step has driven out of the caches. What lives on an accelerator waits there; it is copied together,
once in a while, so that no step waits for the device.
"""

from __future__ import annotations

import copy
import threading
import time
from collections import deque
from collections.abc import Sequence, Set
from typing import Any, Protocol

import numpy as np
from torch import Tensor

from notebook_probe.probes.reading.closed_losses import ClosedLosses, LossRows
from notebook_probe.probes.reading.copies import Copies, finish, has_come, wait_for
from notebook_probe.probes.reading.host_copy import HostCopy
from notebook_probe.probes.reading.last_scalars import LastScalars
from notebook_probe.probes.step.frame import StepFrame
from notebook_probe.probes.step.measured import MeasuredStep
from notebook_probe.quantities.reduce.stat import Number

__all__ = ["ClosedSteps", "Recorder", "StepCosts"]

COPY_S = 0.5
"""At most this long values wait on a device before they are copied."""

KEEP_S = 0.1
"""At most about this long, while steps go on, closed steps wait here."""

MOST_KEPT = 64
"""Steps that may wait here."""


class Recorder(Protocol):
    """Who takes what was measured, step by step, and asks for nothing more of it."""

    def record(self, steps: Sequence[MeasuredStep]) -> None:
        """Record some steps, in their order."""

    def record_losses(self, rows: LossRows) -> None:
        """Record the losses of some steps, in their order."""

    @property
    def is_followed(self) -> bool:
        """Somebody looks at each step, also at one of which there is nothing but its loss."""

    def failed(self, step: int, n_rows: int, error: Exception) -> None:
        """A step, which would have been so many rows, could not be made into numbers."""

    def announce(self, place: str, name: str) -> None:
        """Make room for what the model collects; may refuse the name."""


class StepCosts(Protocol):
    """Who keeps account of the time that steps take."""

    def add(self, step: int, seconds: float, cost: float) -> None:
        """A step took ``seconds``, ``cost`` of them in our own code."""


class ClosedSteps:
    """Keeps closed `StepFrame`s for a moment, and makes `MeasuredStep`s of them: a `StepSink`.

    Parameters
    ----------
    recorder : Recorder
        Takes the steps.
    costs : StepCosts
        Told what each step took.

    Attributes
    ----------
    scalars : mapping of str to float or tensor
        Last value of everything the user logged.
    """

    def __init__(self, recorder: Recorder, costs: StepCosts) -> None:
        self._recorder, self._costs = recorder, costs
        self._on_device: deque[StepFrame] = deque()
        self._coming: HostCopy | None = None
        self._copied = time.monotonic()
        self._on_host: deque[StepFrame] = deque()
        self._copies = Copies()
        self._measured: list[MeasuredStep] = []
        self._losses = ClosedLosses()
        self._recorded = time.monotonic()
        self._at_once = self._has_failures = False
        self._lock = threading.Lock()  # a reader may drain while the training thread keeps
        self._early: StepFrame | None = None
        self.state: StepFrame | None = None
        """What was logged of the state between two updates, while it lasts."""
        self.last_state = -1
        """Step of the last state of which something logged was kept."""
        self.scalars = LastScalars()

    # ---------------------------------------------------------------- what is logged

    def between_steps(self, step: int) -> StepFrame:
        """Where scalars are kept that come before ``step`` is open; they join it when it closes.

        Opening the step for them would ask its schedules, and pass its gate, too early.
        """
        if self._early is None:
            self._early = StepFrame(step)
        return self._early

    def logged_early(self, step: int, names: Set[str]) -> Set[str]:
        """Those of some names that were logged for ``step`` before it was open."""
        early = self._early
        return early.logged(names) if early and early.step == step else set()

    def arrays_early(self, step: int) -> Set[tuple[str, str]]:
        """As `logged_early`, places and names of arrays."""
        early = self._early
        return early.arrays.keys() if early and early.step == step else set()

    def of_state(self, step: int) -> StepFrame:
        """Where scalars are kept of the state after ``step`` updates."""
        if self.state is None or self.state.step != step:
            self.settled()
            self.state = StepFrame(step)
            self.state.of_state = True
        return self.state

    def settled(self) -> None:
        """Keep what was logged of the state."""
        state, self.state = self.state, None
        if state is not None:
            self.last_state = state.step
            self.keep(state)

    def unfinished(self, frame: StepFrame | None) -> StepFrame | None:
        """What a step that was not trained has to show: what was logged in it."""
        if frame is None:
            return self._early
        logged = StepFrame(frame.step)
        logged.time_ms = frame.time_ms
        logged.scalars.update(frame.scalars)
        logged.arrays.update(frame.arrays)
        logged.on_device = frame.on_device
        logged.recorded_beside = frame.recorded_beside
        return logged

    def provisional(self, frame: StepFrame | None, has_stepped: bool) -> StepFrame | None:
        """The open step as far as it counts: all of it once its update has happened."""
        if frame is None or not has_stepped:
            return self.unfinished(frame)
        return frame if self._early is None else _joined(self._early, frame)

    # ---------------------------------------------------------------- steps

    def publish(self, frame: StepFrame) -> None:
        """Take a closed step of the training."""
        begun = time.perf_counter()
        if self._early is not None:
            frame, self._early = _joined(self._early, frame), None
        if frame.scalars:
            self.scalars.take(frame.scalars)
        if self.state is not None and self.state.step <= frame.step:
            self.settled()
        self.keep(frame)
        now = time.perf_counter()
        self._costs.add(frame.step, now - frame.begun, frame.seconds + now - begun)

    def evaluated(self, frame: StepFrame) -> None:
        """Take what was evaluated of the state between two updates."""
        self.keep(frame)

    def announce(self, place: str, name: str) -> None:
        """Make room for what the model collects; may refuse the name."""
        self._recorder.announce(place, name)

    def keep(self, frame: StepFrame) -> None:
        """Take a closed frame; whatever goes wrong here stays here."""
        try:
            with self._lock:
                if frame.has_copies:
                    self._copies.begin(frame)
                is_followed = frame.loss is not None and self._take_loss(frame, frame.loss)
                if frame.on_device or self._on_device or self._coming:  # steps stay in order
                    self._on_device.append(frame)
                elif is_followed or not frame.is_empty:
                    self._keep(frame)
            self._record_when_due()
            self._copy_when_due()
            frame.has_failures |= self._has_failures  # of a step before, told with this one
            self._has_failures = False
        except Exception as error:  # training must not end because a step could not be kept
            self._lose([frame], error)

    def _take_loss(self, frame: StepFrame, loss: Number) -> bool:
        """Keep the loss; tell whether somebody wants the step for its sake."""
        self._losses.add(frame.step, frame.time_ms, loss)
        if not self._recorder.is_followed:
            return False
        frame.on_device |= isinstance(loss, Tensor)
        return True

    def _keep(self, frame: StepFrame) -> None:
        self._on_host.append(frame)
        self._at_once |= frame.has_failures  # its successes are counted before it fails again
        if self._at_once or (frame.plan is not None and not frame.plan.are_light):
            self._measure_kept()

    def measured(self, frame: StepFrame, is_final: bool) -> MeasuredStep:
        """What a frame had measured if it ended now; the probes count what is final."""
        here = frame.settled()
        finish(here)
        if here.on_device:
            here = HostCopy([here]).frames()[0]
        if here.plan is not None and not here.closed:
            here.plan.look_at_windows(here)
        return _measured(here, is_final)

    def drain(self) -> None:
        """Have all recorded that waits, here or on a device; from any thread."""
        self._await_copies()
        with self._lock:
            self._finish_copy()
            self._begin_copy()
            self._finish_copy()
            self._record()

    def close(self) -> None:
        """Have all recorded, and end what measures copies; twice is fine."""
        self.drain()
        self._copies.close()

    def hurry(self) -> None:
        """Have recorded what is known without waiting for a device.

        What was measured on one in the last step begins to come, and is there with the next.
        """
        self._await_copies()
        with self._lock:
            self._finish_copy()
            self._begin_copy()
            if self._has_come:
                self._finish_copy()
            self._record()

    def record(self) -> None:
        """Have recorded what waits here; from any thread."""
        self._await_copies()
        with self._lock:
            self._record()

    def _await_copies(self) -> None:
        """Have those measured that wait now; a training goes on meanwhile."""
        with self._lock:
            waiting = [*self._on_host]
        for frame in waiting:
            wait_for(frame)

    def _record_when_due(self) -> None:
        late = time.monotonic() - self._recorded > KEEP_S
        n_kept = len(self._on_host) + len(self._measured)
        if n_kept >= MOST_KEPT:
            self.record()
        elif late or len(self._losses) >= MOST_KEPT:
            with self._lock:
                self._record()

    def _record(self) -> None:
        self._measure_kept()
        measured, self._measured = self._measured, []
        self._recorded = time.monotonic()
        if len(self._losses):
            self._recorder.record_losses(self._losses.take())
        self._recorder.record(measured)

    def _copy_when_due(self) -> None:
        """Begin a copy, or take what has come of the last one; never wait."""
        if not self._on_device and self._coming is None and not self._losses.are_elsewhere:
            return
        with self._lock:
            if self._has_come:
                self._finish_copy()
            if not self._is_coming and time.monotonic() - self._copied > COPY_S:
                self._begin_copy()

    @property
    def _has_come(self) -> bool:
        """Something is coming, and nobody would wait for it."""
        has_come = self._coming is None or _has_come(self._coming)
        return self._is_coming and has_come and self._losses.have_come

    @property
    def _is_coming(self) -> bool:
        return self._coming is not None or self._losses.are_coming

    def _begin_copy(self) -> None:
        frames = [*self._on_device]
        if frames or self._losses.are_elsewhere:
            self._copied = time.monotonic()
        self._losses.begin_copy()
        if frames:
            self._on_device.clear()
            try:
                self._coming = HostCopy(frames)
            except Exception as error:
                self._lose(frames, error)

    def _finish_copy(self) -> None:
        self._losses.finish_copy()
        coming, self._coming = self._coming, None
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
        """Have all rows counted that these steps would have been."""
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
            if frame.plan is not None:
                frame.plan.end_windows(frame, on_host=True)
            self._measured.append(_measured(frame, is_final=True))
        except Exception as error:
            self._lose([frame], error)
        self._has_failures |= frame.has_failures


def _has_come(coming: HostCopy) -> bool:
    """Whether nobody would wait for a copy; one that has failed says so when it is asked for."""
    try:
        return coming.has_come
    except Exception:
        return True


def _joined(early: StepFrame, frame: StepFrame) -> StepFrame:
    """The step with what was logged before it began."""
    joined = copy.copy(frame)
    joined.scalars = early.scalars
    if frame.scalars:
        joined.scalars = {**early.scalars, **frame.scalars}
    joined.arrays = {**early.arrays, **frame.arrays}
    joined.recorded_beside |= early.recorded_beside - frame.scalars.keys()
    joined.on_device |= early.on_device
    return joined


def _measured(frame: StepFrame, is_final: bool) -> MeasuredStep:
    """The values of a frame, all of whose numbers are on the host."""
    streams = frame.plan.values(frame, is_final) if frame.plan is not None else ()
    named = {key: pooled.value for key, pooled in frame.collected.items()}
    logged: dict[str, Any] = frame.scalars  # all on the host by now
    if frame.recorded_beside or not is_final:  # else nobody changes them any more
        logged = dict(logged)
        for name in frame.recorded_beside:
            logged.pop(name, None)
    arrays = {key: np.asarray(array) for key, array in frame.arrays.items()}
    loss = None if isinstance(frame.loss, Tensor) else frame.loss  # one on a device is on its way
    return MeasuredStep(
        frame.step, frame.time_ms, streams, named, logged, frame.of_state, arrays, loss
    )
