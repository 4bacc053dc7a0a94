"""Keeping the cost of watching inside a budget: quantities become due less often."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any

from notebook_probe.checks import is_number
from notebook_probe.probes.step.frame import PassedStep
from notebook_probe.probes.step.probe import Probe
from notebook_probe.probes.step.sink import EventSink
from notebook_probe.probes.step.stretching import (
    Accounts,
    Spending,
    Step,
    StepCosts,
    Stretchable,
    in_words,
    relaxed,
    stretched,
)

__all__ = ["Budget", "check_budget"]

WHOLE_STEPS = 100
"""Number of first steps with every due one measured: users watch them."""
WHOLE_S = 1.0
"""Seconds that these may cost together. The first step is measured in any case: it shows what
measuring costs, and gives a first complete picture."""
SETTLED_STEPS = 64
"""Steps to look at before a factor is changed, once factors have settled. The first looks are
shorter: after 4, 8, 16, ... steps if the first one took too long."""
FIRST_LOOK, LONGEST_LOOK = 4, 512
FIRST_FACTOR = 8
"""Factor with which compiled graphs read until it is known what that costs."""
MOST_PATIENCE = 16
"""Maximum number of usual looks before factors are halved again, if that was too much before."""
LEAST = 0.5
"""Share of the budget that is for measuring, however much the rest of watching costs."""
AIM = 0.9
"""Share of what is left for measuring that is aimed at."""
ROOM = 0.7
"""Share of it below which factors are halved again."""
IS_SPENT = "are spent whatever is measured"
BOUGHT_STEPS = 8
"""Steps that are measured whole after something has happened."""
BOUGHT_S, BOUGHT_SHARE = 1.0, 0.01
"""Seconds that all of these may cost together, and the share of the training's time that is added
to them. It is not part of the budget, which is an average over usual steps."""


class Budget:
    """Limit on due steps of a quantity: every n-th is measured; n follows the cost.

    The most expensive quantity is stretched first, and only where its schedule is the default. What
    watching costs in a step in which nothing is due is part of the budget, but cannot be saved by
    measuring less: `LEAST` of the budget is for measuring in any case.

    Parameters
    ----------
    events : EventSink, optional
        Every change is one, of kind ``"budget"``.
    percent : float, optional
        Per cent of step time that measuring may cost; None is no limit.

    Attributes
    ----------
    factors : mapping
        Variable -> factor: one of this number of due steps is measured. Replaced, never changed.
    n_turns : int
        Number of those steps in which some modules are measured, as these take turns.
    whole : range
        Steps in which everything that is due is measured, whatever the factors are.
    n_bought : int
        Number of such steps so far.
    """

    def __init__(self, events: EventSink | None = None, percent: float | None = None) -> None:
        self.factors: Mapping[str, int] = MappingProxyType({})
        self.n_turns = 1
        self.whole, self.n_bought = range(0), 0
        self._whole_s = self._bought_s = self._trained_s = 0.0
        self._events = events
        self._limit = _limit(percent)
        self._accounts: Accounts | None = None
        self._spending = Spending()
        self._last: StepCosts | None = None
        self.begin_anew()

    def account(self, accounts: Accounts) -> None:
        """Set the accounts of what is spent for each probe."""
        self._accounts = accounts

    def set_limit(self, percent: float | None) -> None:
        """Limit the cost to ``percent`` of step time; every due step is measured until it is known.

        Raises
        ------
        ValueError
            For anything but a positive number or None.
        """
        self._limit = _limit(percent)
        self.factors = MappingProxyType({})
        self.begin_anew()

    def begin_anew(self) -> None:
        """Look at the next steps alone: other quantities are measured from now on."""
        self._look = FIRST_LOOK if self.factors else WHOLE_STEPS
        self._left_s = math.inf if self.factors else WHOLE_S
        self._patience, self._was_relaxed, self._n_low = 1, False, 0
        self._clear()

    def _clear(self) -> None:
        self._spending.clear(self._accounts.look()[1] if self._accounts is not None else 0.0)

    def note_graphs(self) -> None:
        """Note that compiled graphs read: what that takes is seen from longer steps only."""
        if not self._spending.has_graphs:
            self._spending.has_graphs = True
            self._look = FIRST_LOOK

    def factor(self, probe: Probe) -> int:
        """Return the number of due steps of a probe of which one is measured."""
        return self.factors.get(probe.variable, 1) if probe.can_stretch else 1

    def buy(self, step: int) -> range:
        """Measure steps from ``step`` on in full, while the budget pays for it; return them."""
        n = 0
        if self.factors and step >= self.whole.stop:
            left_s = BOUGHT_S + BOUGHT_SHARE * self._trained_s - self._bought_s
            n = min(int(left_s / max(self._whole_s, 1e-9)), BOUGHT_STEPS)
        if n <= 0:
            return range(0)
        self.whole, self.n_bought = range(step, step + n), self.n_bought + n
        return self.whole

    @property
    def percent(self) -> float | None:
        """The limit; None without one."""
        return self._limit if math.isfinite(self._limit) else None

    @property
    def text(self) -> str:
        """Description of the factors; empty while every due step is measured."""
        done = in_words(self.factors)
        if not done:
            return ""
        costs = self._last
        # What measuring costs is said elsewhere, of the last steps: two figures would differ.
        fixed = 0.0 if costs is None else costs.fixed
        if fixed < 0.05:
            aim = f"the aim is below {self._limit:g} %"
        elif fixed <= (1.0 - LEAST) * self._limit:
            aim = f"the aim is below {self._limit:g} %, of which {fixed:.1f} % {IS_SPENT}"
        else:
            least = LEAST * self._limit
            aim = f"the aim is below {least:g} % for measuring; {fixed:.1f} % more {IS_SPENT}"
        bought = f"; {self.n_bought} steps measured whole after events" if self.n_bought else ""
        return f"{done}; {aim}{bought}"

    def add(
        self, step: int, seconds: float, cost: float, planned: float = 0.0, is_due: bool = False
    ) -> None:
        """Add a step that took ``seconds``, ``cost`` of them in our own code.

        Parameters
        ----------
        step : int
        seconds, cost : float
        planned : float
            Seconds of the cost that were spent once, to plan what is read together.
        is_due : bool
            Something was measured.
        """
        if self._limit == math.inf:
            self._compare([(seconds - planned, cost - planned, is_due)])
            return
        self._trained_s += seconds
        is_bought = step in self.whole
        if is_bought or (is_due and not self.factors):
            self._whole_s = cost - planned
        if is_bought:  # no usual step; nor are those before it looked at with later ones
            self._bought_s += cost - planned
            self._clear()
            return
        spending = self._spending
        spending.add(seconds - planned, cost - planned, is_due)
        self._left_s -= cost - planned
        is_over = spending.n_steps >= self._look or self._left_s < 0
        if is_over and spending.n_steps % self._period == 0:
            self._left_s = math.inf
            self._decide(step)

    def add_passed(self, passed: Mapping[int, PassedStep]) -> None:
        """Add steps in which nothing was due, as `add` adds each."""
        if self._limit == math.inf:
            self._compare([(row.seconds, row.cost, False) for row in passed.values()])
            return
        cost, n_steps = sum([row.cost for row in passed.values()]), len(passed)
        decides = self._spending.n_steps + n_steps >= self._look or self._left_s < cost
        if decides or min(passed) < self.whole.stop:
            for step, row in passed.items():
                self.add(step, row.seconds, row.cost)
            return
        self._trained_s += sum([row.seconds for row in passed.values()])
        self._left_s -= cost
        self._spending.add_idle([(row.seconds, row.cost) for row in passed.values()])

    def _compare(self, steps: Iterable[Step]) -> None:
        """Look at what graphs take, without a limit as well."""
        spending = self._spending
        if not spending.has_graphs:
            return
        for step in steps:
            spending.add(*step)
        if spending.n_steps >= SETTLED_STEPS:
            spending.compare()
            spending.clear(0.0)

    @property
    def in_graphs_s(self) -> float:
        """Seconds by which what compiled graphs read makes a due step longer.

        0 if none does, NaN until some steps in which nothing is due can be compared.
        """
        return self._spending.in_graphs_s

    @property
    def _period(self) -> int:
        """Number of due steps after which as many modules were measured as usual."""
        return max(1, max(self.factors.values(), default=1) // self.n_turns)

    def _decide(self, step: int) -> None:
        if self._accounts is None:
            self._clear()
            return
        expected, spent = self._accounts.look()
        costs = self._last = self._spending.costs(expected, spent)
        n_steps = self._spending.n_steps
        self._spending.clear(spent)
        wanted = self._wanted(costs, expected)
        has_settled = wanted == self.factors and self._look >= SETTLED_STEPS
        most = LONGEST_LOOK if has_settled else SETTLED_STEPS
        self._look = min(max(2 * n_steps, FIRST_LOOK), most)
        if wanted == self.factors:
            return
        self.factors = MappingProxyType(wanted)
        if self._events is not None:
            done = in_words(wanted) or "every due step"
            text = f"{costs.in_words}, budget {self._limit:g} %: measured from here on is {done}"
            detail = json.dumps({"every": wanted, "turns": self.n_turns})
            self._events.event(step, "budget", text, detail)

    def _wanted(self, costs: StepCosts, expected: Mapping[Probe, float]) -> Mapping[str, int]:
        """Return the powers of two, from the present ones, that spend the budget."""
        if not self._spending.knows_graphs:
            names = (probe.variable for probe in expected if probe.can_stretch)
            return {name: max(self.factors.get(name, 1), FIRST_FACTOR) for name in names}
        left = max(self._limit - costs.fixed, LEAST * self._limit)
        aim = AIM * left
        stretchable = Stretchable.among(expected, self.factors, costs)
        self._n_low = self._n_low + 1 if costs.due < ROOM * left else 0
        if costs.due > left:
            if self._was_relaxed:  # which was too much
                self._patience = min(2 * self._patience, MOST_PATIENCE)
            self._was_relaxed = False
            return stretched(stretchable, costs.due - aim)
        if self._n_low >= self._patience:
            wanted = relaxed(stretchable, aim - costs.due)
            self._was_relaxed |= wanted != self.factors
            return wanted
        return self.factors


def check_budget(percent: Any) -> None:
    """Raise ValueError for anything but a positive number of per cent, or None."""
    if percent is not None and not (is_number(percent) and 0 < percent < math.inf):
        raise ValueError(f"budget={percent!r}; allowed: a positive number of per cent, or None")


def _limit(percent: float | None) -> float:
    check_budget(percent)
    return math.inf if percent is None else float(percent)
