"""Quantities measured less often, so that watching stays inside a budget."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, median

from notebook_probe.probes.step.probe import Probe

__all__ = ["LARGEST", "StepCosts", "Stretchable", "in_words", "relaxed", "step_costs", "stretched"]

LARGEST = 1024
"""Maximum factor: at least every so many due steps is measured, whatever it costs."""
AT_ONCE = 16
"""Maximum stretch after one look at a few steps: the machine may have been busy."""
NORM_WEIGHT = 0.25
"""A norm is what most look at: it is stretched once it takes four times what the next does."""
HIDDEN = 1.0, 3.0
"""Bounds of the ratio of the real cost of measuring to the counted one."""


@dataclass(frozen=True, slots=True)
class StepCosts:
    """Cost of watching in some steps, each in per cent of the step itself."""

    fixed: float
    """Cost in a step in which least is due."""
    due: float
    """Average cost in addition to the fixed one."""
    bare: float
    """Seconds of the step itself."""

    @property
    def total(self) -> float:
        return self.fixed + self.due

    def less_fixed(self, seconds: float) -> StepCosts:
        """Return the costs with so many seconds of the fixed cost counted as stretchable."""
        moved = min(self.fixed, 100.0 * seconds / self.bare)
        return StepCosts(self.fixed - moved, self.due + moved, self.bare)


def step_costs(seconds: Sequence[float], costs: Sequence[float]) -> StepCosts:
    """Compute the share of watching from steps.

    ``costs`` is what was counted of ``seconds``. A hook also makes torch slower where nobody
    counts: by how much is seen from how much longer those steps are in which more is due. Of times
    the median counts, as a validation or a slow disk between two steps is nothing of ours.
    """
    middle = median(costs)
    cheap = [i for i, cost in enumerate(costs) if cost <= middle]
    dear = [i for i, cost in enumerate(costs) if cost > 2 * middle]
    fixed = median(costs[i] for i in cheap)
    bare = max(median(seconds[i] - costs[i] for i in cheap), 1e-9)
    if not dear:  # all steps are alike
        mean = fmean(costs)
        return StepCosts(0.0, 100.0 * mean / bare, bare)
    counted = median(costs[i] for i in dear) - fixed
    longer = median(seconds[i] for i in dear) - median(seconds[i] for i in cheap)
    hidden = min(max(longer / counted, HIDDEN[0]), HIDDEN[1])
    due = hidden * max(fmean(costs) - fixed, 0.0)
    return StepCosts(100.0 * fixed / bare, 100.0 * due / bare, bare)


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
        cls, costs: Mapping[Probe, float], factors: Mapping[str, int], percent: float
    ) -> list[Stretchable]:
        """Return the quantities among measured probes, which took ``percent`` of step time."""
        seconds: defaultdict[str, float] = defaultdict(float)
        for probe, spent in costs.items():
            if probe.can_stretch:
                seconds[probe.variable] += spent
        norms = {probe.variable for probe in costs if _is_norm(probe)}
        total = sum(costs.values()) or 1.0
        return [
            cls(name, name in norms, factors.get(name, 1), percent * spent / total)
            for name, spent in seconds.items()
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
    """Halve factors, once each, norms and the cheapest first, as far as there is ``room``."""
    found = sorted(quantities, key=lambda quantity: quantity.weight)
    for quantity in found:
        if quantity.factor > 1 and quantity.share <= room:
            quantity.factor //= 2
            room -= quantity.share
    return _factors(found)


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
