"""A thread that says so while one refresh of a panel takes long, such as a read from far away."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

__all__ = ["LongTurns"]

LATE_S = 1.5
"""A view takes a kernel that is silent for 3 s to be busy."""
EVERY_S = 0.5


class LongTurns:
    """Call a function again and again while a turn takes long.

    Parameters
    ----------
    tell : callable
        Called with the seconds that the turn has taken so far; returns True to be called again.
    """

    def __init__(self, tell: Callable[[float], bool | None]) -> None:
        self._tell = tell
        self._began_s = math.inf
        self._closed = threading.Event()
        # A daemon: a store that never answers must not keep the interpreter from exiting.
        self._thread = threading.Thread(
            target=self._run, name="notebook_probe long reads", daemon=True
        )
        self._thread.start()

    @contextmanager
    def turn(self) -> Iterator[None]:
        """Time a turn; there is one at a time."""
        self._began_s = time.monotonic()
        try:
            yield
        finally:
            self._began_s = math.inf

    def close(self) -> None:
        """End the thread, without waiting for it; twice is fine."""
        self._closed.set()

    def _run(self) -> None:
        while not self._closed.wait(EVERY_S):
            late_s = time.monotonic() - self._began_s
            if late_s > LATE_S and not self._tell(late_s):
                return
