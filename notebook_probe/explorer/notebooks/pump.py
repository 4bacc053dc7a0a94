"""The way through ipykernel 6, whose one thread handles everything."""

from __future__ import annotations

import inspect
import threading
import time
from contextlib import suppress
from typing import Any

import zmq

from notebook_probe.explorer.notebooks.channels import JupyterWay, Wanted, client
from notebook_probe.explorer.notebooks.way import PUMP_INTERVAL_S
from notebook_probe.uninterrupted import uninterrupted

__all__ = ["Pump"]


class Pump(JupyterWay):
    """Pick our messages out of the waiting ones, and handle them between two steps."""

    is_pumped = True

    def __init__(self, kernel: Any) -> None:
        super().__init__("pump")
        self._kernel = kernel
        self._queue = kernel.msg_queue
        self._wanted = Wanted(kernel.session, self.carried)
        self._identities = kernel._parent_ident
        self._next_s = 0.0
        client()

    def pump(self) -> None:
        now = time.monotonic()
        if now < self._next_s or threading.current_thread() is not threading.main_thread():
            return  # off the main thread nothing blocks the kernel's own loop
        self._next_s = now + PUMP_INTERVAL_S
        while (found := self._take_one()) is not None:
            self._handle(*found)

    def _take_one(self) -> tuple[list[bytes], dict[str, Any]] | None:
        """Take the first message of a carried comm; everything else stays, in its order."""
        first = None
        with uninterrupted:
            self._kernel.shell_stream.flush(zmq.POLLIN)  # moves what has arrived into the queue
            # Once around: every other message goes back, so that their order stays.
            for _ in range(self._queue.qsize()):
                entry = self._queue.get_nowait()
                frames = entry[2][0] if entry[2] else []
                found = self._wanted.among(frames) if first is None else None
                if found is not None:
                    first = found
                else:
                    self._queue.put_nowait(entry)
        return first

    def _handle(self, identities: list[bytes], message: dict[str, Any]) -> None:
        """Do as the kernel does, but let an interrupt through to the cell."""
        kernel = self._kernel
        # The cell's own parent, to be restored: output is attributed by it.
        cell, cell_identities = kernel.get_parent("shell"), self._identities["shell"]
        message["content"] = kernel.session.unpack(message["content"])
        kernel.set_parent(identities, message, channel="shell")
        try:
            self._publish("busy")
            handle = kernel.shell_handlers[message["msg_type"]]
            _finish(handle(kernel.shell_stream, identities, message))
            kernel.shell_stream.flush(zmq.POLLOUT)  # the loop that sends replies is blocked
        finally:
            self._publish("idle")
            # Later output of the running cell must not appear under the panel's message.
            kernel.set_parent(cell_identities, cell, channel="shell")

    def _publish(self, state: str) -> None:
        kernel = self._kernel
        topic = f"kernel.{kernel.ident}.status".encode()
        kernel.send_response(kernel.iopub_socket, "status", {"execution_state": state}, topic)


def _finish(handling: Any) -> None:
    """Run a handler to its end, also a coroutine: our handlers await nothing."""
    if inspect.isawaitable(handling):
        # One send runs it to the end, without an event loop, which is busy with the cell.
        with suppress(StopIteration):
            handling.__await__().send(None)
