"""Keeping the cost of watching inside a budget: quantities become due less often."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

from notebook_probe.probes.step.probe import Probe
from notebook_probe.probes.step.sink import Events
from notebook_probe.probes.step.stretching import (
    StepCosts,
    Stretchable,
    in_words,
    relaxed,
    step_costs,
    stretched,
)

__all__ = ["Budget", "check_budget"]

WHOLE_STEPS = 100
"""Number of first steps of a run with every due one measured: users watch them; they are slow."""
SETTLED_STEPS = 32
"""Steps to look at before a factor is changed; more while rarely anything is due."""
AIM = 0.8
"""Share of the budget that is aimed at."""
ROOM = 0.4
"""Share of the budget, without fixed costs, below which factors are halved again."""
LEAST = 0.2
"""Share of the budget that measuring may take, even if what cannot be stretched takes all."""


class Budget:
    """Limit on due steps of a quantity: every n-th is measured; n follows the cost.

    A quantity is stretched at all modules alike, the most expensive first, and only where its
    schedule is the default.

    Parameters
    ----------
    events : Events, optional
        Every change is one, of kind ``"budget"``.
    percent : float, optional
        Per cent of step time that watching may cost; None is no limit.

    Attributes
    ----------
    factors : mapping
        Variable -> of so many due steps one is measured. Replaced, never changed.
    """

    def __init__(self, events: Events | None = None, percent: float | None = None) -> None:
        self.factors: Mapping[str, int] = MappingProxyType({})
        self._events = events
        self._limit = _limit(percent)
        self._costs: Callable[[], Mapping[Probe, float]] = dict
        self._n_seen = self._n_unsettled = 0
        self._begin()

    def account(self, costs: Callable[[], Mapping[Probe, float]]) -> None:
        """Set the function that returns each measured probe's cost in a step."""
        self._costs = costs

    def set_limit(self, percent: float | None) -> None:
        """Limit the cost to ``percent`` of step time; every due step is measured until it is known.

        Raises
        ------
        ValueError
            For anything but a positive number or None.
        """
        self._limit = _limit(percent)
        self.factors = MappingProxyType({})
        self._n_seen = WHOLE_STEPS  # who asks in the midst of a training need not wait
        self._n_unsettled = 0
        self._begin()

    def factor(self, probe: Probe) -> int:
        """Return the number of due steps of a probe of which one is measured."""
        return self.factors.get(probe.variable, 1) if probe.can_stretch else 1

    @property
    def percent(self) -> float | None:
        """The limit; None without one."""
        return self._limit if math.isfinite(self._limit) else None

    @property
    def text(self) -> str:
        """Description of the factors; empty while every due step is measured."""
        done = in_words(self.factors)
        return f"{done}; the aim is below {self._limit:g} %" if done else ""

    def add(self, step: int, seconds: float, cost: float) -> None:
        """Add a step that took ``seconds``, ``cost`` of them in our own code."""
        if self._limit == math.inf:
            return
        self._n_seen += 1
        if self._n_seen == WHOLE_STEPS - SETTLED_STEPS:
            self._begin()
        if self._n_unsettled:
            self._n_unsettled -= 1
            return
        self._seconds.append(seconds)
        self._spent.append(cost)
        if self._n_seen >= WHOLE_STEPS and len(self._seconds) >= self._enough:
            self._decide(step, step_costs(self._seconds, self._spent))
            self._begin()

    def _decide(self, step: int, costs: StepCosts) -> None:
        wanted = self._wanted(costs)
        if wanted == self.factors:
            return
        self.factors = MappingProxyType(wanted)
        # Once everything has been due, what is read together with what has been worked out.
        self._n_unsettled = max(wanted.values(), default=1)
        if self._events is not None:
            done = in_words(wanted) or "every due step"
            text = f"watching cost {costs.total:.1f} % of step time, budget {self._limit:g} %: "
            self._events.event(step, "budget", f"{text}measured from here on is {done}")

    def _wanted(self, costs: StepCosts) -> Mapping[str, int]:
        """Return the powers of two, from the present ones, that bring the cost below the budget."""
        counted = self._costs()
        whole = (p for p in counted if p.can_stretch and self.factor(p) == 1)
        costs = costs.less_fixed(sum(counted[probe] for probe in whole))
        aim = max(AIM * self._limit - costs.fixed, LEAST * self._limit)
        stretchable = Stretchable.among(counted, self.factors, costs.due)
        if costs.total > self._limit and costs.due > aim:
            return stretched(stretchable, costs.due - aim)
        most = min(aim, AIM * max(self._limit - costs.fixed, aim))
        if costs.due < ROOM / AIM * most:
            return relaxed(stretchable, most - costs.due)
        return self.factors

    def _begin(self) -> None:
        self._seconds: list[float] = []
        self._spent: list[float] = []
        self._enough = max(SETTLED_STEPS, 4 * max(self.factors.values(), default=1))


def check_budget(percent: Any) -> None:
    """Raise ValueError for anything but a positive number of per cent, or None."""
    is_number = isinstance(percent, int | float) and not isinstance(percent, bool)
    if percent is not None and not (is_number and 0 < percent < math.inf):
        raise ValueError(f"budget={percent!r}; allowed: a positive number of per cent, or None")


def _limit(percent: float | None) -> float:
    check_budget(percent)
    return math.inf if percent is None else float(percent)
