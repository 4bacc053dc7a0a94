"""Series with equal steps as tables, each of which is a stream of a record."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np

from notebook_probe.old_runs.naming import module_and_quantity
from notebook_probe.old_runs.run import OldSeries
from notebook_probe.record.format.loss_names import names_evaluation
from notebook_probe.record.format.missing import NOT_MEASURED, as_measured
from notebook_probe.record.format.schema import LOGGED, LOGGED_OF_STATES
from notebook_probe.record.format.source import Floats, Steps

__all__ = ["MOST_TABLES", "OldTable", "tables_of"]

MOST_TABLES = 256
"""Largest number of different step axes; each is a group of the record."""
LAYERS = "layers"
"""Name of the streams of quantities of modules."""


@dataclass(slots=True)
class OldTable:
    """Series with the same steps: scalars of the whole run, or quantities of modules.

    Attributes
    ----------
    stream : str
        Name of the stream.
    series : dict
        Series by place: the name of a scalar, or module and quantity.
    """

    stream: str
    series: dict[tuple[str, str], OldSeries] = field(default_factory=dict)

    @property
    def quantities(self) -> Sequence[str]:
        """Quantities of modules; empty if these are scalars of the whole run."""
        return [*dict.fromkeys(quantity for _, quantity in self.series if quantity)]

    @property
    def modules(self) -> Sequence[str]:
        """Modules; empty if these are scalars of the whole run."""
        return [*dict.fromkeys(name for name, quantity in self.series if quantity)]

    @property
    def names(self) -> Sequence[str]:
        """Names of the scalars."""
        return [name for name, quantity in self.series if not quantity]

    @property
    def width(self) -> int:
        """Number of cells in a row."""
        return len(self.names) or len(self.quantities) * len(self.modules)

    @property
    def steps(self) -> Steps:
        return self._first.steps

    @property
    def times_ms(self) -> Steps:
        return self._first.times_ms

    def values(self, rows: slice) -> Floats:
        """Return some rows as a stream takes them: (row, quantity, column)."""
        names, modules = self.names, self.modules
        quantities, columns = (self.quantities, modules) if modules else ([""], names)
        shape = len(self.steps[rows]), len(quantities), len(columns)
        table = np.full(shape, NOT_MEASURED, np.float32)
        column = {name: place for place, name in enumerate(columns)}
        row_of = {quantity: place for place, quantity in enumerate(quantities)}
        for (name, quantity), one in self.series.items():
            table[:, row_of[quantity], column[name]] = as_measured(one.values[rows])
        return table

    @property
    def _first(self) -> OldSeries:
        return next(iter(self.series.values()))


def tables_of(series: Iterable[OldSeries]) -> tuple[Sequence[OldTable], int]:
    """Return the tables of a run's series, and how many series are left out."""
    found: dict[tuple[str, bytes], OldTable] = {}
    left_out = 0
    for one in series:
        kind, place = _kind_and_place(one.name)
        key = kind, one.steps.tobytes()
        if key not in found:
            if len(found) == MOST_TABLES:
                left_out += 1
                continue
            n = 1 + sum(known == kind for known, _ in found)
            found[key] = OldTable(kind if n == 1 else f"{kind}_{n}")
        found[key].series[place] = one
    return [*found.values()], left_out


def _kind_and_place(name: str) -> tuple[str, tuple[str, str]]:
    """Return the name of the streams of a series, and its place in a table."""
    of_module = module_and_quantity(name)
    if of_module is not None:
        return LAYERS, of_module
    return (LOGGED_OF_STATES if names_evaluation(name) else LOGGED), (name, "")
