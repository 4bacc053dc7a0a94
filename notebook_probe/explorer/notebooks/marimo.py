"""A marimo notebook, found among the loaded modules; the package never imports marimo.

A marimo kernel has one thread. Messages of its page wait in two queues with the same order: one
for everything, one for widgets. The panel's messages are read early, from the second queue, at a
step boundary; when their turn comes in the ordinary way, the same number is skipped.
"""

from __future__ import annotations

import asyncio
import queue
import sys
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from notebook_probe.explorer.notebooks.notebook import CellEnded, Shown
from notebook_probe.explorer.notebooks.way import PUMP_INTERVAL_S, MessageWay
from notebook_probe.uninterrupted import uninterrupted

if TYPE_CHECKING:  # Colab has none
    from comm.base_comm import BaseComm

__all__ = ["MarimoNotebook", "marimo_kernel"]

LOOK_AGAIN_S = 0.2
"""A cell that awaits something gives way to others, and has not ended yet."""

# A private name that is missing, in a version older or newer than those we know.
UNSUITED = (AttributeError, KeyError, TypeError, ValueError)


def marimo_kernel() -> Any:
    """Return the marimo kernel of this thread, None elsewhere; a server may have several."""
    contexts = sys.modules.get("marimo._runtime.context.types")
    context = None if contexts is None else contexts.safe_get_context()
    return getattr(context, "_kernel", None)  # a script that is run has none


class MarimoNotebook:
    """The cells of one kernel; to be made in its thread."""

    def __init__(self, kernel: Any) -> None:
        self._kernel = kernel
        self._context = sys.modules["marimo._runtime.context.types"].safe_get_context()
        self._thread = threading.get_ident()
        self._running: Any = None  # marimo's own object for the execution of a cell
        self._callbacks: list[CellEnded] = []
        self.execution = 1
        self.way = self._choose()

    @property
    def cell(self) -> str:
        return str(self._context.cell_id or "")

    def display(self, widget: Shown) -> None:
        self.follows()
        sys.modules["marimo"].output.append(widget)

    def on_cell_end(self, callback: CellEnded) -> Callable[[], None]:
        self._callbacks.append(callback)

        def remove() -> None:
            with suppress(ValueError):  # removed before
                self._callbacks.remove(callback)

        return remove

    def follows(self) -> bool:
        """Return whether a cell of this kernel runs here, and arrange to be notified of its end."""
        if threading.get_ident() != self._thread:
            return False
        running = self._context.execution_context
        if running is not self._running:
            self._tell_end()  # of the one before: cells that run in one go leave no time between
            self._running = running
            if running is not None:
                asyncio.get_running_loop().call_soon(self._look_for_end)
        return running is not None

    def _look_for_end(self) -> None:
        if self._running is None:
            return
        if self._context.execution_context is self._running:
            asyncio.get_running_loop().call_later(LOOK_AGAIN_S, self._look_for_end)
        else:
            self._tell_end()

    def _tell_end(self) -> None:
        ended, self._running = self._running, None
        if ended is None:
            return
        self.execution += 1
        cell = self._kernel.graph.cells.get(ended.cell_id)
        error = getattr(cell, "exception", None)
        for callback in tuple(self._callbacks):
            callback(error)

    def _choose(self) -> MessageWay:
        with suppress(*UNSUITED):
            return ReadAhead(self._kernel, self.follows)
        return MessageWay("after the cell")


class ReadAhead(MessageWay):
    """Our messages are answered between two steps, before it is their turn."""

    answers = is_pumped = True

    def __init__(self, kernel: Any, may_pump: Callable[[], bool]) -> None:
        super().__init__("pump")
        commands = sys.modules["marimo._runtime.commands"]
        self._command, self._message = commands.ModelCommand, commands.ModelCustomMessage
        self._put, self._may_pump = kernel.enqueue_control_request, may_pump
        # marimo has no public access to its queue of messages; the closure of its enqueue function
        # has.
        cells = dict(zip(self._put.__code__.co_freevars, self._put.__closure__, strict=True))
        self._waiting = _Ahead(cells["set_ui_element_queue"].cell_contents)
        self._answers: dict[str, Callable[[Any], None]] = {}
        self._answered: Counter[str] = Counter()  # comm -> messages whose turn is still to come
        self._next_s = 0.0

    def carry(self, comm: BaseComm) -> None:
        comm_id, answer = comm.comm_id, comm.handle_msg
        self._answers[comm_id] = answer

        def in_turn(message: dict[str, Any]) -> None:
            if self._answered[comm_id] and _is_custom(message):
                self._answered[comm_id] -= 1
            else:
                answer(message)

        vars(comm)["handle_msg"] = in_turn

    def forget(self, comm: BaseComm) -> None:
        self._answers.pop(comm.comm_id, None)

    def pump(self) -> None:
        now = time.monotonic()
        if not self._may_pump() or now < self._next_s:
            return
        self._next_s = now + PUMP_INTERVAL_S
        for command in self._waiting.news():
            answer = self._answers.get(getattr(command, "model_id", ""))
            if answer is not None and _is_custom(message := command.into_comm_payload()):
                self._answered[command.model_id] += 1
                answer(message)

    def tell_myself(self, comm_id: str, content: Mapping[str, Any]) -> None:
        message = self._message(content=content)
        self._put(self._command(model_id=comm_id, message=message, buffers=[]))


class _Ahead:
    """Read a queue ahead of its owner, which still gets everything in its order."""

    def __init__(self, waiting: Any) -> None:
        self._is_empty, self._take = waiting.empty, waiting.get_nowait
        self._seen: deque[Any] = deque()
        waiting.empty = lambda: not self._seen and self._is_empty()
        waiting.get_nowait = lambda: self._seen.popleft() if self._seen else self._take()

    def news(self) -> list[Any]:
        found = []
        # An interrupt between the two lines would lose a message of marimo's own.
        with uninterrupted, suppress(queue.Empty):
            while not self._is_empty():
                found.append(self._take())
                self._seen.append(found[-1])
        return found


def _is_custom(message: Mapping[str, Any]) -> bool:
    return bool(message["content"]["data"]["method"] == "custom")
