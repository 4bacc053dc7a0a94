"""The gate between two steps: where requests act, and where training waits or stops.

Any thread may put a request; the training thread applies it when it passes the gate. While the
run is paused the gate holds the training thread and goes on applying requests.
"""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import ParamSpec, Protocol

from notebook_probe.errors import ProbeError, TrainingStopped
from notebook_probe.probes.step.frame import StepFrame
from notebook_probe.run.attach.requests import Control, Request, Ticket
from notebook_probe.run.callbacks import Callbacks
from notebook_probe.run.going_back.requests import GoBack
from notebook_probe.run.reached_step import ReachedStep

__all__ = ["Boundary", "Check", "Gate"]

P = ParamSpec("P")

TICK_S = 0.02
"""How often a paused gate looks up."""


class Boundary(Protocol):
    """What acts between two steps, on the training thread."""

    def apply(self, request: Request, step: int) -> str:
        """Do what a request says; returns what was done, in words.

        Raises a ProbeError to refuse.
        """
        ...

    def change(self, step: int) -> None:
        """Let what has changed since the last boundary act from ``step`` on."""


class Check(Protocol):
    """Who knows whether the training is to be held; asked on its thread."""

    @property
    def is_idle(self) -> bool:
        """Nothing can hold it between two steps or before an update; nothing else is asked then."""

    def before_step(self, step: int) -> bool:
        """Tell whether it is held before ``step``."""
        ...

    def awaits_update(self) -> bool:
        """Tell whether `before_update` is to be asked of the step that opens now."""
        ...

    def before_update(self, frame: StepFrame) -> bool:
        """Tell whether it is held before the update of an open step."""
        ...

    def on_error(self, step: int, error: BaseException) -> bool:
        """Tell whether it is held because the loop raised."""
        ...

    def let_go(self) -> None:
        """It goes on."""


class Gate:
    """Applies requests between steps, in the order they were put.

    Parameters
    ----------
    step : int
        The first one.
    boundary : Boundary

    Attributes
    ----------
    reached : ReachedStep
        The step that the gate was passed for last.
    awaits_update : bool
        Something is armed that may hold the open step before its update.
    is_held : bool
        The training thread waits here now.
    problem : str
        The last error of a callback or a change, in words.
    """

    def __init__(self, step: int, boundary: Boundary) -> None:
        self._boundary = boundary
        self._waiting: queue.SimpleQueue[Ticket] = queue.SimpleQueue()
        self._followers: Callbacks[Callable[[], None]] = Callbacks()
        self._told: Callbacks[Callable[[], None]] = Callbacks()
        self._counting: Callbacks[Callable[[int], None]] = Callbacks()
        self._ending: Callbacks[Callable[[], None]] = Callbacks()
        self._pausing = self._single = self._stopping = False
        self._is_closed = False
        self._check: Check | None = None
        self._put_off: list[Ticket] = []
        self._is_caught = False  # a breakpoint holds it
        self._is_amid = False  # it is held in the midst of a step
        self._excused = 0.0
        self._leaving: TrainingStopped | None = None
        self._thread: threading.Thread | None = None
        self.awaits_update = False
        self.reached = ReachedStep(step)
        self.is_held = False
        self.problem = ""

    def ask(self, check: Check) -> None:
        """Have ``check`` say from now on where training is held."""
        self._check = check

    def put(self, ticket: Ticket) -> None:
        """Queue a request from any thread."""
        self._waiting.put(ticket)
        if self._is_closed:
            self._refuse_waiting()

    @property
    def step(self) -> int:
        """The step that the gate was passed for last."""
        return self.reached.step

    @property
    def is_pausing(self) -> bool:
        """The training is held, or will be at its next step."""
        return self._pausing

    @property
    def is_amid(self) -> bool:
        """It is held in the midst of a step: most of what is requested waits for the next one."""
        return self._is_amid and self.is_held

    @property
    def is_followed(self) -> bool:
        """Somebody is called at each boundary, as panels are."""
        return bool(self._followers)

    def do_waiting(self, step: int) -> None:
        """Do what was requested so far, between two steps."""
        if not self._waiting.empty():
            for ticket in self._take_waiting():
                self._do(ticket, step)
            self._tell()

    def excuse(self, seconds: float) -> None:
        """Count what somebody asked for, and took so long, as time for which training was held."""
        self._excused += seconds

    def leave(self, by: TrainingStopped) -> None:
        """Let go, and raise this where the training thread passes; called by what acts here."""
        self._leaving = by

    def close(self) -> None:
        """Let go, refuse what still waits, and whatever is put from now on."""
        self._is_closed = True
        self._refuse_waiting()

    @property
    def is_elsewhere(self) -> bool:
        """Another thread than this one trains: its steps are its own to open and close."""
        thread = self._thread
        return thread not in (None, threading.current_thread()) and thread.is_alive()

    def each_boundary(self, callback: Callable[[], None]) -> Callable[[], None]:
        """Call ``callback`` at every boundary and every 20 ms of a pause; returns its removal."""
        return self._followers.add(callback)

    def each_news(self, callback: Callable[[], None]) -> Callable[[], None]:
        """Call ``callback`` once requests were answered, and when training is held or let go.

        On the training thread, so it only wakes somebody; returns its removal.
        """
        return self._told.add(callback)

    def each_step(self, callback: Callable[[int], None]) -> Callable[[], None]:
        """Call ``callback(step)`` once on the way to each step; returns its removal.

        Nobody who could let a training go on is behind it.
        """
        return self._counting.add(callback)

    def each_end(self, callback: Callable[[], None]) -> Callable[[], None]:
        """Call ``callback`` before the run is closed; returns its removal."""
        return self._ending.add(callback)

    def end(self) -> None:
        """The run is about to be closed."""
        for callback in self._ending.every:
            self._attempt(callback)

    def once(self, act: Callable[[], None]) -> None:
        """Do something at the next boundary, on the training thread."""

        def late() -> None:
            remove()
            act()

        remove = self.each_boundary(late)

    def pass_to(self, step: int) -> float:
        """Pass the gate on the way to ``step``; raises TrainingStopped after Stop.

        Returns
        -------
        float
            Seconds for which it held the training.
        """
        self.reached.reach(step)
        self._thread = threading.current_thread()
        self._excused = 0.0
        if not self._is_closed:
            for callback in self._counting.every:
                self._attempt(callback, step)
            self._look_up(step)
        held, check = 0.0, self._asked()
        if check is not None and not self._is_closed and self._leaving is None:
            self._attempt(self._ask, lambda check: check.before_step(step))
        if self._pausing:
            held, check = self._hold(step), self._asked()  # what was armed meanwhile counts
        else:
            held = self._excused
        self._single = False
        self.awaits_update = check is not None and check.awaits_update()
        if self._stopping or self._leaving is not None:
            self._end(f"stopped before step {step}; everything recorded is kept")
        return held

    def before_update(self, frame: StepFrame) -> float:
        """Let the training be held before an update; raises TrainingStopped after Stop.

        Pause, Step, Stop and a way back act here; whatever else is requested waits for the next
        step.

        Returns
        -------
        float
            Seconds for which it held the training.
        """
        self._attempt(self._ask, lambda check: check.before_update(frame))
        held = self._hold_amid(frame.step)
        self._end(f"stopped before the update of step {frame.step}")
        return held

    def hold_on_error(self, step: int, error: BaseException) -> None:
        """Let a training be held that has raised; what lets it go on but a way back ends it."""
        if not self._is_closed:
            self._attempt(self._ask, lambda check: check.on_error(step, error))
            self._hold_amid(step)
            self._stopping = False
            self._end("")
            self._pausing = False

    def _end(self, text: str) -> None:
        """Raise where somebody wants the training to end, or to leave, here."""
        leaving, self._leaving = self._leaving, None
        if self._stopping:
            self._stopping = self._pausing = False
            raise TrainingStopped(text)
        if leaving is not None:
            self._pausing = False
            raise leaving

    def _asked(self) -> Check | None:
        """Who may have the training held now."""
        check = self._check
        return None if check is None or check.is_idle else check

    def _ask(self, question: Callable[[Check], bool]) -> None:
        if self._check is not None and question(self._check):
            self._pausing, self._single = True, False
            self._is_caught = True

    def _hold_amid(self, step: int) -> float:
        """Hold in the midst of a step, where nothing but the controls and a way back can act."""
        if not self._is_caught:
            return 0.0
        self._is_amid = True
        try:
            return self._hold(step)
        finally:
            self._is_amid = self._single = False
            put_off, self._put_off = self._put_off, []
            for ticket in put_off:
                self._waiting.put(ticket)

    def _hold(self, step: int) -> float:
        """Wait for as long as the run is paused; returns for how many seconds."""
        begun = time.perf_counter()
        try:
            while self._is_holding():
                if not self.is_held:
                    self.is_held = True
                    self._tell()
                self._wait(step)
        except BaseException:  # the interrupt button ends the pause too
            self._pausing = self._single = False
            raise
        finally:
            if self.is_held:
                self.is_held = False
                self._tell()
            if self._is_caught and self._check is not None:
                self._is_caught = False
                self._check.let_go()
        return time.perf_counter() - begun

    def _is_holding(self) -> bool:
        is_let_go = self._single or self._stopping or self._is_closed or self._leaving is not None
        return self._pausing and not is_let_go

    def _call_followers(self) -> None:
        for callback in self._followers.every:
            self._attempt(callback)

    def _tell(self) -> None:
        for callback in self._told.every:
            self._attempt(callback)

    def _look_up(self, step: int) -> None:
        self._call_followers()
        self.do_waiting(step)
        self._attempt(self._boundary.change, step)

    def _wait(self, step: int) -> None:
        """Hold for a tick, or until a request comes."""
        with suppress(queue.Empty):
            ticket = self._waiting.get(timeout=TICK_S)
            if self._is_amid and not isinstance(ticket.request, Control | GoBack):
                self._put_off.append(ticket)
            else:
                self._do(ticket, step)
                self._tell()
        if self._is_amid:
            self._call_followers()
        else:
            self._look_up(step)

    def _take_waiting(self) -> Iterator[Ticket]:
        while True:
            try:
                yield self._waiting.get_nowait()
            except queue.Empty:
                return

    def _refuse_waiting(self) -> None:
        for ticket in self._take_waiting():
            ticket.text, ticket.state = "the run is closed", "refused"
        self._tell()

    def _attempt(self, act: Callable[P, None], *args: P.args, **kwargs: P.kwargs) -> None:
        """Do it; an exception becomes the gate's problem, never that of the training."""
        try:
            act(*args, **kwargs)
        except Exception as error:
            self.problem = f"{type(error).__name__}: {error}"

    def _do(self, ticket: Ticket, step: int) -> None:
        try:
            ticket.text = self._obey(ticket.request, step)
            ticket.applied_step, ticket.state = step, "applied"
        except ProbeError as error:
            ticket.text, ticket.state = str(error), "refused"
        except Exception as error:  # no request may end the training
            ticket.text, ticket.state = f"{type(error).__name__}: {error}", "refused"

    def _obey(self, request: Request, step: int) -> str:
        if not isinstance(request, Control):
            return self._boundary.apply(request, step)
        if request.action == "pause":
            self._pausing = True
        elif request.action == "resume":
            self._pausing = False
        elif request.action == "step":
            self._pausing = self._single = True
        else:
            self._stopping = True
        return _DONE[request.action]


_DONE = {
    "pause": "paused",
    "resume": "resumed",
    "step": "took one step",
    "stop": "stopped",
}
