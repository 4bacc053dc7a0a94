"""The gate between two steps: where requests act, and where training waits or stops.

Any thread may put a request; the training thread applies it when it passes the gate. While the
run is paused the gate holds the training thread and goes on applying requests.
"""

from __future__ import annotations

import queue
from collections.abc import Callable
from dataclasses import dataclass

from notebook_probe.errors import ProbeError, TrainingStopped
from notebook_probe.run.requests import Control, Request, Ticket

__all__ = ["Gate"]

TICK_S = 0.02
"""How often a paused gate looks up."""


@dataclass(slots=True)
class _Change:
    """Something of our own to do at the boundary: what `Run.attach` has already checked."""

    apply: Callable[[int], None]


class Gate:
    """Applies requests between steps, in the order they were put.

    Attributes
    ----------
    apply : callable
        ``apply(request, step)`` does what a request asks and returns what was done, in words; it
        raises a ProbeError to refuse.
    step : int
        The step that the gate was passed for last.
    is_held : bool
        The training thread waits here now.
    problem : str
        The last error of a callback or a change, in words.
    """

    apply: Callable[[Request, int], str]

    def __init__(self, step: int) -> None:
        self._waiting: queue.SimpleQueue[Ticket | _Change] = queue.SimpleQueue()
        self._callbacks: tuple[Callable[[], None], ...] = ()
        self._pausing = self._single = self._stopping = False
        self.step = step
        self.is_held = False
        self.problem = ""

    def put(self, request: Request) -> Ticket:
        """Queue a request from any thread."""
        ticket = Ticket(request, queued_step=self.step)
        self._waiting.put(ticket)
        return ticket

    def put_change(self, apply: Callable[[int], None]) -> None:
        """Queue a change that needs no ticket."""
        self._waiting.put(_Change(apply))

    def each_boundary(self, callback: Callable[[], None]) -> Callable[[], None]:
        """Call ``callback`` at every boundary and every 20 ms of a pause; returns its removal."""
        self._callbacks = (*self._callbacks, callback)

        def remove() -> None:
            self._callbacks = tuple(kept for kept in self._callbacks if kept is not callback)

        return remove

    def __call__(self, step: int) -> None:
        """Pass the gate on the way to ``step``; raises TrainingStopped after Stop."""
        self.step = step
        self._look_up(step)
        try:
            while self._pausing and not self._single and not self._stopping:
                self.is_held = True
                self._wait(step)
                self._look_up(step)
        except BaseException:  # the interrupt button ends the pause too
            self._pausing = False
            raise
        finally:
            self.is_held = self._single = False
        if self._stopping:
            self._stopping = self._pausing = False
            raise TrainingStopped(f"stopped before step {step}; everything recorded is kept")

    def _apply_waiting(self, step: int) -> None:
        while True:
            try:
                item = self._waiting.get_nowait()
            except queue.Empty:
                return
            self._do(item, step)

    def _look_up(self, step: int) -> None:
        for callback in self._callbacks:
            try:
                callback()
            except Exception as error:  # a panel's trouble is not the training's
                self.problem = f"{type(error).__name__}: {error}"
        self._apply_waiting(step)

    def _wait(self, step: int) -> None:
        try:
            item = self._waiting.get(timeout=TICK_S)
        except queue.Empty:
            return
        self._do(item, step)

    def _do(self, item: Ticket | _Change, step: int) -> None:
        try:
            if isinstance(item, _Change):
                item.apply(step)
                return
            item.text = self._obey(item.request, step)
            item.applied_step, item.state = step, "applied"
        except ProbeError as error:
            if isinstance(item, _Change):
                self.problem = str(error)
            else:
                item.text, item.state = str(error), "refused"

    def _obey(self, request: Request, step: int) -> str:
        if not isinstance(request, Control):
            return self.apply(request, step)
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
