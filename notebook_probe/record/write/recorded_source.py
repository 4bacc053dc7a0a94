"""The writer's own view of its record: rows in memory included."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from notebook_probe.axis import Axis
from notebook_probe.record.export.exports import Exports
from notebook_probe.record.format.lookup import columns, quantity_place
from notebook_probe.record.format.missing import NOT_MEASURED
from notebook_probe.record.format.schema import NAMES, SCALARS, VECTORS
from notebook_probe.record.format.source import (
    ChunkGrid,
    Event,
    Floats,
    LevelView,
    ModuleRow,
    Steps,
    StreamView,
    Variable,
    VectorView,
)
from notebook_probe.record.read.reader import OpenedRecord
from notebook_probe.record.store.location import Location
from notebook_probe.record.store.place import RecordFolder
from notebook_probe.record.views.branches.branches import Branches
from notebook_probe.record.views.branches.line import events_of_line
from notebook_probe.record.views.own_names import measured_of_model
from notebook_probe.record.views.xarray_views import Snapshot
from notebook_probe.record.write.flusher import Flusher
from notebook_probe.record.write.streams.rows import BufferedRows
from notebook_probe.record.write.streams.stream import StreamWriter

__all__ = ["RecordedSource"]


class RecordedSource(Exports):
    """A record that this process is writing, as its readers see it; a Source for any thread.

    Recent rows come from memory, at once; older ones from the store.
    """

    def __init__(
        self, name: str, place: RecordFolder, modules: tuple[ModuleRow, ...], flusher: Flusher
    ) -> None:
        self.name = name
        self.location = place.name
        self._place = place
        self.modules = modules
        self._flusher = flusher
        self._branches = Branches.of(flusher.attrs)
        self._n_before = len(flusher.events)
        self._line = events_of_line(flusher.events[: self._n_before])
        self._gone: dict[str, StreamView] = {}
        self._record: tuple[Location, OpenedRecord] | None = None
        self._made: dict[str, tuple[object, Mapping[str, Any]]] = {}

    @property
    def revision(self) -> int:
        """Number that grows with every row, event, module and quantity."""
        streams = tuple(self._flusher.streams.values())
        n_columns = sum(sum(stream.shape) + 1 for stream in streams)
        n_rows = sum(stream.n_rows for stream in streams)
        n_table_rows = len(self._flusher.events) + len(self.modules)
        return n_rows + n_columns + n_table_rows + self.finished

    @property
    def finished(self) -> bool:
        return self._flusher.finished

    @property
    def events(self) -> tuple[Event, ...]:
        """Events on the present branch, and before it on its parent branches."""
        return (*self._line, *self._flusher.events[self._n_before :])

    @property
    def all_events(self) -> tuple[Event, ...]:
        """Events on every branch, in the order in which they were written."""
        return tuple(self._flusher.events)

    @property
    def streams(self) -> Mapping[str, StreamView]:
        return self._as_long_as_shaped("streams", lambda: super(RecordedSource, self).streams)

    @property
    def vectors(self) -> Mapping[str, VectorView]:
        return self._as_long_as_shaped("vectors", lambda: super(RecordedSource, self).vectors)

    @property
    def elements(self) -> Mapping[str, StreamView]:
        return self._as_long_as_shaped("elements", lambda: super(RecordedSource, self).elements)

    def _as_long_as_shaped(self, name: str, make: Callable[[], Mapping[str, Any]]) -> Any:
        """Return views, which are made again only when columns or names have changed."""
        shapes = [(stream, stream.shape) for stream in tuple(self._flusher.streams.values())]
        key = shapes, measured_of_model(self._flusher.attrs)
        if name not in self._made or self._made[name][0] != key:
            self._made[name] = key, make()
        return {**self._made[name][1]}

    def snapshot(self) -> Snapshot:
        every = tuple(self._flusher.streams.values())
        of = {
            group: [one for one in every if one.kind.group == group]
            for group in (SCALARS, VECTORS, NAMES)
        }
        return Snapshot(
            streams=self.views(of[SCALARS]),
            vectors=self.views(one for one in every if one.axis is not None),
            modules=[row.name for row in self.modules],
            attrs=self._flusher.attrs,
            branches=self._branches,
            ragged=self.views(of[VECTORS]),
            blobs=[
                LiveArrays(one, self._stored) for one in every if one.kind.is_blob and one.variables
            ],
            named=self.views(of[NAMES]),
        )

    def views(self, streams: Iterable[StreamWriter]) -> list[Any]:
        """Return views of streams that are being written."""
        return [
            LiveStream(stream, self._stored)
            if stream.axis is None
            else LiveVectors(stream, self._stored)
            for stream in streams
        ]

    def keep(self, stream: StreamWriter) -> None:
        """Keep a stream readable for its views, though the record will not have it."""
        if stream.published:
            self._gone[stream.path] = self._stored(stream, stream.published)

    def _stored(self, stream: StreamWriter, n_rows: int) -> StreamView:
        """Return the stored stream, opened again if it was shorter than ``n_rows``."""
        if stream.path in self._gone:
            return self._gone[stream.path]
        record = self._opened()
        if stream.path not in record.paths or record.paths[stream.path].n_rows < n_rows:
            record.refresh()
        return record.paths[stream.path]

    def _opened(self) -> OpenedRecord:
        readable = self._place.readable
        if self._record is None or self._record[0] is not readable:
            self._record = readable, OpenedRecord(readable)
        return self._record[1]


class LiveStream:
    """A stream that is being written; a StreamView that may be read from any thread.

    Parameters
    ----------
    stream : StreamWriter
    stored : callable
        Returns the stored stream with at least the given number of rows; called only for rows that
        are no longer in memory.
    """

    def __init__(
        self, stream: StreamWriter, stored: Callable[[StreamWriter, int], StreamView]
    ) -> None:
        self._stream = stream
        self._stored_at = stored

    @property
    def name(self) -> str:
        return self._stream.name

    @property
    def modules(self) -> tuple[str, ...]:
        return self._stream.modules

    @property
    def variables(self) -> tuple[Variable, ...]:
        return self._stream.variables

    @property
    def levels(self) -> Mapping[int, LevelView]:
        start = self._stream.rows().start
        return self._stored(start).levels if start else {}

    @property
    def version(self) -> tuple[object, ...]:
        return ()

    @property
    def n_rows(self) -> int:
        return self._stream.n_rows

    def steps(self, start: int = 0, stop: int | None = None) -> Steps:
        rows, start, middle, stop = self._split(start, stop)
        recent = rows.steps(middle, stop)
        if start == middle:
            return recent
        return np.concatenate([self._stored(middle).steps(start, middle), recent])

    def times(self, start: int = 0, stop: int | None = None) -> Steps:
        rows, start, middle, stop = self._split(start, stop)
        recent = rows.times(middle, stop)
        if start == middle:
            return recent
        return np.concatenate([self._stored(middle).times(start, middle), recent])

    def values(
        self,
        quantity: str,
        start: int = 0,
        stop: int | None = None,
        modules: Sequence[str] | None = None,
    ) -> Floats:
        rows, start, middle, stop = self._split(start, stop)
        variable = quantity_place(self.name, rows.axes.variable_index, quantity)
        axis = rows.axes.modules
        places = None if modules is None else columns(self.name, rows.axes.module_index, modules)
        recent = rows.values(variable, middle, stop, places)
        if start == middle:
            return recent
        labels = axis if places is None else [axis[place] for place in places]
        return np.concatenate([self._old_values(quantity, start, middle, labels), recent])

    def chunk_grid(self, quantity: str) -> ChunkGrid:
        published = self._stream.published
        stored = self._stored(published) if published else None
        if stored is None or all(variable.name != quantity for variable in stored.variables):
            return ChunkGrid((0,), max(1, len(self.modules)))
        return stored.chunk_grid(quantity)

    def _split(self, start: int, stop: int | None) -> tuple[BufferedRows, int, int, int]:
        """Rows ``start:middle`` are in the store, ``middle:stop`` in memory."""
        rows = self._stream.rows()
        first, last, _ = slice(start, stop).indices(rows.stop)
        return rows, first, max(first, min(rows.start, last)), last

    def _old_values(self, quantity: str, start: int, stop: int, labels: Sequence[str]) -> Floats:
        """Return values of rows that have left the memory; NaN for columns added since."""
        stored = self._stored(stop)
        shape = stop - start, len(labels), *self._stream.shape[2:]
        out = np.full(shape, NOT_MEASURED, np.float32)
        known = set(stored.modules)
        places = [i for i, label in enumerate(labels) if label in known]
        if places and any(variable.name == quantity for variable in stored.variables):
            out[:, places] = stored.values(quantity, start, stop, [labels[i] for i in places])
        return out

    def _stored(self, n_rows: int) -> StreamView:
        return self._stored_at(self._stream, n_rows)


class LiveVectors(LiveStream):
    """A stream of vectors that is being written; a VectorView."""

    @property
    def axis(self) -> Axis:
        axis = self._stream.axis
        assert axis is not None
        return axis


class LiveArrays(LiveStream):
    """Arrays of one quantity at one module, that are being written; an ArrayView."""

    @property
    def cell(self) -> tuple[int, ...]:
        return self._stream.kind.cell
