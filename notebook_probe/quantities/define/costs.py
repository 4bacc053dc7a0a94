"""Measured costs of presets and quantities: the figures in ``costs.json``.

``python -m benchmarks quantities`` writes them; tables, pages and docstrings read them here.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, TypeAlias

from notebook_probe.percent import percent_text

__all__ = ["FILE", "Cell", "Costs", "MeasuredCost", "measured_costs", "read_costs"]

FILE = Path(__file__).with_name("costs.json")


@dataclass(frozen=True, slots=True)
class MeasuredCost:
    """Cost of a due step for a quantity; of an average step for a preset."""

    us: float
    """Microseconds, over all modules where it is measured."""
    percent: float
    """The same, per cent of the step without it."""

    def __str__(self) -> str:
        """Format the share as briefly as possible.

        >>> [str(MeasuredCost(3.04, percent)) for percent in (18.64, 0.0123, 0.0004)]
        ['19 %', '0.012 %', '< 0.001 %']
        """
        if self.percent < 0.001:
            return "< 0.001 %"
        return percent_text(self.percent)


Cell: TypeAlias = MeasuredCost | str
"""Measured cost on one workload, or in words why there is nothing to measure."""


@dataclass(frozen=True, slots=True)
class Costs:
    """Cells by name and workload."""

    machine: str = ""
    """Description of the machine on which they were measured."""
    presets: Mapping[str, Mapping[str, Cell]] = field(default_factory=dict)
    quantities: Mapping[str, Mapping[str, Cell]] = field(default_factory=dict)

    def of_preset(self, name: str) -> str:
        """Describe the cost of a preset in one line; empty if never measured."""
        return _described(self.presets.get(name, {}))

    def of_quantity(self, name: str) -> str:
        """Describe the cost of a quantity in one line; empty if never measured."""
        return _described(self.quantities.get(name, {}))


def _described(cells: Mapping[str, Cell]) -> str:
    """Return the workloads on which there was something to measure.

    >>> _described({"MLP": MeasuredCost(10.0, 2.0), "small GPT": "Linear is no BatchNorm"})
    'MLP 2 % of a step'
    """
    known = [f"{name} {cell}" for name, cell in cells.items() if isinstance(cell, MeasuredCost)]
    return f"{', '.join(known)} of a step" if known else ""


def read_costs(text: str) -> Costs:
    """Read the file's text."""
    parts: dict[str, Any] = json.loads(text)
    return Costs(parts["machine"], _cells(parts["presets"]), _cells(parts["quantities"]))


@cache
def measured_costs() -> Costs:
    """Read the costs that came with the package."""
    return read_costs(FILE.read_text("utf-8")) if FILE.exists() else Costs()


def _cells(rows: dict[str, dict[str, Any]]) -> dict[str, dict[str, Cell]]:
    return {
        name: {
            workload: cell if isinstance(cell, str) else MeasuredCost(**cell)
            for workload, cell in row.items()
        }
        for name, row in rows.items()
    }
