"""Ctrl-C while a loop runs: the step is finished first."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

__all__ = ["interrupts_wait"]


@contextmanager
def interrupts_wait(act: Callable[[], None]) -> Iterator[None]:
    """Call ``act`` at the first interrupt inside; the second raises KeyboardInterrupt.

    Only on the main thread, and where nobody else handles interrupts.
    """
    is_ours = (
        threading.current_thread() is threading.main_thread()
        and signal.getsignal(signal.SIGINT) is signal.default_int_handler
    )
    if not is_ours:
        yield
        return

    def first(number: int, frame: FrameType | None) -> None:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        act()

    signal.signal(signal.SIGINT, first)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)
