"""Defer an interrupt to the end of a section, where half of the work would be lost.

A notebook's stop button and Ctrl-C are one signal, which Python turns into a KeyboardInterrupt
between any two instructions of the main thread. Cleaning up after that is no cure, since it can
be interrupted as well. So the signal is noted in the section, and its handler is called at the end.
"""

from __future__ import annotations

import importlib
import math
import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from functools import wraps
from types import FrameType
from typing import Any, ParamSpec, TypeVar

__all__ = ["InterruptibleCondition", "join", "uninterrupted", "whole"]

Given = ParamSpec("Given")
Result = TypeVar("Result")

SLICE_S = 0.05
"""The longest time until a thread that waits for a condition or a thread notices an interrupt."""
PATIENCE_S = 1.0
"""Seconds after which a second interrupt is raised at once: something hangs."""

# The functions below `signal.signal`, which converts to enums: 0.3 instead of 3 microseconds.
_signal = importlib.import_module("_signal")
_set_handler, _get_handler, _SIGINT = _signal.signal, _signal.getsignal, int(signal.SIGINT)
_own_thread = threading.get_ident


class _Uninterrupted:
    """The context of all sections; only the main thread changes it."""

    __slots__ = ("_before", "_came", "_came_at", "_depth", "_main")

    def __init__(self) -> None:
        self._find_main()
        if hasattr(os, "register_at_fork"):
            # In a forked child the thread that forked is the main thread.
            os.register_at_fork(after_in_child=self._find_main)
        self._depth = 0
        self._before: Callable[[int, FrameType | None], Any] | None = None
        self._came = False
        self._came_at = 0.0

    def _find_main(self) -> None:
        self._main = threading.main_thread().ident

    def __enter__(self) -> None:
        if _own_thread() != self._main:
            return
        if self._depth:
            self._depth += 1
            return
        before = _get_handler(_SIGINT)
        if callable(before):
            self._came = False
            _set_handler(_SIGINT, self._note)  # from here on nothing gets in between
            self._before, self._depth = before, 1

    def __exit__(self, *_: object) -> None:
        if not self._depth or _own_thread() != self._main:
            return
        if self._depth > 1:
            self._depth -= 1
            return
        before, self._before = self._before, None
        self._depth = 0
        _set_handler(_SIGINT, before)
        if self._came and before is not None:
            before(_SIGINT, sys._getframe())

    @property
    def is_on(self) -> bool:
        """True if the calling thread is in such a section, which an interrupt may end."""
        return self._depth > 0 and _own_thread() == self._main

    @property
    def is_awaited(self) -> bool:
        """True if an interrupt waits for the end of the section."""
        return self._came and self.is_on

    def _note(self, number: int, frame: FrameType | None) -> None:
        now = time.monotonic()
        if not self._came:
            self._came, self._came_at = True, now
        elif now - self._came_at > PATIENCE_S and self._before is not None:
            # Cleared first: the handler may raise KeyboardInterrupt.
            self._came = False
            self._before(number, frame)


uninterrupted = _Uninterrupted()
"""``with uninterrupted:`` has an interrupt wait for the end of the block.

On other threads, which no interrupt reaches, it does nothing. A second interrupt that comes a
second later or more is let through at once, so that a store that hangs can be left.
"""


def whole(function: Callable[Given, Result]) -> Callable[Given, Result]:
    """Return ``function`` with an interrupt deferred to the end of each call."""

    @wraps(function)
    def call(*args: Given.args, **kwargs: Given.kwargs) -> Result:
        if uninterrupted._depth and _own_thread() == uninterrupted._main:
            return function(*args, **kwargs)  # within a section already, as in most of a step
        with uninterrupted:
            return function(*args, **kwargs)

    return call


def join(thread: threading.Thread, timeout_s: float = math.inf) -> None:
    """Wait until a thread has ended, or for a number of seconds; an interrupt only ends the wait.

    Up to Python 3.12 an interrupt in ``thread.join()`` has the thread taken for ended while it runs
    (https://github.com/python/cpython/issues/89437): it is asked in slices, none of which is left
    early.
    """
    until = time.monotonic() + timeout_s
    while (left_s := until - time.monotonic()) > 0 and thread.is_alive():
        with uninterrupted:
            thread.join(min(left_s, SLICE_S))


class InterruptibleCondition(threading.Condition):
    """A condition whose lock stays free after an interrupt.

    The one of `threading` takes its lock in a Python method. An interrupt may come after it and
    before the block that frees the lock. Here the block is uninterrupted, and a thread that waits
    in it gives up when an interrupt comes.
    """

    def __enter__(self) -> bool:
        uninterrupted.__enter__()
        return super().__enter__()

    def __exit__(self, *raised: Any) -> None:
        super().__exit__(*raised)
        uninterrupted.__exit__()

    def wait_for(self, predicate: Callable[[], Any], timeout: float | None = None) -> Any:
        """Wait until ``predicate()`` is true, as `threading.Condition` does; return its value."""
        until = math.inf if timeout is None else time.monotonic() + timeout
        while not (found := predicate()):
            left = until - time.monotonic()
            if left <= 0 or uninterrupted.is_awaited:
                break
            # A lock cannot be interrupted while the handler only takes a note: look again and
            # again.
            most = SLICE_S if uninterrupted.is_on else threading.TIMEOUT_MAX
            self.wait(min(left, most))
        return found
