"""The step that a training has reached, and who waits for it."""

from __future__ import annotations

import math
from collections.abc import Callable

from notebook_probe.uninterrupted import InterruptibleCondition

__all__ = ["ReachedStep"]


class ReachedStep:
    """Number of completed updates; cheap to update while no thread waits.

    Parameters
    ----------
    step : int

    Attributes
    ----------
    step : int
    first : float
        The first step that a thread waits for; infinite without one.
    """

    def __init__(self, step: int) -> None:
        self.step = step
        self._changed = InterruptibleCondition()
        self._awaited: list[int] = []
        self.first = math.inf

    def reach(self, step: int) -> None:
        """Set the number of completed updates; called by the training thread."""
        self.step = step  # before it looks: a thread that begins to wait does the reverse
        if step >= self.first:
            self.wake()

    def wake(self) -> None:
        """Wake the waiting threads."""
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
            self.first = min(self._awaited)
            try:
                return self._changed.wait_for(lambda: self.step >= step or is_over(), timeout_s)
            finally:
                self._awaited.remove(step)
                self.first = min(self._awaited, default=math.inf)
