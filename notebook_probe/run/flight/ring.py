"""The rows of the last steps, in memory that does not grow."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from notebook_probe.model.selectors import standard_place
from notebook_probe.probes.step.measured import POOLED, Columns, MeasuredStep
from notebook_probe.record.format.missing import NOT_MEASURED, as_measured
from notebook_probe.record.format.source import Floats
from notebook_probe.run.flight.schedule import IN_MEMORY

__all__ = ["FlightRow", "FlightTable", "Ring"]

ROW_BYTES = 200
"""Bytes of a row in addition to its values: objects and their places."""

Cell: TypeAlias = tuple[str, str]
"""Variable and module."""


@dataclass(frozen=True, slots=True)
class FlightRow:
    """One step."""

    step: int
    cells: tuple[Cell, ...]
    values: Floats

    @property
    def nbytes(self) -> int:
        return self.values.nbytes + ROW_BYTES


@dataclass(frozen=True, slots=True)
class FlightTable:
    """Rows in the form for a backfill."""

    steps: npt.NDArray[np.int64]
    variables: list[str]
    modules: list[str]
    values: Floats
    """(row, variable, module)."""

    @classmethod
    def of(cls, rows: Sequence[FlightRow]) -> FlightTable:
        """Return the measured values of rows that are not in the record."""
        cells = dict.fromkeys(cell for row in rows for cell in row.cells)
        variables = {name: i for i, name in enumerate(dict.fromkeys(name for name, _ in cells))}
        modules = {name: i for i, name in enumerate(dict.fromkeys(name for _, name in cells))}
        values = np.full((len(rows), len(variables), len(modules)), NOT_MEASURED, np.float32)
        for table, row in zip(values, rows, strict=True):
            at = [variables[name] for name, _ in row.cells], [modules[one] for _, one in row.cells]
            table[at] = row.values
        steps = np.array([row.step for row in rows], np.int64)
        return cls(steps, [*variables], [*modules], values)


class Ring:
    """Ring of the last steps.

    Parameters
    ----------
    n_steps : int
    """

    def __init__(self, n_steps: int) -> None:
        self._rows: deque[FlightRow] = deque(maxlen=n_steps)
        self._cells: dict[Columns, tuple[Cell, ...]] = {}

    def __len__(self) -> int:
        return len(self._rows)

    @property
    def nbytes(self) -> int:
        return sum(row.nbytes for row in tuple(self._rows))

    @property
    def n_series(self) -> int:
        """Number of series in the newest row."""
        return len(self._rows[-1].cells) if self._rows else 0

    @property
    def last_step(self) -> int:
        return self._rows[-1].step if self._rows else -1

    def take(self) -> list[FlightRow]:
        """Return and remove all rows."""
        rows = [*self._rows]
        self._rows.clear()
        return rows

    def put_back(self, rows: Sequence[FlightRow]) -> None:
        """Return rows that could not be written, before newer ones; the oldest are dropped."""
        since = [*self._rows]
        self._rows.clear()
        self._rows.extend([*rows, *since])

    def keep(self, step: MeasuredStep) -> None:
        """Take in what a step has on the stream in memory, less what goes to the record anyway."""
        values = next((one for one in step.streams if one.columns.stream == IN_MEMORY), None)
        if values is None or values.columns.axis is not None:
            return
        if step.step <= self.last_step:  # the training has gone back
            self._rows.clear()
        cells = self._cells_of(values.columns)
        recorded = {
            one.columns.cells[column]
            for one in step.streams
            if one.columns.stream != IN_MEMORY
            for column, call in one.places
            if call == POOLED
        }
        if values.is_whole and not recorded:
            self._rows.append(FlightRow(step.step, cells, as_measured(values.numbers)))
            return
        kept = [
            (cells[column], number)
            for (column, call), number in zip(values.places, values.numbers, strict=True)
            if call == POOLED and values.columns.cells[column] not in recorded
        ]
        if kept:
            numbers = as_measured([number for _, number in kept])
            self._rows.append(FlightRow(step.step, tuple(cell for cell, _ in kept), numbers))

    def _cells_of(self, columns: Columns) -> tuple[Cell, ...]:
        if columns not in self._cells:
            # One entry: columns change seldom, and an old set would keep its probes.
            self._cells = {columns: tuple((v, standard_place(p)) for v, p in columns.cells)}
        return self._cells[columns]
