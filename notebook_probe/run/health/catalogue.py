"""The quantities that can be attached, and what one probe of each costs in this run."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import replace
from statistics import median_high

from notebook_probe.axis import Image
from notebook_probe.probes.step.probe import Probe
from notebook_probe.quantities import Quantity, quantities
from notebook_probe.quantities.define.questions import topic
from notebook_probe.quantities.reduce.features import given_by
from notebook_probe.run.health.status import QuantityInfo, ValueKind

__all__ = ["QuantityCatalogue"]


class QuantityCatalogue:
    """Every registered quantity, described once per change of the registry."""

    def __init__(self) -> None:
        self._quantities: list[Quantity] = []
        self._rows: list[QuantityInfo] = []

    def rows(self, probes: Iterable[Probe], seconds: Mapping[Probe, float]) -> list[QuantityInfo]:
        """Return the quantities, with the median cost per step of their ``probes`` here."""
        registered = list(quantities.values())
        if registered != self._quantities:  # compared by identity
            self._quantities, self._rows = registered, [_info(one) for one in registered]
        costs: defaultdict[str, list[float]] = defaultdict(list)
        for probe in probes:
            # A probe that never fired has no cost yet, and 0 would look free.
            if probe.n_values:
                costs[probe.quantity.name].append(1e6 * seconds.get(probe, 0.0))
        return [
            replace(row, cost_us=median_high(costs[row.name])) if row.name in costs else row
            for row in self._rows
        ]


def _info(quantity: Quantity) -> QuantityInfo:
    return QuantityInfo(
        quantity.name,
        quantity.summary,
        tuple(dict.fromkeys(map(given_by, quantity.needs))),
        quantity.units,
        value=_value_kind(quantity),
        question=quantity.question,
        topic=topic(quantity.question),
        usual=quantity.usual,
        is_of_model=quantity.is_of_model,
        formula=quantity.explained.formula,
        aliases=quantity.aliases,
        reads_every_step=quantity.samples == "every",
    )


def _value_kind(quantity: Quantity) -> ValueKind:
    if quantity.axis is None:
        return "number"
    return "image" if isinstance(quantity.axis, Image) else "vector"
