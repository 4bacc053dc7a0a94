"""One flush: data first, then the metadata of new arrays, the root last.

Everything written is final or not yet visible, and a row's place is its number, so a flush that
fails half-way is simply done again.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from notebook_probe.axis import Axis
from notebook_probe.errors import RecordWriteError
from notebook_probe.record import metadata
from notebook_probe.record.chunks import Chunks, Extent
from notebook_probe.record.files import Files
from notebook_probe.record.location import ROOT_KEY
from notebook_probe.record.lock import Lock
from notebook_probe.record.rows import Rows
from notebook_probe.record.schema import (
    SCALARS,
    VECTOR_WIDTH,
    ArraySpec,
    coordinate_spec,
    module_spec,
    quantity_spec,
    step_spec,
    time_spec,
    width,
)
from notebook_probe.record.source import Event, ModuleRow
from notebook_probe.record.stream import StreamWriter
from notebook_probe.record.tables import Nodes, event_columns, module_columns, write_table

__all__ = ["Commits"]

METADATA_EVERY = 10
"""Commits between two renewals of the arrays' own metadata, which only some readers look at."""


class Commits:
    """The record's folder, as the one thread that writes it sees it.

    Parameters
    ----------
    there : mapping of str to Extent
        The arrays that are there already, as published, by path.
    """

    def __init__(
        self,
        files: Files,
        chunks: Chunks,
        lock: Lock,
        modules: Sequence[ModuleRow],
        there: Mapping[str, Extent],
    ) -> None:
        self._files = files
        self._chunks = chunks
        self._lock = lock
        self._modules = modules
        self._there = there
        self._grids: dict[str, tuple[int, ...]] = {}
        self._nodes: Nodes = {SCALARS: metadata.group()}
        self._widths: dict[str, int] = {}
        self._on_disk: Nodes = {}
        self._labels_on_disk: dict[str, tuple[str, ...]] = {}
        self._events_on_disk = -1
        self._n_modules_on_disk = -1
        self._root: dict[str, Any] = {}
        self._n_commits = 0

    def describe(self, modules: Sequence[ModuleRow]) -> None:
        """Write this table of modules from the next commit on; rows are only appended."""
        self._modules = modules

    def commit(
        self,
        attrs: Mapping[str, Any],
        streams: Iterable[StreamWriter],
        events: Sequence[Event],
        *,
        last: bool = False,
    ) -> bool:
        """Write what is new and publish it; returns whether anything was.

        Raises
        ------
        OSError
            When it cannot be written; what was published before stays.
        """
        if not self._lock.is_in_place():
            raise RecordWriteError(f"the record {self._files.folder} was removed or replaced")
        self._write_tables(events)
        snapshot = [(stream, stream.rows()) for stream in streams]  # of one moment, more or less
        for stream, rows in snapshot:
            self._write_stream(stream, rows)
        root = metadata.root(attrs, self._nodes)
        if root == self._root:
            return False
        self._write_nodes(last=last)
        self._files.write(ROOT_KEY, metadata.dump(root))
        self._root = root
        self._n_commits += 1
        for stream, rows in snapshot:
            stream.publish(rows.stop)
        return True

    def _write_tables(self, events: Sequence[Event]) -> None:
        modules = self._modules
        if len(modules) != self._n_modules_on_disk:
            self._nodes |= write_table(self._chunks, "modules", module_columns(modules))
            self._n_modules_on_disk = len(modules)
        if len(events) != self._events_on_disk:
            self._nodes |= write_table(self._chunks, "events", event_columns(events))
            self._events_on_disk = len(events)

    def _write_stream(self, stream: StreamWriter, rows: Rows) -> None:
        """Write the rows that wait."""
        path, axis = stream.path, stream.axis
        start, stop, axes = stream.published, rows.stop, rows.axes
        names = [variable.name for variable in axes.variables]
        self._nodes[path] = metadata.group({"long_name": stream.long_name, "quantities": names})
        if axis is not None:
            self._write_axis(path, axis)
        if self._labels_on_disk.get(path) != axes.modules:
            spec = self._shaped(f"{path}/module", module_spec(), (len(axes.modules),))
            self._chunks.write_whole(f"{path}/module", spec, axes.modules)
            self._labels_on_disk[path] = axes.modules
        chunk_width = VECTOR_WIDTH if axis else self._chunk_width(path, len(axes.modules))
        for place, variable in enumerate(axes.variables):
            key = f"{path}/{variable.name}"
            wanted = quantity_spec(variable, chunk_width, axis)
            spec = self._shaped(key, wanted, (stop, len(axes.modules), *axes.cell))
            for first in range(start, stop, spec.chunks[0]):  # bounds the memory of a long backlog
                last = min(stop, first + spec.chunks[0])
                self._chunks.write_rows(key, spec, first, rows.values(place, first, last))
        spec = self._shaped(f"{path}/time", time_spec(), (stop,))
        self._chunks.write_rows(f"{path}/time", spec, start, rows.times(start, stop))
        spec = self._shaped(f"{path}/step", step_spec(), (stop,))
        self._chunks.write_rows(f"{path}/step", spec, start, rows.steps(start, stop))

    def _write_axis(self, path: str, axis: Axis) -> None:
        self._nodes[axis.group] = metadata.group({"axis": axis.name})
        for name, values in axis.coords.items():
            place = f"{path}/{name}"
            if place not in self._nodes:
                spec = coordinate_spec(axis, name)
                self._chunks.write_whole(place, spec, values)
                self._nodes[place] = spec.metadata((axis.size,))

    def _chunk_width(self, stream: str, n_modules: int) -> int:
        """Modules per chunk of a stream, the same for all its arrays and for good."""
        if stream not in self._widths:
            found = (
                there.chunks[1]
                for path, there in self._there.items()
                if path.startswith(f"{stream}/") and len(there.chunks) == 2
            )
            # More modules may be attached later, up to all of them.
            self._widths[stream] = next(found, width(max(n_modules, len(self._modules))))
        return self._widths[stream]

    def _shaped(self, path: str, wanted: ArraySpec, shape: tuple[int, ...]) -> ArraySpec:
        """Note the array's new shape; returns ``wanted`` with the chunks it was made with."""
        spec = replace(wanted, chunks=self._grids.get(path, wanted.chunks))
        if path not in self._grids:
            there = self._there.get(path, Extent((0,) * len(shape), wanted.chunks))
            spec = replace(wanted, chunks=there.chunks)
            self._chunks.truncate(path, spec, there.shape)
            self._grids[path] = there.chunks
        self._nodes[path] = spec.metadata(shape)
        return spec

    def _write_nodes(self, *, last: bool) -> None:
        """Renew the arrays' own metadata: now and then, and all together when an array is new."""
        new = self._nodes.keys() != self._on_disk.keys()
        if not (new or last or self._n_commits % METADATA_EVERY == 0):
            return
        for path, node in self._nodes.items():
            if self._on_disk.get(path) != node:
                self._files.write(f"{path}/{ROOT_KEY}", metadata.dump(node))
                self._on_disk[path] = node
