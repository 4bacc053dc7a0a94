"""Pace of a view: the more expensive a drawing, the less often it is made."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from statistics import median_low

__all__ = ["Pace"]

SHARE = 0.03
"""Share of one core for all views together that are drawn at their own pace."""
SHORTEST_S = 0.5
REMEMBERED = 3
"""Number of drawings in the median, so that a single slow one does not count."""
SECOND_AFTER_S = 2.0
"""Maximum rest after the first drawing, which loads fonts and modules and is untypical."""


class Pace:
    """Cost and rest of one view.

    Examples
    --------
    >>> pace = Pace()
    >>> for cost_s in (0.7, 0.084):
    ...     pace.drew(cost_s)
    >>> round(pace.rest_s(), 1), round(pace.rest_s(n_views=2), 1)
    (2.8, 5.6)
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._costs: deque[float] = deque(maxlen=REMEMBERED)
        self._drawn_s = 0.0

    def drew(self, cost_s: float) -> None:
        """Note that a drawing has ended, with its share of a core."""
        self._costs.append(cost_s)
        self._drawn_s = self._clock()

    @property
    def cost_s(self) -> float | None:
        """Seconds that a drawing takes; None before the first."""
        return median_low(self._costs) if self._costs else None

    def rest_s(self, n_views: int = 1) -> float:
        """Seconds from a drawing to the next while training runs and ``n_views`` are looked at."""
        # The views share one budget, so the rest grows with their number.
        rest_s = max(SHORTEST_S, (self.cost_s or 0.0) * n_views / SHARE)
        return rest_s if len(self._costs) > 1 else min(rest_s, SECOND_AFTER_S)

    def rested(self, n_views: int = 1) -> bool:
        """Return whether the view may be drawn again."""
        return not self._costs or self._clock() - self._drawn_s >= self.rest_s(n_views)
