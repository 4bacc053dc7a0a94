"""Steps per second and the overhead of watching, which a budget keeps low."""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Mapping
from statistics import median

from notebook_probe.probes.step.budget import Budget
from notebook_probe.probes.step.frame import PassedStep

__all__ = ["Meter"]


class Meter:
    """Looks back over the last steps; written by the training thread, read by anyone.

    Parameters
    ----------
    budget : Budget
        Receives the cost of each step, too, and stretches schedules.
    window : int
        Steps to look back on.

    Attributes
    ----------
    total_s, total_cost_s : float
        Seconds of all steps so far, and those of them spent in our own code.
    """

    def __init__(self, budget: Budget, window: int = 64) -> None:
        self._budget = budget
        self._seconds: deque[float] = deque(maxlen=window)
        self._cost: deque[float] = deque(maxlen=window)
        self._is_due: deque[bool] = deque(maxlen=window)
        self.total_s = self.total_cost_s = 0.0
        self._last = 0.0
        self._rests = True

    def add(
        self, step: int, seconds: float, cost: float, planned: float = 0.0, is_due: bool = False
    ) -> None:
        """Add a step that took ``seconds``, ``cost`` of them in our own code; see `Budget.add`."""
        self._seconds.append(seconds)
        self._cost.append(cost)
        self._is_due.append(is_due)
        self.total_s += seconds
        self.total_cost_s += cost
        if is_due and (in_graphs := self._budget.in_graphs_s) > 0.0:  # NaN while it is not known
            self.total_cost_s += in_graphs
        self._last = time.monotonic()
        self._rests = False
        self._budget.add(step, seconds, cost, planned, is_due)

    def add_passed(self, passed: Mapping[int, PassedStep]) -> None:
        """Add steps in which nothing was due, as `add` adds each."""
        rows = [*passed.values()]
        self._seconds.extend([row.seconds for row in rows])
        self._cost.extend([row.cost for row in rows])
        self._is_due.extend([False] * len(rows))
        self.total_s += sum([row.seconds for row in rows])
        self.total_cost_s += sum([row.cost for row in rows])
        self._last = time.monotonic()
        self._rests = False
        self._budget.add_passed(passed)

    def rest(self) -> None:
        """Note the end of the loop: nothing moves until the next step."""
        self._rests = True

    @property
    def n_steps(self) -> int:
        """Number of steps in the window."""
        return len(self._seconds)

    @property
    def steps_per_second(self) -> float:
        """NaN before the first step."""
        # Copied in one step: the training thread appends meanwhile.
        seconds = list(self._seconds)
        # The median: one long step, as with a checkpoint, is no slower training.
        return 1.0 / max(median(seconds), 1e-9) if seconds else math.nan

    @property
    def cost_percent(self) -> float:
        """Share of the last steps' time spent in probes and row keeping; NaN before the first.

        With the time inside compiled graphs, once it is known.
        """
        seconds = sum(list(self._seconds))
        if not seconds:
            return math.nan
        in_graphs = self._in_graphs_s * sum(list(self._is_due))
        return 100.0 * (sum(list(self._cost)) + in_graphs) / seconds

    @property
    def graphs_percent(self) -> float:
        """Part of `cost_percent` that is spent inside compiled graphs; NaN until it is known."""
        seconds = sum(list(self._seconds))
        in_graphs = self._budget.in_graphs_s * sum(list(self._is_due))
        return 100.0 * in_graphs / seconds if seconds else 0.0

    @property
    def _in_graphs_s(self) -> float:
        known = self._budget.in_graphs_s
        return 0.0 if math.isnan(known) else known

    @property
    def is_moving(self) -> bool:
        """A step ended lately: within three seconds or ten usual steps."""
        seconds = list(self._seconds)
        if self._rests or not seconds:
            return False
        return time.monotonic() - self._last < max(3.0, 10.0 * median(seconds))
