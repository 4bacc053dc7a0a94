"""Formulas as streams of a record, which are drawn, averaged and exported as any other."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
import numpy.typing as npt

from notebook_probe.record.format.missing import as_measured, measured
from notebook_probe.record.format.source import (
    ROOT,
    ChunkGrid,
    Floats,
    LevelView,
    Steps,
    StreamView,
    Variable,
)
from notebook_probe.record.formulas.evaluating import Pair, Series, evaluated, references
from notebook_probe.record.formulas.nodes import Reference
from notebook_probe.record.formulas.parsing import FormulaError, is_formula, parsed

__all__ = ["FormulaStreams", "formula_stream", "with_formulas"]

Int64s = npt.NDArray[np.int64]


def formula_stream(streams: Mapping[str, StreamView], formula: str) -> StreamView:
    """Return the values of a formula as a stream of the whole model.

    Raises
    ------
    FormulaError
        It cannot be read, or has no value.
    """
    made = FormulaStreams()
    found = made.of(streams, [(ROOT, formula)])
    if formula in made.problems:
        raise FormulaError(made.problems[formula])
    return next(iter(found.values()))


def with_formulas(
    streams: Mapping[str, StreamView], series: Iterable[tuple[str, str]]
) -> Mapping[str, StreamView]:
    """Return the streams, and those of the formulas among some series that have values."""
    return {**streams, **FormulaStreams().of(streams, series)}


class FormulaStreams:
    """Streams of formulas that grow with a record; only new rows are read.

    Attributes
    ----------
    problems : dict of str to str
        Formula to the reason why it has no value.
    """

    def __init__(self) -> None:
        self._columns: dict[tuple[str, Pair], _Column] = {}
        self._made: dict[str, _Computed] = {}
        self.problems: dict[str, str] = {}

    def of(
        self, streams: Mapping[str, StreamView], series: Iterable[tuple[str, str]]
    ) -> dict[str, StreamView]:
        """Return the streams of the formulas among some series, by name; others are forgotten."""
        formulas = [one for _, one in series if is_formula(one)]
        self.problems = {}
        made: dict[str, _Computed] = {}
        used: dict[tuple[str, Pair], _Column] = {}
        for formula in formulas:
            try:
                made[formula] = self._computed(formula, streams, used)
            except FormulaError as error:
                self.problems[formula] = str(error)
        self._columns, self._made = used, made
        return {f"formula {name}": stream for name, stream in made.items()}

    def _computed(
        self,
        formula: str,
        streams: Mapping[str, StreamView],
        used: dict[tuple[str, Pair], _Column],
    ) -> _Computed:
        node = parsed(formula)
        pairs = references(node, streams)
        key: list[object] = []
        read: dict[Pair, list[_Column]] = {}
        for pair in {one for some in pairs.values() for one in some}:
            for name, stream in _holding(streams, pair):
                column = used.get((name, pair)) or self._column(name, stream, pair)
                used[name, pair] = column
                read.setdefault(pair, []).append(column)
        for pair in sorted(read):
            key += [(pair, len(one.steps), one.version) for one in read[pair]]
        before = self._made.get(formula)
        if before is not None and before.key == key:
            return before
        steps, values = evaluated(node, pairs, lambda pair: _merged(read[pair]))
        units = {one.units for stream in streams.values() for one in _variables(stream, pairs)}
        unit = units.pop() if len(units) == 1 and formula.count("/") == 0 else "1"
        times = _times_at(steps, read[min(read)])
        found = _Computed(Variable(formula, unit), steps, times, as_measured(values), key)
        return found.after(before)

    def _column(self, name: str, stream: StreamView, pair: Pair) -> _Column:
        column = self._columns.get((name, pair))
        if column is None or column.version != stream.version:
            column = _Column(stream.version)
        column.read_new(stream, pair)
        return column


class _Column:
    """Measured rows of one series of one stream."""

    def __init__(self, version: tuple[object, ...]) -> None:
        self.version = version
        self._n_read = 0
        self.steps: Int64s = np.empty(0, np.int64)
        self.times: Int64s = np.empty(0, np.int64)
        self.values: Floats = np.empty(0, np.float32)

    def read_new(self, stream: StreamView, pair: Pair) -> None:
        start, stop = self._n_read, stream.n_rows
        if stop <= start:
            return
        module, quantity = pair
        values = stream.values(quantity, start, stop, [module])[:, 0]
        known = measured(values)
        self.steps = np.append(self.steps, stream.steps(start, stop)[known])
        self.times = np.append(self.times, stream.times(start, stop)[known])
        self.values = np.append(self.values, values[known])
        self._n_read = stop


class _Computed:
    """A StreamView of one formula; without chunks or a pyramid, as it is not on a disk."""

    def __init__(
        self, variable: Variable, steps: Int64s, times: Int64s, values: Floats, key: list[object]
    ) -> None:
        self.key = key
        self._variable, self._steps, self._times, self._values = variable, steps, times, values
        self._n_changes = 0

    def after(self, before: _Computed | None) -> _Computed:
        """Note whether rows that were read from the stream before are still the same."""
        if before is not None:
            n = before.n_rows
            same = n <= self.n_rows and bool((self._steps[:n] == before._steps).all())
            same = same and before._values.tobytes() == self._values[:n].tobytes()
            self._n_changes = before._n_changes + (not same)
        return self

    @property
    def name(self) -> str:
        return f"formula {self._variable.name}"

    @property
    def modules(self) -> tuple[str, ...]:
        return (ROOT,)

    @property
    def variables(self) -> tuple[Variable, ...]:
        return (self._variable,)

    @property
    def levels(self) -> Mapping[int, LevelView]:
        return {}

    @property
    def version(self) -> tuple[object, ...]:
        return (self._n_changes,)

    @property
    def n_rows(self) -> int:
        return len(self._steps)

    def steps(self, start: int = 0, stop: int | None = None) -> Steps:
        return self._steps[start:stop]

    def times(self, start: int = 0, stop: int | None = None) -> Steps:
        return self._times[start:stop]

    def values(
        self,
        quantity: str,
        start: int = 0,
        stop: int | None = None,
        modules: Sequence[str] | None = None,
    ) -> Floats:
        return self._values[start:stop, None]

    def chunk_grid(self, quantity: str) -> ChunkGrid:
        raise FormulaError(f"{quantity} is computed, and is in no chunk")


def _holding(streams: Mapping[str, StreamView], pair: Pair) -> Iterable[tuple[str, StreamView]]:
    module, quantity = pair
    for name, stream in streams.items():
        if module in stream.modules and any(one.name == quantity for one in stream.variables):
            yield name, stream


def _merged(columns: Sequence[_Column]) -> Series:
    """Return the rows of all streams by step; at one step the first stream's."""
    if len(columns) == 1:
        return columns[0].steps, columns[0].values.astype(np.float64)
    steps = np.concatenate([one.steps for one in columns])
    values = np.concatenate([one.values for one in columns])
    found, first = np.unique(steps, return_index=True)
    return found, values[first].astype(np.float64)


def _times_at(steps: Int64s, columns: Sequence[_Column]) -> Int64s:
    """Return the times of steps that one of the series has."""
    own = np.concatenate([one.steps for one in columns])
    times = np.concatenate([one.times for one in columns])
    order = np.argsort(own, kind="stable")
    found: Int64s = times[order][np.searchsorted(own[order], steps)] if len(own) else steps
    return found


def _variables(stream: StreamView, pairs: Mapping[Reference, Sequence[Pair]]) -> Iterable[Variable]:
    wanted = {quantity for some in pairs.values() for _, quantity in some}
    return (one for one in stream.variables if one.name in wanted)
