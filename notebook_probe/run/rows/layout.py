"""Where the values of a step go: one row per stream, each value in its column."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from notebook_probe.axis import Axis, PerChannel
from notebook_probe.model.selectors import standard_place
from notebook_probe.probes.due.readings import Readings
from notebook_probe.probes.reading.results import POOLED, Count, Result
from notebook_probe.probes.step.frame import StepFrame
from notebook_probe.record.format.missing import MEASURED_NAN, NOT_MEASURED
from notebook_probe.record.format.source import Floats
from notebook_probe.record.write.shaped import RaggedWriter
from notebook_probe.record.write.stream import StreamWriter

__all__ = ["ChannelsRow", "Layout", "Row"]


Places: TypeAlias = "npt.NDArray[np.intp]"
StreamKey: TypeAlias = "tuple[str, Axis | None]"
"""A stream's name, and the axis of its vectors."""

LARGEST = 3e38
"""Below the largest float32: a sum of magnitudes that is smaller has no NaN and no overflow."""


@dataclass(slots=True)
class Row:
    """One stream's row while it is filled, value by value."""

    stream: StreamWriter
    step: int
    time_ms: int
    variables: list[int] | Places = field(default_factory=list)
    modules: list[int] | Places = field(default_factory=list)
    numbers: list[Any] = field(default_factory=list)
    """A number each, or a vector."""

    @property
    def values(self) -> Floats:
        """As the stream records it: (n_variables, n_modules), and the size of its axis."""
        table = np.full(self.stream.shape, NOT_MEASURED, np.float32)
        if self.numbers:
            table[self.variables, self.modules] = self._floats()
        return table

    def _floats(self) -> Floats:
        """The numbers; a NaN that was measured differs from a cell that nobody wrote."""
        if self.stream.axis is None and sum(map(abs, self.numbers)) < LARGEST:
            return np.array(self.numbers, np.float32)
        with np.errstate(over="ignore"):  # beyond float32 is infinite, and that is no news
            floats = np.array(self.numbers, np.float32)
        floats[np.isnan(floats)] = MEASURED_NAN
        return floats

    def record(self) -> None:
        """Hand it to the writer."""
        self.stream.record(self.step, self.time_ms, self.values)


@dataclass(slots=True)
class ChannelsRow:
    """One stream's row of vectors of every module's own length."""

    writer: RaggedWriter
    step: int
    time_ms: int
    vectors: dict[tuple[str, str], Any]

    @property
    def stream(self) -> StreamWriter:
        return self.writer.stream

    @property
    def values(self) -> Floats:
        """As the stream records them."""
        return self.writer.row(self.vectors)

    def record(self) -> None:
        """Hand it to the writer."""
        self.writer.record(self.step, self.time_ms, self.vectors)


class Layout:
    """The columns of one set of due probes, stream by stream.

    Parameters
    ----------
    readings : Readings
    stream : callable
        The stream of a name and an axis.
    """

    def __init__(
        self,
        readings: Readings,
        stream: Callable[[str, Axis | PerChannel | None], StreamWriter],
    ) -> None:
        self._columns: dict[StreamKey, _Columns] = {}
        self._channels: dict[str, _Channels] = {}
        for result in readings.results:
            name, axis = result.probe.stream, result.probe.quantity.axis
            if not isinstance(axis, PerChannel):
                self._of(name, axis, stream).add_result(result)
            elif name in self._channels:
                self._channels[name].results.append(result)
            else:
                self._channels[name] = _Channels(RaggedWriter(stream(name, axis)), [result])
        for count in readings.counts:
            self._of(count.stream, None, stream).add_count(count)
        for columns in self._columns.values():
            columns.end()

    def _of(
        self,
        name: str,
        axis: Axis | None,
        stream: Callable[[str, Axis | PerChannel | None], StreamWriter],
    ) -> _Columns:
        if (name, axis) not in self._columns:
            self._columns[name, axis] = _Columns(stream(name, axis))
        return self._columns[name, axis]

    def rows(self, frame: StepFrame, tally: Callable[[Result], None]) -> dict[StreamKey, Row]:
        """One row per stream that is due; ``tally`` is told of every result that has a value."""
        return {key: columns.row(frame, tally) for key, columns in self._columns.items()}

    def channels(self, frame: StepFrame, tally: Callable[[Result], None]) -> list[ChannelsRow]:
        """One row per stream of vectors of every module's own length."""
        return [channels.row(frame, tally) for channels in self._channels.values()]


class _Columns:
    """Where in a stream's rows each result and each count goes; axes only grow, so it stays."""

    def __init__(self, stream: StreamWriter) -> None:
        self._stream = stream
        self._results: list[tuple[Result, int, int]] = []
        self._counts: list[tuple[Count, int, int]] = []
        self._every: tuple[Places, Places] | None = None

    def add_result(self, result: Result) -> None:
        self._results.append((result, *self._cell(result.probe.variable, result.probe.place)))

    def add_count(self, count: Count) -> None:
        self._counts.append((count, *self._cell(count.variable, count.place)))

    def end(self) -> None:
        """All columns are known: those of a row without a gap, unless calls are kept apart."""
        if not any(result.probe.per_call for result, _, _ in self._results):
            cells = [(variable, module) for _, variable, module in (*self._results, *self._counts)]
            variables, modules = np.array(cells, np.intp).T
            self._every = variables, modules

    def row(self, frame: StepFrame, tally: Callable[[Result], None]) -> Row:
        """The row of a step."""
        variables, modules, numbers = [], [], []
        for result, variable, module in self._results:
            if result.probe.disabled:
                continue
            values = result.values(frame)
            if values:
                tally(result)
            for call, value in values:
                variables.append(variable)
                modules.append(module if call == POOLED else self._call(result, call))
                numbers.append(value)
        for count, variable, module in self._counts:
            variables.append(variable)
            modules.append(module)
            numbers.append(count.of(frame))
        row = Row(self._stream, frame.step, frame.time_ms, variables, modules, numbers)
        if self._every is not None and len(numbers) == len(self._every[0]):
            row.variables, row.modules = self._every
        return row

    def _cell(self, variable: str, place: str) -> tuple[int, int]:
        stream = self._stream
        return stream.variable_index[variable], stream.module_index[standard_place(place)]

    def _call(self, result: Result, call: int) -> int:
        """The column of one call; it has an entry of its own on the module axis."""
        label = _label(result, call)
        if label not in self._stream.module_index:
            self._stream.extend([label])
        return self._stream.module_index[label]


@dataclass(slots=True)
class _Channels:
    """What goes into a stream's rows of vectors of every module's own length."""

    writer: RaggedWriter
    results: list[Result]

    def row(self, frame: StepFrame, tally: Callable[[Result], None]) -> ChannelsRow:
        """The row of a step."""
        vectors = {}
        for result in self.results:
            values = () if result.probe.disabled else result.values(frame)
            if values:
                tally(result)
            for call, value in values:
                vectors[result.probe.variable, _label(result, call)] = value
        return ChannelsRow(self.writer, frame.step, frame.time_ms, vectors)


def _label(result: Result, call: int) -> str:
    """What a value's column is called."""
    place = standard_place(result.probe.place)
    return place if call == POOLED else f"{place}[{call}]"
