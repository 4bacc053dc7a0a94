"""Rows of this run with the values of other runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from notebook_probe.compare.alignment import Alignment
from notebook_probe.compare.members import Member, Members
from notebook_probe.compare.tables import Doubles
from notebook_probe.record.format.missing import measured
from notebook_probe.record.format.source import Source, StreamView
from notebook_probe.record.views.branches.turns_taken import TurnsTaken, filled_by_turns
from notebook_probe.record.views.thinning.merged_rows import merged_rows
from notebook_probe.record.views.thinning.zoom import in_window
from notebook_probe.record.views.xarray_views import RunSource

__all__ = ["SLIGHTLY", "RowPairs", "holding", "n_values", "row_pairs"]

PATIENCE = 4
"""A value stands until the next one, up to this multiple of the usual distance between two."""
SLIGHTLY = 1e-6
"""Tolerance of a step: rounding on the way to another run's steps and back."""


@dataclass(frozen=True, slots=True)
class RowPairs:
    """Values of some modules that are measured together; NaN unmeasured, infinite not finite."""

    modules: tuple[str, ...]
    steps: Doubles
    """Steps (row,) of the run that is measured most rarely, as steps of this run."""
    this: Doubles
    """(module, row)."""
    others: Doubles
    """(run, module, row)."""


@dataclass(frozen=True, slots=True)
class _Rows:
    """Rows of one run, by its own steps."""

    steps: Doubles
    values: Doubles
    """(module, row)."""

    def at(self, steps: Doubles) -> Doubles:
        """Return the last value at or before each step, while it is valid."""
        rows = np.searchsorted(self.steps, steps + SLIGHTLY, "right") - 1
        gaps = np.diff(self.steps)
        usual = float(np.median(gaps)) if len(gaps) else 1.0
        stands = np.append(np.where(gaps <= PATIENCE * usual, gaps, usual), usual)
        here = (rows >= 0) & (steps - self.steps[rows] < stands[rows])
        return np.where(here, self.values[:, rows], np.nan)


def n_values(source: Source, quantity: str) -> int:
    """Return the number of cells of a quantity."""
    return sum(one.n_rows * len(one.modules) for one in holding(source, quantity))


def row_pairs(
    this: RunSource,
    others: Members,
    quantity: str,
    modules: Sequence[str],
    window: tuple[float, float] | None = None,
) -> list[RowPairs]:
    """Every row in a window of this run's steps; modules that share their streams together.

    Modules that this run or all others lack are left out.
    """
    found = []
    for group in _groups([this, *others.runs], quantity, modules):
        here = _read(this, quantity, group, window)

        def read(one: Member, group: tuple[str, ...] = group) -> _Rows:
            return _read(one.run, quantity, group, _window_there(one.alignment, window))

        there = others.each(read)
        pairs = _paired(group, here, there, others.alignments)
        if len(pairs.steps):
            found.append(pairs)
    return found


def _paired(
    group: tuple[str, ...], here: _Rows, there: Sequence[_Rows], alignments: Sequence[Alignment]
) -> RowPairs:
    bases = [here.steps]
    for rows, alignment in zip(there, alignments, strict=True):
        if len(rows.steps):
            stand = alignment.steps_here(rows.steps)
            bases.append(np.unique(stand[~np.isnan(stand)]))
    steps = min(bases, key=len) if len(bases) > 1 else np.empty(0)
    if not (len(here.steps) and len(steps)):
        return RowPairs(group, np.empty(0), np.empty((len(group), 0)), np.empty(0))
    others = [
        rows.at(alignment.steps_there(steps)) if len(rows.steps) else _none(group, steps)
        for rows, alignment in zip(there, alignments, strict=True)
    ]
    return RowPairs(group, steps, here.at(steps), np.stack(others))


def _none(group: Sequence[str], steps: Doubles) -> Doubles:
    return np.full((len(group), len(steps)), np.nan)


def _groups(
    runs: Sequence[RunSource], quantity: str, modules: Sequence[str]
) -> list[tuple[str, ...]]:
    """Return modules that share their streams in every run, in their order."""
    groups: dict[tuple[object, ...], list[str]] = {}
    held = [
        [(stream.name, set(stream.modules)) for stream in holding(run, quantity)] for run in runs
    ]
    for module in modules:
        key = tuple(tuple(name for name, has in one if module in has) for one in held)
        if key[0] and any(key[1:]):
            groups.setdefault(key, []).append(module)
    return [tuple(group) for group in groups.values()]


def holding(source: Source, quantity: str) -> list[StreamView]:
    """Streams with values of a quantity, by its name or an alias."""
    quantity = source.recorded_name(quantity)
    return [
        stream
        for stream in source.streams.values()
        if any(variable.name == quantity for variable in stream.variables)
    ]


def _read(
    source: RunSource, quantity: str, modules: Sequence[str], window: tuple[float, float] | None
) -> _Rows:
    wanted = set(modules)
    parts = [
        (stream, *in_window(stream, window))
        for stream in holding(source, quantity)
        if not wanted.isdisjoint(stream.modules)
    ]
    if not parts:
        return _Rows(np.empty(0), np.empty((len(modules), 0)))
    steps, found = merged_rows(parts, source.recorded_name(quantity), modules)
    known = measured(found)
    values = np.where(known & ~np.isfinite(found), np.inf, found.astype(np.float64))
    some = known.any(axis=1)
    rows = _once(steps[some].astype(np.float64), values[some].T)
    n_turns = TurnsTaken(source.events).n(source.recorded_name(quantity), rows.steps)
    if (n_turns > 1).any():  # two runs need not have measured a module in the same row
        return _Rows(rows.steps, filled_by_turns(rows.values.T, n_turns).T)
    return rows


def _once(steps: Doubles, values: Doubles) -> _Rows:
    """Rows of the same step as one: each cell is measured in one of them."""
    starts = np.flatnonzero(np.diff(steps, prepend=-np.inf))
    if len(starts) == len(steps):
        return _Rows(steps, values)
    return _Rows(steps[starts], np.fmax.reduceat(values, starts, axis=1))


def _window_there(
    alignment: Alignment, window: tuple[float, float] | None
) -> tuple[float, float] | None:
    _ = alignment.other.places  # read here, where it is known whose they are
    if window is None:
        return None
    low, high = alignment.steps_there(window).tolist()
    return (low if low == low else -np.inf, high if high == high else np.inf)
