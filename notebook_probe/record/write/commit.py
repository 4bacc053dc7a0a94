"""One flush: data first, then the metadata of new arrays, the root last.

Everything written is final or not visible yet, and a row's place is its number, so a flush that
fails half-way is simply repeated.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Any

from notebook_probe.errors import RecordWriteError
from notebook_probe.record.format.array_specs import step_spec, time_spec
from notebook_probe.record.format.axes import Axes
from notebook_probe.record.format.metadata import root_text
from notebook_probe.record.format.reductions import SIZES
from notebook_probe.record.format.schema import SCALARS
from notebook_probe.record.format.source import Event, ModuleRow
from notebook_probe.record.format.summary import SUMMARY, Summary
from notebook_probe.record.format.tables import event_columns, module_columns
from notebook_probe.record.read.stored import StoredStream
from notebook_probe.record.store.files import Files
from notebook_probe.record.store.location import ROOT_KEY
from notebook_probe.record.store.lock import Lock
from notebook_probe.record.views.branches.branches import IN_ORDER, read_name
from notebook_probe.record.write.streams.arrays import ShapedArrayWriter
from notebook_probe.record.write.streams.levels import Levels
from notebook_probe.record.write.streams.rows import BufferedRows
from notebook_probe.record.write.streams.stream import StreamWriter
from notebook_probe.record.write.summary_kept import KeptSummary

__all__ = ["Commits"]

METADATA_EVERY = 10
"""Commits between two renewals of the arrays' own metadata, which only some readers look at."""


class Commits:
    """The record's folder, as the one thread that writes it sees it.

    Parameters
    ----------
    stored : mapping of str to StoredStream
        The existing streams, by path.
    summary : Summary
        Summary of their rows.
    """

    def __init__(
        self,
        files: Files,
        arrays: ShapedArrayWriter,
        lock: Lock,
        modules: Sequence[ModuleRow],
        stored: Mapping[str, StoredStream],
        summary: Summary,
    ) -> None:
        self._files = files
        self._arrays = arrays
        self._lock = lock
        self._modules = modules
        self._stored = stored
        self._summary = KeptSummary(summary)
        self._levels: dict[str, Levels] = {}
        self._widths: dict[str, int] = {}
        self._on_disk: dict[str, str] = {}
        self._labels_on_disk: dict[str, tuple[str, ...]] = {}
        self._events_on_disk = -1
        self._n_modules_on_disk = -1
        self._told: tuple[Mapping[str, Any], str] | None = None
        """Contents of the root, without its summary."""
        self.n_events = 0
        """Events that a reader of the store can see."""
        self._n_commits = 0
        arrays.nodes.group(SCALARS)

    @property
    def nbytes(self) -> int:
        """Size of the record on disk."""
        return self._files.nbytes

    def describe(self, modules: Sequence[ModuleRow]) -> None:
        """Write this table of modules from the next commit on; rows are only appended."""
        self._modules = modules

    def commit(
        self,
        attrs: Mapping[str, Any],
        streams: Iterable[StreamWriter],
        events: Sequence[Event],
        *,
        whole: bool = False,
        last: bool = False,
    ) -> bool:
        """Write everything new and publish it; return whether there was anything.

        With ``whole``, incomplete chunks and blocks are written as well.

        Raises
        ------
        OSError
            It cannot be written; what was published before stays.
        """
        # Otherwise rows would go to a folder that another run has replaced.
        if not self._lock.is_in_place():
            raise RecordWriteError(f"the record {self._files.folder} was removed or replaced")
        self._write_tables(events)
        snapshot = [(stream, stream.rows()) for stream in streams]  # of one moment, more or less
        # Streams that were merged into another one since.
        for path in self._labels_on_disk.keys() - {stream.path for stream, _ in snapshot}:
            self._forget(path)
        for stream, rows in snapshot:
            self._write_stream(stream, rows, whole=whole)
        told = attrs, self._arrays.nodes.inline()
        # Without anything new the root stays: readers look at its time, and would read everything
        # again.
        if told == self._told:
            return False
        summary = self._summary.after(snapshot, events, self._files.nbytes)
        self._write_nodes(last=last)
        # Before the root, which makes the rows visible: after a power cut it must not name what is
        # not there.
        self._arrays.chunks.sync()
        self._files.sync()
        root = root_text({**attrs, SUMMARY: summary.text()}, told[1])
        self._files.write(ROOT_KEY, root.encode())
        self._files.sync()
        # Only now: if anything above raised, the next flush does all of it again.
        self._told, self.n_events = told, len(events)
        self._summary.commit()
        self._n_commits += 1
        for stream, rows in snapshot:
            stream.publish(rows.stop)
        for levels in self._levels.values():
            levels.commit()
        return True

    def seal(self, *, tails: bool = False) -> None:
        """Give all that is published its final form, with ``tails`` also the last chunks."""
        self._arrays.chunks.seal(tails=tails)

    def finish(self) -> None:
        """Give new chunks their final form at once: the next rows are the last."""
        self._arrays.chunks.finish()

    def close(self) -> None:
        """Close open files; safe to call twice."""
        self._arrays.chunks.close()

    def _forget(self, path: str) -> None:
        """Remove a stream whose rows are in another one now."""
        del self._labels_on_disk[path]
        self._arrays.nodes.drop(path)
        texts = self._arrays.nodes.texts
        self._on_disk = {key: text for key, text in self._on_disk.items() if key in texts}

    def _write_tables(self, events: Sequence[Event]) -> None:
        modules = self._modules
        if len(modules) != self._n_modules_on_disk:
            self._arrays.write_table("modules", module_columns(modules))
            self._n_modules_on_disk = len(modules)
        if len(events) != self._events_on_disk:
            self._arrays.write_table("events", event_columns(events))
            self._events_on_disk = len(events)

    def _write_stream(self, stream: StreamWriter, rows: BufferedRows, *, whole: bool) -> None:
        """Write the rows that wait."""
        path, axes, arrays, sizes = stream.path, rows.axes, self._arrays, self._arrays.sizes
        kind, start, stop = stream.kind, stream.published, rows.stop
        self._write_columns(stream, axes)
        chunk_width = self._chunk_width(stream, len(axes.modules))
        for place, variable in enumerate(axes.variables):
            key = f"{path}/{variable.name}"
            make_spec = partial(kind.spec, variable, sizes, chunk_width)
            # The chunks on disk count, if there are any: a resumed record keeps its layout.
            length = arrays.take_up(key, make_spec).chunks[0]
            for first in range(start, stop, length):  # bounds the memory of a long backlog
                last = min(stop, first + length)
                arrays.write_rows(key, first, kind.stored(rows.values(place, first, last)))
            arrays.grow(key, kind.shape(stop, len(axes.modules)))
        for name, spec, index in (("time", time_spec, rows.times), ("step", step_spec, rows.steps)):
            arrays.take_up(f"{path}/{name}", partial(spec, sizes))
            arrays.write_rows(f"{path}/{name}", start, index(start, stop))
            arrays.grow(f"{path}/{name}", (stop,))
        # Rows written later than others would change finished blocks; those streams are short.
        if kind.reduced_along and read_name(stream.name).rank == IN_ORDER:
            self._levels_of(stream).write(arrays, rows, start, chunk_width, whole=whole)

    def _levels_of(self, stream: StreamWriter) -> Levels:
        path = stream.path
        if path not in self._levels:
            stored = self._stored.get(path)
            n_written = stored.n_blocks if stored else (0,) * len(SIZES)
            self._levels[path] = Levels(
                stream.name, stream.kind, stored, stream.published, n_written
            )
        return self._levels[path]

    def _write_columns(self, stream: StreamWriter, axes: Axes) -> None:
        """Write the labels of the columns, and the groups."""
        nodes, path = self._arrays.nodes, stream.path
        for above, attrs in stream.kind.parents.items():
            nodes.group(above, attrs)
        names = [variable.name for variable in axes.variables]
        group_attrs = {"long_name": stream.long_name, "quantities": names, **stream.kind.attrs}
        nodes.group(path, group_attrs)
        if self._labels_on_disk.get(path) != axes.modules:
            for name, (spec, values) in stream.kind.columns(axes).items():
                self._arrays.write_whole(f"{path}/{name}", spec, values)
            self._labels_on_disk[path] = axes.modules

    def _chunk_width(self, stream: StreamWriter, n_modules: int) -> int:
        """Return the modules per chunk of a stream, fixed for all its arrays."""
        path = stream.path
        if path not in self._widths:
            existing = self._arrays.chunk_width(path)
            # More modules may be attached later, up to all of them.
            wide = stream.kind.width(max(n_modules, len(self._modules)), self._arrays.sizes)
            self._widths[path] = existing or wide
        return self._widths[path]

    def _write_nodes(self, *, last: bool) -> None:
        """Renew the arrays' own metadata: now and then, and all together when an array is new."""
        texts = self._arrays.nodes.texts
        # The root has the metadata inline; the files are for readers without consolidated metadata.
        new = texts.keys() != self._on_disk.keys()
        if not (new or last or self._n_commits % METADATA_EVERY == 0):
            return
        for path, text in texts.items():
            if self._on_disk.get(path) != text:
                self._files.write(f"{path}/{ROOT_KEY}", text.encode())
                self._on_disk[path] = text
