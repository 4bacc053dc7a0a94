"""The step that a training has reached, and who waits for it."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable

__all__ = ["ReachedStep"]


class ReachedStep:
    """How many updates are complete; while nobody waits, telling costs a comparison.

    Parameters
    ----------
    step : int

    Attributes
    ----------
    step : int
    """

    def __init__(self, step: int) -> None:
        self.step = step
        self._changed = threading.Condition()
        self._awaited: list[int] = []
        self._first = math.inf  # of those

    def reach(self, step: int) -> None:
        """So many are complete; told by the thread that trains."""
        self.step = step  # before it looks: a thread that begins to wait does the reverse
        if step >= self._first:
            self.wake()

    def wake(self) -> None:
        """Have whoever waits look whether it is over."""
        with self._changed:
            self._changed.notify_all()

    def wait_for(self, step: int, is_over: Callable[[], bool], timeout_s: float | None) -> bool:
        """Wait for a step, or until it is over; False when the time has passed before.

        Examples
        --------
        >>> reached = ReachedStep(3)
        >>> reached.wait_for(3, lambda: False, None), reached.wait_for(4, lambda: False, 0.0)
        (True, False)
        """
        with self._changed:
            self._awaited.append(step)
            self._first = min(self._awaited)
            try:
                return self._changed.wait_for(lambda: self.step >= step or is_over(), timeout_s)
            finally:
                self._awaited.remove(step)
                self._first = min(self._awaited, default=math.inf)
