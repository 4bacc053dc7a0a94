"""What the kernel side of the tests needs: a comm that notes what it was told, and a busy cell."""

from __future__ import annotations

import threading
import time
from typing import Any

from comm import create_comm

from notebook_probe.explorer.kernel import kernel_route
from notebook_probe.explorer.leaving import widget_lock


class FakePanel:
    """Echoes every message with the thread that handled it and the buffers that came along."""

    def __init__(self, carried: bool = True) -> None:
        self.stop = threading.Event()
        self.comm = create_comm(target_name="fake_panel")
        self.comm.on_msg(self._received)
        if carried:
            kernel_route().carry(self.comm)

    def _received(self, message: dict[str, Any]) -> None:
        asked = message["content"]["data"]["content"]
        if asked["type"] == "ping":
            kernel_route().answered(asked["token"])
            return
        if asked["type"] == "fail":
            raise ValueError("a callback that fails")
        buffers = [bytes(buffer) for buffer in message["buffers"]]
        on_main = threading.current_thread() is threading.main_thread()
        with widget_lock:
            self.comm.send({"echo": asked, "on_main": on_main}, message["metadata"], buffers)
        if asked["type"] == "stop":
            self.stop.set()


def train_until_stopped(panel: FakePanel, limit_s: float = 150.0) -> None:
    """A user's blocking loop: it ends by a click, or when no click gets through."""
    print("training")
    deadline = time.monotonic() + limit_s
    while not panel.stop.is_set() and time.monotonic() < deadline:
        kernel_route().pump()
        time.sleep(0.001)
    print("stopped" if panel.stop.is_set() else "gave up")
    panel.stop.clear()
