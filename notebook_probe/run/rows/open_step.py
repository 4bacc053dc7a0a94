"""Reading the step that is still open: each stream with one more, provisional row."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from notebook_probe.axis import Axis
from notebook_probe.record.format.missing import NOT_MEASURED
from notebook_probe.record.format.source import Floats, Steps, StreamView
from notebook_probe.record.views.wrapped import WrappedStream
from notebook_probe.run.rows.layout import AnyRow

__all__ = ["with_open_step"]


def with_open_step(streams: Iterable[StreamView], rows: Iterable[AnyRow], group: str) -> list[Any]:
    """Return the streams of a group, with the row of the open step where it is due."""
    last = {row.stream.name: row for row in rows if row.stream.kind.group == group}
    return [
        _with_row(stream, last[stream.name]) if stream.name in last else stream
        for stream in streams
    ]


def _with_row(stream: StreamView, row: AnyRow) -> StreamView:
    """Return the stream with one more row; without it if the step was closed meanwhile."""
    kind = _WithArray if row.stream.kind.is_blob else _WithRow
    longer = kind(stream, row)  # counts the rows before it is asked what the last one is
    return longer if row.stream.last_step < row.step else stream


class _WithRow(WrappedStream):
    """A stream and one row more."""

    def __init__(self, stream: StreamView, row: AnyRow) -> None:
        super().__init__(stream)
        self._row, self._values = row, row.values
        self._n = stream.n_rows

    @property
    def axis(self) -> Axis | None:
        return self._row.stream.axis

    @property
    def n_rows(self) -> int:
        return self._n + 1

    def steps(self, start: int = 0, stop: int | None = None) -> Steps:
        start, stop, _ = slice(start, stop).indices(self.n_rows)
        closed = self._stream.steps(start, min(stop, self._n))
        return np.append(closed, np.int64(self._row.step)) if start <= self._n < stop else closed

    def times(self, start: int = 0, stop: int | None = None) -> Steps:
        start, stop, _ = slice(start, stop).indices(self.n_rows)
        closed = self._stream.times(start, min(stop, self._n))
        return np.append(closed, np.int64(self._row.time_ms)) if start <= self._n < stop else closed

    def values(
        self,
        quantity: str,
        start: int = 0,
        stop: int | None = None,
        modules: Sequence[str] | None = None,
    ) -> Floats:
        start, stop, _ = slice(start, stop).indices(self.n_rows)
        stored = self._stream.values(quantity, start, min(stop, self._n), modules)
        if stop <= self._n or start > self._n:
            return stored
        last = self._last(quantity, self.modules if modules is None else modules)
        return np.concatenate([stored, last])

    def _last(self, quantity: str, modules: Sequence[str]) -> Floats:
        q, table = self._row.stream.variable_index[quantity], self._values
        places = [self._row.stream.module_index[module] for module in modules]
        out = np.full((1, len(places), *table.shape[2:]), NOT_MEASURED, np.float32)
        for i, m in enumerate(places):  # the axes may have grown since
            if q < table.shape[0] and m < table.shape[1]:
                out[0, i] = table[q, m]
        return out


class _WithArray(_WithRow):
    """An ArrayView with one array more."""

    @property
    def cell(self) -> tuple[int, ...]:
        return self._row.stream.kind.cell
