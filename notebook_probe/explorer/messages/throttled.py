"""An expensive value: made seldom, and again at once when something has happened."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Generic, TypeVar

__all__ = ["Throttled"]

EVERY_S = 1.0
SHARE = 0.01
"""Share of a core that making the value may take."""

T = TypeVar("T")


class Throttled(Generic[T]):
    """Make a value at most once a second, and less often if that takes long.

    Examples
    --------
    >>> numbers = iter(range(3))
    >>> counted = Throttled(lambda: next(numbers))
    >>> [counted.value(), counted.value()]
    [0, 0]
    >>> counted.expire()
    >>> counted.value()
    1
    """

    def __init__(self, make: Callable[[], T]) -> None:
        self._make = make
        self._made: list[T] = []
        self._due_s = 0.0

    def value(self) -> T:
        """Return the last value, or a new one when it is time."""
        if not self._made or time.monotonic() >= self._due_s:
            # Thread time: waiting for the GIL of a training is not what the value costs.
            begun_s = time.thread_time()
            self._made = [self._make()]
            cost_s = time.thread_time() - begun_s
            self._due_s = time.monotonic() + max(EVERY_S, cost_s / SHARE)
        return self._made[0]

    def expire(self) -> None:
        """Make the value again at the next call."""
        self._made.clear()
