"""What watching costs: kept account of at each step, and kept below a budget."""

from __future__ import annotations

import math

from notebook_probe.probes.step.budget import Budget
from notebook_probe.run.health.meter import Meter

__all__ = ["CostAccount", "checked_budget"]


class CostAccount:
    """The account of one run.

    Parameters
    ----------
    meter : Meter
        Looks back over the last steps.
    budget : Budget
        Stretches schedules.
    """

    def __init__(self, meter: Meter, budget: Budget) -> None:
        self._meter, self._budget = meter, budget

    def add(self, step: int, seconds: float, cost: float) -> None:
        """A step took ``seconds``, ``cost`` of them in our own code."""
        self._meter.add(seconds, cost)
        self._budget.add(step, seconds, cost)

    def limit(self, percent: float | None) -> None:
        """Stay below ``percent`` of step time from now on; None is no limit.

        Raises
        ------
        ValueError
            For anything but a positive number or None.
        """
        self._budget.set_limit(checked_budget(percent))


def checked_budget(percent: float | None) -> float | None:
    """A share of step time in per cent, or None; raises ValueError for anything else."""
    if percent is None:
        return None
    is_number = isinstance(percent, int | float) and not isinstance(percent, bool)
    if not is_number or not 0 < percent < math.inf:
        raise ValueError(f"budget={percent!r}; allowed: a positive number of per cent, or None")
    return float(percent)
