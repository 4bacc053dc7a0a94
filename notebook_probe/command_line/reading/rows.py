"""Rows of one series as numbers, and which series a pattern means; without xarray.

The first use of xarray loads every array library that is installed, which takes longer than an
answer may.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import attrgetter, itemgetter
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from notebook_probe.errors import UnknownNameError, near
from notebook_probe.opened import OpenedRun
from notebook_probe.record.format.missing import measured
from notebook_probe.record.format.schema import module_label
from notebook_probe.record.format.source import Floats, Steps, StreamView, Variable
from notebook_probe.record.views.parts import whole_parts_of
from notebook_probe.record.views.thinning.minmax import minmax, spread
from notebook_probe.record.views.thinning.zoom import between, has_series

__all__ = [
    "FEWEST_POINTS",
    "SeriesName",
    "SeriesRows",
    "last_values",
    "matching",
    "measured_at",
    "read_rows",
    "thinned_rows",
]

FEWEST_POINTS = 4
STRETCH_ENDS = 2
END_ROWS = 256
"""Rows at either end of a series that say where it is measured."""

SeriesName: TypeAlias = tuple[str, Variable]
"""Module and quantity."""

Rows: TypeAlias = npt.NDArray[np.intp]
Mask: TypeAlias = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class SeriesRows:
    """Measured rows of one series."""

    steps: Steps
    values: Floats

    def __len__(self) -> int:
        return len(self.steps)

    def at(self, rows: slice | Rows | Mask) -> SeriesRows:
        """Return some of the rows."""
        return SeriesRows(self.steps[rows], self.values[rows])

    def points(self) -> tuple[tuple[int, float], ...]:
        """Return step and value of each row; values are the shortest decimals of their float32."""
        return tuple(
            (int(step), float(str(value)))
            for step, value in zip(self.steps, self.values, strict=True)
        )


def matching(run: OpenedRun, module: str, quantity: str) -> list[SeriesName]:
    """Return the series of numbers that two names or patterns with ``*`` mean.

    Modules are in the order of the record.

    Raises
    ------
    UnknownNameError
        Nothing of that name is recorded; the message has close names.
    """
    streams = [*run.streams.values()]
    variables = {one.name: one for stream in streams for one in stream.variables}
    modules = dict.fromkeys(one for stream in streams for one in stream.modules)
    names = run.recorded_name(quantity), module_label(module)
    try:
        quantities = _chosen("quantity", names[0], variables)
    except UnknownNameError:
        _refuse_vectors(run, names[0])
        _refuse_exchanged(module, quantity, variables, modules)
        raise
    holders = {name: _modules_of(name, streams) for name in quantities}
    found = [
        (label, variables[name])
        for label in _in_order(run, _chosen("module", names[1], modules))
        for name in quantities
        if label in holders[name]
    ]
    if not found:
        known = _in_order(run, [*set().union(*holders.values())])
        raise UnknownNameError(
            f"no {quantity} of module {module!r} is recorded; {near(module, known)}"
        )
    return found


def read_rows(
    run: OpenedRun, module: str, quantity: str, start: int | None = None, stop: int | None = None
) -> SeriesRows:
    """Return the measured rows with ``start <= step < stop``; of a job those of the first rank."""
    streams = [one for one in run.streams.values() if has_series(one, module, quantity)]
    if len(streams) != 1:
        return _joined(run, module, quantity, start, stop)
    first, last = between(streams[0], start, stop)
    return _measured(streams[0], module, quantity, first, last)


def measured_at(streams: Iterable[StreamView]) -> dict[str, set[str]]:
    """Return the modules at which each quantity is measured in the first or the last rows."""
    found: dict[str, set[str]] = {}
    for stream in streams:
        n_rows, names = stream.n_rows, np.array(stream.modules, object)
        ends = {(0, min(n_rows, END_ROWS)), (max(0, n_rows - END_ROWS), n_rows)}
        for name in dict.fromkeys(one.name for one in stream.variables):
            here = found.setdefault(name, set())
            for first, stop in ends:
                here.update(names[measured(stream.values(name, first, stop)).any(axis=0)])
    return found


def last_values(streams: Iterable[StreamView], quantity: str) -> dict[str, float]:
    """Return the last value of a quantity at each module, from its last rows."""
    found: dict[str, tuple[int, float]] = {}
    for stream in streams:
        if not any(one.name == quantity for one in stream.variables):
            continue
        first = max(0, stream.n_rows - END_ROWS)
        steps, values = stream.steps(first), stream.values(quantity, first)
        is_there = measured(values)
        for column in np.flatnonzero(is_there.any(axis=0)):
            row = int(np.flatnonzero(is_there[:, column])[-1])
            newest = int(steps[row]), float(values[row, column])
            name = stream.modules[column]
            found[name] = max(found.get(name, newest), newest, key=itemgetter(0))
    return {name: value for name, (_, value) in found.items()}


def thinned_rows(rows: SeriesRows, n_points: int) -> SeriesRows:
    """Return about so many rows: ends, extremes, and the ends of stretches without a number."""
    if len(rows) <= n_points:
        return rows
    steps = rows.steps.astype(np.float64)
    is_lost = ~np.isfinite(rows.values)
    edges = np.flatnonzero(np.diff(is_lost, prepend=False, append=False))
    lost = np.concatenate([edges[::STRETCH_ENDS], edges[1::STRETCH_ENDS] - 1])
    lost = spread(np.unique(lost), n_points // 2)
    finite = minmax(steps, rows.values, max(FEWEST_POINTS, n_points - len(lost)))
    kept = np.union1d(np.searchsorted(steps, finite.x), lost)
    return rows.at(kept)


def _measured(stream: StreamView, module: str, quantity: str, first: int, stop: int) -> SeriesRows:
    if first >= stop:
        return SeriesRows(np.empty(0, np.int64), np.empty(0, np.float32))
    values = stream.values(quantity, first, stop, [module])[:, 0]
    return SeriesRows(stream.steps(first, stop), values).at(measured(values))


def _joined(
    run: OpenedRun, module: str, quantity: str, start: int | None, stop: int | None
) -> SeriesRows:
    """Return rows of several streams; of one step the value of the greatest rank counts."""
    streams, _ = run.snapshot().history
    parts = [one for one in whole_parts_of(streams, ()) if has_series(one.stream, module, quantity)]
    parts.sort(key=attrgetter("rank"), reverse=True)
    found = [
        _measured(one.stream, module, quantity, *between(one.stream, start, stop)) for one in parts
    ]
    steps = reduce(np.union1d, [one.steps for one in found], np.empty(0, np.int64))
    values = np.empty(len(steps), np.float32)
    for one in reversed(found):
        values[np.searchsorted(steps, one.steps)] = one.values
    return SeriesRows(steps, values)


def _chosen(what: str, name: str, known: Iterable[str]) -> list[str]:
    known = list(known)
    if name in known:
        return [name]
    pattern = re.compile(".*".join(map(re.escape, name.split("*"))), re.DOTALL)
    found = [one for one in known if "*" in name and pattern.fullmatch(one)]
    if not found:
        raise UnknownNameError(f"no {what} {name!r} is recorded; {near(name, known)}")
    return found


def _modules_of(quantity: str, streams: Iterable[StreamView]) -> frozenset[str]:
    having = [one for one in streams if any(each.name == quantity for each in one.variables)]
    return frozenset(label for stream in having for label in stream.modules)


def _in_order(run: OpenedRun, labels: Sequence[str]) -> list[str]:
    """Return modules in the order of definition, parameters and others after them."""
    places = {row.name: place for place, row in enumerate(run.modules)}
    return sorted(labels, key=lambda label: places.get(label, len(places)))


def _refuse_vectors(run: OpenedRun, quantity: str) -> None:
    if quantity in _vectors(run):
        raise UnknownNameError(
            f"{quantity!r} is a vector at each step; only numbers are printed: read it with "
            f"nbp.open_run({run.location!r}).series(module, {quantity!r})"
        )


def _refuse_exchanged(
    module: str, quantity: str, variables: Iterable[str], modules: Iterable[str]
) -> None:
    if module in variables and module_label(quantity) in modules:
        raise UnknownNameError(
            f"{module!r} is a quantity and {quantity!r} a module; the module comes first"
        )


def _vectors(run: OpenedRun) -> Iterator[str]:
    return (one.name for view in run.elements.values() for one in view.variables)
