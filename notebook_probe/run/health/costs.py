"""Cost of watching: recorded at each step, and kept below a budget."""

from __future__ import annotations

from notebook_probe.probes.step.budget import Budget
from notebook_probe.run.health.meter import Meter

__all__ = ["CostAccount"]


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

    def add(
        self, step: int, seconds: float, cost: float, planned: float = 0.0, is_due: bool = False
    ) -> None:
        """Add a step that took ``seconds``, ``cost`` of them in our own code; see `Budget.add`."""
        self._meter.add(seconds, cost)
        self._budget.add(step, seconds, cost, planned, is_due)
