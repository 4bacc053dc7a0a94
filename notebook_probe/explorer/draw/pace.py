"""How often a view is drawn: the dearer, the rarer."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from statistics import median_low

__all__ = ["Pace"]

SHARE = 0.03
"""Of one core, for all views together that are drawn at their own pace."""
SHORTEST_S = 0.5
REMEMBERED = 3
"""A drawing that was slow once, as the first is, does not count."""


class Pace:
    """Cost and rest of one view.

    Examples
    --------
    >>> pace = Pace()
    >>> pace.drew(0.084)
    >>> round(pace.rest_s(), 1), round(pace.rest_s(n_views=2), 1)
    (2.8, 5.6)
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._costs: deque[float] = deque(maxlen=REMEMBERED)
        self._drawn_s = 0.0

    def drew(self, cost_s: float) -> None:
        """A drawing has ended that took so much of a core."""
        self._costs.append(cost_s)
        self._drawn_s = self._clock()

    @property
    def cost_s(self) -> float | None:
        """What a drawing takes; None before the first."""
        return median_low(self._costs) if self._costs else None

    def rest_s(self, n_views: int = 1) -> float:
        """Seconds from a drawing to the next while training runs and ``n_views`` are looked at."""
        return max(SHORTEST_S, (self.cost_s or 0.0) * n_views / SHARE)

    def rested(self, n_views: int = 1) -> bool:
        """Whether it may be drawn again."""
        return not self._costs or self._clock() - self._drawn_s >= self.rest_s(n_views)
