"""The gate between two steps: where requests act, and where training waits or stops.

Any thread may put a request; the training thread applies it when it passes the gate. While the run
is paused the gate blocks the training thread and continues to apply requests.
"""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from enum import Enum, auto
from typing import ParamSpec, Protocol

from notebook_probe.errors import ProbeError, TrainingStopped
from notebook_probe.probes.step.frame import StepFrame
from notebook_probe.run.attach.requests import Control, Request, Ticket
from notebook_probe.run.breakpoints.check import BreakpointCheck
from notebook_probe.run.callbacks import Callbacks
from notebook_probe.run.going_back.requests import GoBack
from notebook_probe.run.reached_step import ReachedStep
from notebook_probe.uninterrupted import uninterrupted

__all__ = ["Boundary", "Gate"]

P = ParamSpec("P")

TICK_S = 0.02
"""Seconds between two checks of a paused gate."""


class Order(Enum):
    """Order for the training thread at the gate."""

    RUN = auto()
    PAUSE = auto()
    STEP = auto()
    """Train one step, then pause."""
    STOP = auto()
    """Raise TrainingStopped; later orders do not change it."""


PAUSING = (Order.PAUSE, Order.STEP)


class Wait(Enum):
    """Place in which the training thread waits now."""

    NOWHERE = auto()
    BETWEEN_STEPS = auto()
    WITHIN_STEP = auto()


class Boundary(Protocol):
    """Work between two steps, on the training thread.

    `BetweenSteps` is one; the gate does not know what requests are about.
    """

    def apply(self, request: Request, step: int) -> str:
        """Apply a request; return what was done, as text.

        Raises a ProbeError to refuse.
        """
        ...

    def change(self, step: int) -> bool:
        """Apply changes since the last boundary from ``step`` on.

        Return whether the next boundary has work that nobody will announce.
        """


class Gate:
    """Apply requests between steps, in the order they were put.

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
        Something is armed that may pause the open step before its update.
    waits : bool
        Something waits for the next boundary. A party that has work sets it, from any thread, so
        that a boundary without work costs one look.
    problem : str
        The last error of a callback or a change, as text.
    resumed_by : str
        Text that says how another process can continue a paused training; empty if none can.
    """

    def __init__(self, step: int, boundary: Boundary) -> None:
        self._boundary = boundary
        self._waiting: queue.SimpleQueue[Ticket] = queue.SimpleQueue()
        self._followers: Callbacks[Callable[[], None]] = Callbacks()
        self._at_boundaries: Callbacks[Callable[[], None]] = Callbacks()
        self._once: Callbacks[Callable[[], None]] = (
            Callbacks()
        )  # called once; they do not follow the run
        self._told: Callbacks[Callable[[], None]] = Callbacks()
        self._counting: Callbacks[Callable[[int], None]] = Callbacks()
        self._ending: Callbacks[Callable[[], None]] = Callbacks()
        self._order, self._wait_in = Order.RUN, Wait.NOWHERE
        self._is_closed = False
        self._check: BreakpointCheck | None = None
        self._postponed: list[Ticket] = []
        self._is_caught = False
        """A breakpoint pauses training, and is to be notified when it continues."""
        self._excused = 0.0
        self._leaving: TrainingStopped | None = None
        self._thread: threading.Thread | None = None
        self._ident = 0
        self.awaits_update = False
        self.waits = True
        self.reached = ReachedStep(step)
        self.problem = self.resumed_by = ""

    def ask(self, check: BreakpointCheck) -> None:
        """Set the check that decides where training pauses."""
        self._check = check
        self.waits = True

    def wake(self) -> None:
        """Make the next boundary look for work; from any thread."""
        self.waits = True

    def put(self, ticket: Ticket) -> None:
        """Queue a request from any thread."""
        self._waiting.put(ticket)
        self.waits = True
        if self._is_closed:
            # The gate may have been closed in between: there would be no answer.
            self._refuse_waiting()

    def answer(self, ticket: Ticket) -> None:
        """Apply a request that needs no boundary, at once; from any thread."""
        with uninterrupted:
            self._do(ticket, self.step)
            self._tell()

    @property
    def step(self) -> int:
        """The step that the gate was passed for last."""
        return self.reached.step

    @property
    def is_pausing(self) -> bool:
        """True if training is paused, or will be at its next step."""
        return self._order in PAUSING

    @property
    def is_waiting(self) -> bool:
        """True while the training thread waits here."""
        return self._wait_in is not Wait.NOWHERE

    @property
    def is_within_step(self) -> bool:
        """True while paused within a step: most requests wait for the next one."""
        return self._wait_in is Wait.WITHIN_STEP

    @property
    def is_followed(self) -> bool:
        """True if a panel shows the run, or something else acts at each boundary."""
        return bool(self._followers or self._at_boundaries)

    def do_waiting(self, step: int) -> None:
        """Apply the waiting requests, between two steps."""
        # Asked at every step: entering a section costs more than this look.
        if not self._waiting.empty():
            with uninterrupted:
                for ticket in self._take_waiting():
                    self._do(ticket, step)
                self._tell()

    def excuse(self, seconds: float) -> None:
        """Count the seconds of a long request as time in which training was paused."""
        self._excused += seconds

    def leave(self, by: TrainingStopped) -> None:
        """Continue, and raise this where the training thread passes; called by handlers."""
        self._leaving, self.waits = by, True

    def close(self) -> None:
        """Continue, and refuse waiting and future requests."""
        # Set before the queue is emptied: `put` looks at it after it has added a ticket.
        self._is_closed = True
        self._refuse_waiting()

    @property
    def is_elsewhere(self) -> bool:
        """True if another thread trains: only it may open and close steps."""
        thread = self._thread
        # A thread that has ended trains no more, even if no other one has passed since.
        return thread not in (None, threading.current_thread()) and thread.is_alive()

    def follow(self) -> Callable[[], None]:
        """Note that a panel shows the run, until the returned function is called."""
        return self._followers.add(lambda: None)  # nothing is called, it is counted

    def each_boundary(self, callback: Callable[[], None]) -> Callable[[], None]:
        """Call ``callback`` at every boundary and every 20 ms of a pause; returns its removal."""
        remove = self._at_boundaries.add(callback)
        self.waits = True
        return remove

    def each_news(self, callback: Callable[[], None]) -> Callable[[], None]:
        """Call ``callback`` after answers to requests, and when training pauses or continues.

        It is called on the training thread, so it may only wake another one; returns its removal.
        """
        return self._told.add(callback)

    def each_step(self, callback: Callable[[int], None]) -> Callable[[], None]:
        """Call ``callback(step)`` once on the way to each step; returns its removal.

        It is not called during a pause, so it cannot continue a paused training.
        """
        remove = self._counting.add(callback)
        self.waits = True
        return remove

    def each_end(self, callback: Callable[[], None]) -> Callable[[], None]:
        """Call ``callback`` before the run is closed; returns its removal."""
        return self._ending.add(callback)

    def end(self) -> None:
        """Call the callbacks for the end of the run."""
        for callback in self._ending.every:
            self._attempt(callback)

    def once(self, act: Callable[[], None]) -> None:
        """Do something at the next boundary, on the training thread."""

        def late() -> None:
            # First: `act` may raise, and must not be called again at the next boundary.
            remove()
            act()

        remove = self._once.add(late)
        self.waits = True

    def pass_to(self, step: int) -> float:
        """Pass the gate on the way to ``step``; raises TrainingStopped after Stop.

        Returns
        -------
        float
            Seconds for which training was paused.
        """
        self._ident = 0  # a thread that has ended may have had the same
        self.reach(step)
        # First: what comes while this boundary works waits for the next one.
        self.waits = False
        self._excused = 0.0
        if not self._is_closed:
            for callback in self._counting.every:
                self._attempt(callback, step)
            self._look_up(step)
        paused_s, check = 0.0, self._asked()
        if check is not None and not self._is_closed and self._leaving is None:
            self._attempt(self._ask, lambda check: check.before_step(step))
        if self._order in PAUSING or self._is_caught:
            paused_s = self._pause(step, Wait.BETWEEN_STEPS)
            check = self._asked()  # what was armed meanwhile counts
        else:
            paused_s = self._excused
        if self._order is Order.STEP:  # one was let through; the next one waits again
            self._order = Order.PAUSE
        self.awaits_update = check is not None and check.awaits_update()
        self.waits |= check is not None or self._is_asked_always
        if self._order is Order.STOP or self._leaving is not None:
            self._end(f"stopped before step {step}; everything recorded is kept")
        return paused_s

    def reach(self, step: int) -> None:
        """Pass the gate on the way to ``step`` while nothing waits."""
        reached = self.reached
        reached.step = step  # before the look: a thread that begins to wait does the reverse
        if step >= reached.first:
            reached.wake()
        if self._ident != threading.get_ident():  # a training may continue on another thread
            self._ident, self._thread = threading.get_ident(), threading.current_thread()

    @property
    def _is_asked_always(self) -> bool:
        """True if each boundary has work: callbacks, or a pause."""
        return self._order is not Order.RUN or bool(
            self._at_boundaries.every or self._counting.every
        )

    def before_update(self, frame: StepFrame) -> float:
        """Pause before an update if needed; raises TrainingStopped after Stop.

        Pause, Step, Stop and going back act here; other requests wait for the next step.

        Returns
        -------
        float
            Seconds for which training was paused.
        """
        self._attempt(self._ask, lambda check: check.before_update(frame))
        paused_s = self._pause_within(frame.step)
        self._end(f"stopped before the update of step {frame.step}")
        return paused_s

    def pause_on_error(self, step: int, error: BaseException) -> None:
        """Pause a training that has raised; continuing ends it, unless it goes back."""
        if not self._is_closed:
            self._attempt(self._ask, lambda check: check.on_error(step, error))
            self._pause_within(step)
            self._order = Order.RUN
            self._end("")

    def _end(self, text: str) -> None:
        """Raise if training is to end, or to leave, here."""
        # Taken before raising: the next training must not leave as well.
        leaving, self._leaving = self._leaving, None
        order = self._order
        if order is Order.STOP or leaving is not None:
            # A loop that is started again must not stop, or wait, at its first step.
            self._order = Order.RUN
        if order is Order.STOP:
            raise TrainingStopped(text)
        if leaving is not None:
            raise leaving

    def _asked(self) -> BreakpointCheck | None:
        """Return the check that may pause training now."""
        check = self._check
        # Without armed breakpoints a step pays for no more than this.
        return None if check is None or check.is_idle else check

    def _ask(self, question: Callable[[BreakpointCheck], bool]) -> None:
        if self._check is not None and question(self._check):
            self._give(Order.PAUSE)
            self._is_caught = self.waits = True

    def _give(self, order: Order) -> None:
        if self._order is not Order.STOP:
            self._order = order

    def _pause_within(self, step: int) -> float:
        """Pause within a step, where only the controls and going back can act."""
        # Only a breakpoint pauses within a step; the Pause button waits for the boundary.
        if not self._is_caught:
            return 0.0
        try:
            return self._pause(step, Wait.WITHIN_STEP)
        finally:
            # Requests that cannot act within a step were postponed; now they take their turn.
            if self._order is Order.STEP:
                self._order = Order.PAUSE
            put_off, self._postponed = self._postponed, []
            for ticket in put_off:
                self._waiting.put(ticket)
            self.waits = True

    def _pause(self, step: int, where: Wait) -> float:
        """Wait for as long as the run is paused; returns for how many seconds."""
        begun = time.perf_counter()
        try:
            while self._is_to_wait():
                if not self.is_waiting:
                    self._wait_in = where
                    self._tell()
                self._wait(step, where)
        except BaseException:  # the interrupt button ends the pause too
            self._give(Order.RUN)
            raise
        finally:
            if self.is_waiting:
                self._wait_in = Wait.NOWHERE
                self._tell()
            if self._is_caught and self._check is not None:
                self._is_caught = False
                self._check.resumed()
        return time.perf_counter() - begun

    def _is_to_wait(self) -> bool:
        is_released = self._is_closed or self._leaving is not None
        return self._order is Order.PAUSE and not is_released

    def _call_at_boundary(self) -> None:
        for callback in (*self._once.every, *self._at_boundaries.every):
            self._attempt(callback)

    def _tell(self) -> None:
        for callback in self._told.every:
            self._attempt(callback)

    def _look_up(self, step: int) -> None:
        self._call_at_boundary()
        self.do_waiting(step)
        self._attempt(self._change, step)

    def _change(self, step: int) -> None:
        self.waits |= self._boundary.change(step)

    def _wait(self, step: int, where: Wait) -> None:
        """Wait for a tick, or until a request arrives."""
        is_within = where is Wait.WITHIN_STEP
        # An interrupt must not fall between taking a ticket and answering it.
        with uninterrupted, suppress(queue.Empty):
            ticket = self._waiting.get(timeout=TICK_S)
            if is_within and not isinstance(ticket.request, Control | GoBack):
                self._postponed.append(ticket)
            else:
                self._do(ticket, step)
                self._tell()
        if is_within:
            self._call_at_boundary()
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
        """Run a function; an exception becomes the gate's problem, never that of the training."""
        try:
            act(*args, **kwargs)
        except Exception as error:
            # Callbacks are the panel's and the user's: shown in the panel instead.
            self.problem = f"{type(error).__name__}: {error}"
            self.waits = True  # what failed is tried again

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
        order, done = _ORDERS[request.action]
        self._give(order)
        return done


_ORDERS = {
    "pause": (Order.PAUSE, "paused"),
    "resume": (Order.RUN, "resumed"),
    "step": (Order.STEP, "took one step"),
    "stop": (Order.STOP, "stopped"),
}
