"""Quantities measured less often, so that watching stays inside a budget."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, median
from typing import Protocol, TypeAlias

from notebook_probe.probes.step.probe import Probe

__all__ = [
    "LARGEST",
    "Accounts",
    "Spending",
    "StepCosts",
    "Stretchable",
    "in_words",
    "relaxed",
    "stretched",
]

Step: TypeAlias = tuple[float, float, bool]
"""Seconds, seconds of our code among them, and whether something was measured."""

LARGEST = 1024
"""Maximum factor: at least one of this number of due steps is measured, at any cost."""
AT_ONCE = 16
"""Maximum change of a factor after one look at a few steps: the machine may have been busy."""
NORM_WEIGHT = 0.5
"""A norm is what most look at: it is stretched once it takes twice what the next does."""
HIDDEN = 1.0, 3.0
"""Bounds of the ratio of the real cost of measuring to the counted one."""
FEW = 4
"""Least number of steps of a kind of which a median is made."""


class Accounts(Protocol):
    """Protocol of the accounts of what is spent for each probe.

    `ProbeAccounts`, which imports this module, is one.
    """

    def look(self) -> tuple[Mapping[Probe, float], float]:
        """Return the average seconds of a step for each probe, and those spent so far for all.

        The average is of what each would take if it was measured as often as it is now.
        """


@dataclass(frozen=True, slots=True)
class StepCosts:
    """Cost of watching in a step, in per cent of the step itself."""

    fixed: float
    """Cost in a step in which nothing is due, and of what cannot be measured less often."""
    due: float
    """Average cost of measuring, in addition to the fixed one."""
    beyond: float
    """Part of it that is spent on no probe, but because a step has some."""

    @property
    def in_words(self) -> str:
        """Description of the costs.

        Examples
        --------
        >>> StepCosts(1.234, 4.5, 0.1).in_words
        'measuring costs 4.5 % of step time, the rest of watching 1.2 %'
        """
        rest = f", the rest of watching {self.fixed:.1f} %" if self.fixed >= 0.05 else ""
        return f"measuring costs {self.due:.1f} % of step time{rest}"


class Spending:
    """Time of some steps, and how much of it was spent on watching.

    The time of a step is a median, because a validation or a slow disk between two steps is not our
    cost. A hook also makes torch slower where no timer runs: this is estimated from how much longer
    steps are in which more is due. That, and the cost of a step in which nothing is due, is
    remembered when steps are cleared.

    Attributes
    ----------
    has_graphs : bool
        Compiled graphs read, in which no hook counts: a due step takes as much more as it is
        longer, whatever is due.
    """

    def __init__(self) -> None:
        self._idle, self._hidden = 0.0, HIDDEN[0]
        self.has_graphs, self._in_graphs = False, math.nan
        self.clear(0.0)

    def clear(self, spent: float) -> None:
        """Forget the steps, until which so many seconds were spent for probes."""
        self._steps: list[Step] = []
        self._spent = spent

    def add(self, seconds: float, cost: float, is_due: bool) -> None:
        """Add a step of so many seconds, ``cost`` of them ours; ``is_due``: some was measured."""
        self._steps.append((seconds, cost, is_due))

    def add_idle(self, steps: Iterable[tuple[float, float]]) -> None:
        """Add steps in which nothing was due, as `add` adds each."""
        self._steps += [(seconds, cost, False) for seconds, cost in steps]

    @property
    def n_steps(self) -> int:
        return len(self._steps)

    @property
    def knows_graphs(self) -> bool:
        """True unless graphs read, and it is not known yet by how much that makes steps longer."""
        return not (self.has_graphs and math.isnan(self._in_graphs))

    @property
    def in_graphs_s(self) -> float:
        """Seconds by which what graphs read makes a due step longer; NaN until it is known."""
        return self._in_graphs if self.has_graphs else 0.0

    def compare(self) -> None:
        """Compare the steps in which something was due with the others, if there are enough."""
        idle = [one for one in self._steps if not one[2]]
        due = [one for one in self._steps if one[2]]
        if len(idle) >= FEW:
            self._idle = median(cost for _, cost, _ in idle)
            if len(due) >= FEW and self.has_graphs:
                self._hidden, self._in_graphs = HIDDEN[0], self._look_into_graphs(idle, due)
            elif len(due) >= FEW:
                self._hidden = self._look_for_hidden(idle, due)

    def costs(self, expected: Mapping[Probe, float], spent: float) -> StepCosts:
        """Return the average costs of a step.

        Parameters
        ----------
        expected : mapping
            Average seconds for each probe: in few steps some may have been due too often.
        spent : float
            Seconds spent for all probes so far.
        """
        self.compare()
        idle = [one for one in self._steps if not one[2]]
        due = [one for one in self._steps if one[2]]
        bare = max(median(seconds - cost for seconds, cost, _ in idle or due), 1e-9)
        in_graphs = 0.0 if math.isnan(self._in_graphs) else self._in_graphs
        of_due = sum(max(cost - self._idle, 0.0) + in_graphs for _, cost, _ in due)
        beyond = max(of_due - (spent - self._spent), 0.0) / self.n_steps
        fixed = min(self._idle, fmean(cost for _, cost, _ in self._steps))
        stretched = sum(one for probe, one in expected.items() if probe.can_stretch)
        others = sum(expected.values()) - stretched
        share = stretched / (stretched + others) if stretched else 0.0
        percent = 100.0 * self._hidden / bare
        return StepCosts(
            fixed=100.0 * fixed / bare + percent * (others + (1.0 - share) * beyond),
            due=percent * (stretched + share * beyond),
            beyond=percent * share * beyond,
        )

    def _look_into_graphs(self, idle: Sequence[Step], due: Sequence[Step]) -> float:
        """Return the seconds by which due steps are longer than the hooks have counted."""
        longer = median(one[0] for one in due) - median(one[0] for one in idle)
        return max(longer - (median(one[1] for one in due) - self._idle), 0.0)

    def _look_for_hidden(self, idle: Sequence[Step], due: Sequence[Step]) -> float:
        """Return the ratio of the real cost to the counted one, half of it from before."""
        most = max(cost for _, cost, _ in due)
        dear = [one for one in due if 2 * (one[1] - self._idle) >= most - self._idle]
        if len(dear) < FEW:
            return self._hidden
        longer = median(one[0] for one in dear) - median(one[0] for one in idle)
        counted = max(median(one[1] for one in dear) - self._idle, 1e-9)
        seen = min(max(longer / counted, HIDDEN[0]), HIDDEN[1])
        return math.sqrt(self._hidden * seen)


@dataclass(slots=True)
class Stretchable:
    """Quantity with the default schedule, at all its modules."""

    name: str
    is_norm: bool
    factor: int
    """Number of due steps of which one is measured."""
    share: float
    """Per cent of step time that it takes so."""

    @property
    def weight(self) -> float:
        """The larger, the sooner it is stretched."""
        return NORM_WEIGHT * self.share if self.is_norm else self.share

    @classmethod
    def among(
        cls, costs: Mapping[Probe, float], factors: Mapping[str, int], spent: StepCosts
    ) -> list[Stretchable]:
        """Return the quantities among measured probes, with their shares of what is spent.

        The fixed cost of a step in which anything is due can only be saved by the quantities that
        are due most often.
        """
        seconds: defaultdict[str, float] = defaultdict(float)
        for probe, one in costs.items():
            if probe.can_stretch:
                seconds[probe.variable] += one
        norms = {probe.variable for probe in costs if _is_norm(probe)}
        least = min((factors.get(name, 1) for name in seconds), default=1)
        often = {name: one for name, one in seconds.items() if factors.get(name, 1) == least}
        total, of_often = sum(seconds.values()) or 1.0, sum(often.values()) or 1.0
        alone = spent.due - spent.beyond
        return [
            cls(
                name,
                name in norms,
                factors.get(name, 1),
                alone * one / total + spent.beyond * often.get(name, 0.0) / of_often,
            )
            for name, one in seconds.items()
        ]


def stretched(quantities: Iterable[Stretchable], excess: float) -> dict[str, int]:
    """Double the factor of the most expensive one, repeatedly, until ``excess`` per cent are saved.

    Or until it is the turn of one that has been doubled often enough for once: no other bears what
    it costs.
    """
    found = list(quantities)
    most = {quantity.name: min(AT_ONCE * quantity.factor, LARGEST) for quantity in found}
    while excess > 0.0:
        left = [quantity for quantity in found if quantity.factor < LARGEST]
        if not left:
            break
        dearest = max(left, key=lambda quantity: quantity.weight)
        if dearest.factor >= most[dearest.name]:
            break
        dearest.factor *= 2
        dearest.share /= 2
        excess -= dearest.share
    return _factors(found)


def relaxed(quantities: Iterable[Stretchable], room: float) -> dict[str, int]:
    """Halve factors, norms and the cheapest first, repeatedly, while there is ``room``."""
    found = list(quantities)
    least = {quantity.name: max(quantity.factor // AT_ONCE, 1) for quantity in found}
    while True:
        open_ones = [one for one in found if one.factor > least[one.name] and one.share <= room]
        if not open_ones:
            return _factors(found)
        cheapest = min(open_ones, key=lambda quantity: quantity.weight)
        cheapest.factor //= 2
        room -= cheapest.share
        cheapest.share *= 2


def in_words(factors: Mapping[str, int]) -> str:
    """Describe how often each quantity is measured.

    Examples
    --------
    >>> in_words({"output_std": 8, "grad_norm": 2, "zero_fraction": 8})
    'output_std, zero_fraction every 8th, grad_norm every 2nd due step'
    """
    names: defaultdict[int, list[str]] = defaultdict(list)
    for name, factor in factors.items():
        names[factor].append(name)
    parts = [
        f"{', '.join(names[factor])} every {factor}{'nd' if factor % 10 == 2 else 'th'}"
        for factor in sorted(names, reverse=True)
    ]
    return f"{', '.join(parts)} due step" if parts else ""


def _factors(quantities: Iterable[Stretchable]) -> dict[str, int]:
    return {quantity.name: quantity.factor for quantity in quantities if quantity.factor > 1}


def _is_norm(probe: Probe) -> bool:
    features = probe.quantity.features
    return len(features) == 1 and features[0].part == "sumsq"
