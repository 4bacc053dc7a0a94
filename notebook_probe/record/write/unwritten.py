"""Rows that a record could not take, stored as a separate record and merged later."""

from __future__ import annotations

import shutil
import warnings
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from notebook_probe.errors import RecordFormatError, RecordWarning
from notebook_probe.record.format.missing import NOT_MEASURED
from notebook_probe.record.format.schema import DROPPED_ROWS, UNWRITTEN_OF
from notebook_probe.record.format.source import Event, ModuleRow
from notebook_probe.record.format.summary import Summary
from notebook_probe.record.read.reader import OpenedRecord
from notebook_probe.record.read.stored import StoredStream
from notebook_probe.record.read.summarised import current_summary
from notebook_probe.record.store.files import Files
from notebook_probe.record.store.lock import Lock
from notebook_probe.record.store.unwritten import free_places
from notebook_probe.record.write.commit import Commits
from notebook_probe.record.write.lost_rows import Losses
from notebook_probe.record.write.names import Names
from notebook_probe.record.write.resuming import extents
from notebook_probe.record.write.streams.arrays import ShapedArrayWriter
from notebook_probe.record.write.streams.hot_chunks import new_chunks
from notebook_probe.record.write.streams.plain_chunks import PlainChunks
from notebook_probe.record.write.streams.stream import StreamWriter

__all__ = ["keep", "take_in"]


def keep(
    folder: Path,
    attrs: Mapping[str, Any],
    modules: tuple[ModuleRow, ...],
    streams: Iterable[StreamWriter],
    events: tuple[Event, ...],
) -> Path | None:
    """Write the waiting rows next to the record in ``folder``, or where there is room.

    No thread is needed, as there is none any more at the program's exit.

    Returns
    -------
    Path or None
        Location of the rows, an ordinary record; None if there is no such place.
    """
    for place in free_places(folder, str(attrs["run_id"])):
        try:
            place.mkdir(parents=True, mode=0o700)
            lock = Lock(place)
            try:
                rest = [_waiting(stream) for stream in streams if stream.n_rows > stream.published]
                files = Files(place)
                arrays = ShapedArrayWriter(PlainChunks(files), {}, attrs)
                commits = Commits(files, arrays, lock, modules, {}, Summary())
                of = {**attrs, UNWRITTEN_OF: str(folder), "state": "closed"}
                commits.commit(of, rest, events, whole=True, last=True)
            finally:
                lock.release()
        except (OSError, MemoryError):
            # Half a rescue file would look like a record.
            shutil.rmtree(place, ignore_errors=True)
        else:
            return place
    return None


def take_in(old: OpenedRecord, lock: Lock) -> None:
    """Write into the record what an earlier writer could not, and refresh ``old``.

    Rows of existing steps are left out. Merged rows are removed.

    Warns
    -----
    RecordWarning
        Something cannot be read; it stays where it is.
    """
    for place in old.unwritten:
        try:
            rest = OpenedRecord(place)
        except RecordFormatError as problem:
            warnings.warn(f"left where it is: {problem}", RecordWarning, stacklevel=2)
        else:
            _take_in(rest, old, lock)
            shutil.rmtree(place)
            old.refresh()


def _take_in(rest: OpenedRecord, old: OpenedRecord, lock: Lock) -> None:
    losses, names = Losses(), Names()
    streams = {
        path: _stream_like(one, one.n_rows, losses, names) for path, one in old.paths.items()
    }
    for path, stored in rest.paths.items():
        stream = streams.setdefault(path, _stream_like(stored, 0, losses, names))
        stream.extend(stored.modules, stored.variables)
        _append(stream, stored)
    n_lost = max(_n_lost(old), _n_lost(rest)) + losses.n_rows
    events = (*old.all_events, *(event for event in rest.all_events if event not in old.all_events))
    files = Files(lock.path.parent, outlives_power=True)  # the only copy is removed then
    arrays = ShapedArrayWriter(new_chunks(files), extents(old), old.attrs)
    modules = max(old.modules, rest.modules, key=len)  # the table only grows
    attrs = {**old.attrs, DROPPED_ROWS: n_lost}
    commits = Commits(files, arrays, lock, modules, old.paths, current_summary(old))
    commits.commit(attrs, streams.values(), events, whole=True, last=True)
    commits.close()


def _n_lost(record: OpenedRecord) -> int:
    n_lost = record.attrs.get(DROPPED_ROWS)
    return n_lost if isinstance(n_lost, int) else 0


def _always(n_bytes: int) -> str:
    """Room for the rows of a writer whose memory was bounded."""
    return ""


def _stream_like(stored: StoredStream, n_rows: int, losses: Losses, names: Names) -> StreamWriter:
    """Return a stream with ``n_rows`` rows on disk."""
    return StreamWriter(
        stored.name,
        stored.long_name,
        _always,
        losses,
        names,
        kind=stored.kind,
        n_rows=n_rows,
        last_step=int(stored.steps(n_rows - 1, n_rows)[0]) if n_rows else -1,
        modules=stored.modules,
        variables=stored.variables,
    )


def _append(stream: StreamWriter, stored: StoredStream) -> None:
    """Record the rows of ``stored`` that are of later steps."""
    steps, times = stored.steps(), stored.times()
    begin = int(np.searchsorted(steps, stream.last_step, "right"))
    cells = np.ix_(
        [stream.variable_index[variable.name] for variable in stored.variables],
        [stream.module_index[module] for module in stored.modules],
    )
    values = [stored.values(variable.name, begin) for variable in stored.variables]
    for place, row in enumerate(zip(*values, strict=True), begin):
        table = np.full(stream.shape, NOT_MEASURED, np.float32)
        table[cells] = np.stack(row)
        stream.record(int(steps[place]), int(times[place]), table)


def _waiting(stream: StreamWriter) -> StreamWriter:
    """Return a stream with the waiting rows of another one."""
    rows, first = stream.rows(), stream.published
    rest = StreamWriter(
        stream.name,
        stream.long_name,
        _always,
        Losses(),
        Names(),
        kind=stream.kind,
        modules=rows.axes.modules,
        variables=rows.axes.variables,
    )
    times = iter(rows.times(first, rows.stop).tolist())
    for steps, tables in rows.tables(first, rows.stop):
        for step, table in zip(steps.tolist(), tables, strict=True):
            rest.record(step, next(times), table)
    return rest
