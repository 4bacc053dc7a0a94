"""Where the values of a step go: one row per stream, each value in its column."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np

from notebook_probe.axis import Axis
from notebook_probe.probes.frame import StepFrame
from notebook_probe.probes.probe import Probe
from notebook_probe.probes.readings import Readings
from notebook_probe.probes.results import POOLED, Result
from notebook_probe.probes.selectors import standard_place
from notebook_probe.record.missing import MEASURED_NAN, NOT_MEASURED
from notebook_probe.record.source import Floats
from notebook_probe.record.stream import StreamWriter

__all__ = ["Layout", "Row"]


@dataclass(slots=True)
class Row:
    """One stream's row while it is filled, value by value."""

    stream: StreamWriter
    step: int
    time_ms: int
    variables: list[int] = field(default_factory=list)
    modules: list[int] = field(default_factory=list)
    numbers: list[Any] = field(default_factory=list)
    """A number each, or a vector."""

    def put(self, variable: int, module: int, number: Any) -> None:
        """Add a value; the last one in a cell stays."""
        self.variables.append(variable)
        self.modules.append(module)
        self.numbers.append(number)

    @property
    def values(self) -> Floats:
        """As the stream records it: (n_variables, n_modules), and the size of its axis.

        A NaN that was measured differs from a cell that nobody wrote.
        """
        table = np.full(self.stream.shape, NOT_MEASURED, np.float32)
        if self.numbers:
            with np.errstate(over="ignore"):  # beyond float32 is infinite, and that is no news
                numbers = np.array(self.numbers, np.float32)
            missing = np.isnan(numbers)
            if missing.any():
                numbers[missing] = MEASURED_NAN
            table[self.variables, self.modules] = numbers
        return table

    def record(self) -> None:
        """Hand it to the writer."""
        self.stream.record(self.step, self.time_ms, self.values)


Key: TypeAlias = "tuple[str, Axis | None]"
"""A stream's name, and the axis of its vectors."""


class Layout:
    """The columns of one set of due probes.

    Parameters
    ----------
    readings : Readings
    stream : callable
        The stream of a name and an axis.
    """

    def __init__(
        self, readings: Readings, stream: Callable[[str, Axis | None], StreamWriter]
    ) -> None:
        self._streams: dict[Key, StreamWriter] = {}
        for probe in readings.due:
            axis = probe.quantity.axis
            self._streams[probe.stream, axis] = stream(probe.stream, axis)
        for count in readings.counts:
            self._streams[count.stream, None] = stream(count.stream, None)
        self._results = [(result, *self._column(result.probe)) for result in readings.results]
        self._counts = [
            (
                count,
                (count.stream, None),
                *self._cell((count.stream, None), count.variable, count.place),
            )
            for count in readings.counts
        ]

    def rows(self, frame: StepFrame, tally: Callable[[Result], None]) -> dict[Key, Row]:
        """One row per stream that is due; ``tally`` is told of every result that has a value."""
        rows = {
            key: Row(stream, frame.step, frame.time_ms) for key, stream in self._streams.items()
        }
        for result, key, variable, module in self._results:
            if result.probe.disabled:
                continue
            values = result.values(frame)
            if values:
                tally(result)
            row = rows[key]
            for call, value in values:
                place = module if call == POOLED else self._call(row.stream, result, call)
                row.put(variable, place, value)
        for count, key, variable, module in self._counts:
            rows[key].put(variable, module, count.of(frame))
        return rows

    def _column(self, probe: Probe) -> tuple[Key, int, int]:
        key = probe.stream, probe.quantity.axis
        return key, *self._cell(key, probe.variable, probe.place)

    def _cell(self, key: Key, variable: str, place: str) -> tuple[int, int]:
        """Where a value lies in the stream's rows; axes only grow, so it stays there."""
        axes = self._streams[key]
        return axes.variable_index[variable], axes.module_index[standard_place(place)]

    def _call(self, stream: StreamWriter, result: Result, call: int) -> int:
        """The column of one call; it has an entry of its own on the module axis."""
        label = f"{standard_place(result.probe.place)}[{call}]"
        if label not in stream.module_index:
            stream.extend([label])
        return stream.module_index[label]
