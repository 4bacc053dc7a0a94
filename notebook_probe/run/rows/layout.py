"""Layout of a step's values: one row per stream, each value in its column."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from notebook_probe.model.selectors import standard_place
from notebook_probe.probes.step.measured import POOLED, Columns, MeasuredStep, StreamValues
from notebook_probe.record.format.missing import NOT_MEASURED, as_measured
from notebook_probe.record.format.source import Floats
from notebook_probe.record.write.streams.shaped import ArrayWriter, RaggedWriter
from notebook_probe.record.write.streams.stream import StreamWriter

__all__ = [
    "AnyRow",
    "ArrayRow",
    "ChannelsLayout",
    "ChannelsRow",
    "Layout",
    "NamedRow",
    "Row",
    "label_of",
]


Places: TypeAlias = "npt.NDArray[np.intp]"

LARGEST = 3e38
"""Below the largest float32: a sum of magnitudes that is smaller has no NaN and no overflow."""


@dataclass(slots=True)
class Row:
    """Row of one stream while it is filled, value by value."""

    stream: StreamWriter
    step: int
    time_ms: int
    variables: list[int] | Places = field(default_factory=list)
    modules: list[int] | Places = field(default_factory=list)
    numbers: list[Any] = field(default_factory=list)
    """A number each, or a vector."""

    @property
    def values(self) -> Floats:
        """Values as the stream records them: (n_variables, n_modules), and the size of its axis."""
        floats = self._floats()
        table = np.full(self.stream.shape, NOT_MEASURED, np.float32)
        if self.numbers:
            table[self.variables, self.modules] = floats
        return table

    def _floats(self) -> Floats:
        if self.stream.axis is None and sum(map(abs, self.numbers)) < LARGEST:
            return np.array(self.numbers, np.float32)
        return as_measured(self.numbers)

    def record(self) -> None:
        """Hand it to the writer."""
        self.stream.record(self.step, self.time_ms, self.values)


@dataclass(slots=True)
class ChannelsRow:
    """Row of a stream of per-module vectors."""

    writer: RaggedWriter
    step: int
    time_ms: int
    vectors: dict[tuple[str, str], Any]

    @property
    def stream(self) -> StreamWriter:
        return self.writer.stream

    @property
    def values(self) -> Floats:
        """Values as the stream records them."""
        return self.writer.row(self.vectors)

    def record(self) -> None:
        """Hand it to the writer."""
        self.writer.record(self.step, self.time_ms, self.vectors)


@dataclass(slots=True)
class NamedRow:
    """The row of a step in the stream of scalars by name."""

    stream: StreamWriter
    step: int
    time_ms: int
    columns: Places
    numbers: Floats

    @property
    def values(self) -> Floats:
        """Values as the stream records them."""
        table = np.full(self.stream.shape, NOT_MEASURED, np.float32)
        table[0, self.columns] = self.numbers
        return table

    def record(self) -> None:
        """Hand it to the writer."""
        self.stream.record(self.step, self.time_ms, self.values)


@dataclass(slots=True)
class ArrayRow:
    """An array of one quantity at one module."""

    writer: ArrayWriter
    step: int
    time_ms: int
    array: npt.ArrayLike

    @property
    def stream(self) -> StreamWriter:
        return self.writer.stream

    @property
    def values(self) -> Floats:
        """Values as the stream records them; an array of another shape is a gap."""
        cells = as_measured(self.array)
        if cells.shape != self.stream.kind.cell:
            return np.full(self.stream.shape, NOT_MEASURED, np.float32)
        return cells[None, None]

    def record(self) -> None:
        """Hand it to the writer."""
        self.writer.record(self.step, self.time_ms, self.array)


AnyRow: TypeAlias = Row | ChannelsRow | NamedRow | ArrayRow
"""Row of any kind of stream."""


class Layout:
    """Positions of columns' values in a stream's rows; valid permanently, as axes only grow."""

    def __init__(self, columns: Columns, stream: StreamWriter) -> None:
        self._stream, self._columns = stream, columns
        self._cells = [
            (stream.variable_index[variable], stream.module_index[standard_place(place)])
            for variable, place in columns.cells
        ]
        variables, modules = np.array(self._cells, np.intp).T
        self._every = variables, modules

    def row(self, step: MeasuredStep, values: StreamValues) -> Row:
        """Return the row of a step."""
        row = Row(self._stream, step.step, step.time_ms, numbers=values.numbers)
        if values.is_whole:
            row.variables, row.modules = self._every
        else:
            self._extend(values.places)
            cells = [self._cell(column, call) for column, call in values.places]
            row.variables, row.modules = map(list, zip(*cells, strict=True)) if cells else ([], [])
        return row

    def _extend(self, places: Sequence[tuple[int, int]]) -> None:
        """Give calls that are new their columns, all at once: the axis is made again each time."""
        cells, known = self._columns.cells, self._stream.module_index
        labels = [label_of(cells[column][1], call) for column, call in places if call != POOLED]
        new = [label for label in labels if label not in known]
        if new:
            self._stream.extend(new)

    def _cell(self, column: int, call: int) -> tuple[int, int]:
        """Return the position of one call's value; each call has an entry on the module axis."""
        if call == POOLED:
            return self._cells[column]
        label = label_of(self._columns.cells[column][1], call)
        return self._cells[column][0], self._stream.module_index[label]


class ChannelsLayout:
    """Layout for per-module vectors; see `Layout`."""

    def __init__(self, columns: Columns, stream: StreamWriter) -> None:
        self._writer, self._columns = RaggedWriter(stream), columns

    def row(self, step: MeasuredStep, values: StreamValues) -> ChannelsRow:
        """Return the row of a step."""
        cells = self._columns.cells
        vectors = {
            (cells[column][0], label_of(cells[column][1], call)): vector
            for (column, call), vector in zip(values.places, values.numbers, strict=True)
        }
        return ChannelsRow(self._writer, step.step, step.time_ms, vectors)


def label_of(place: str, call: int) -> str:
    """Return the name of a value's column."""
    label = standard_place(place)
    return label if call == POOLED else f"{label}[{call}]"
