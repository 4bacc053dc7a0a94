"""Going on with a record that is already there."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import zip_longest
from pathlib import Path

from notebook_probe.errors import RecordFormatError, RecordMismatchError
from notebook_probe.record.chunks import Extent
from notebook_probe.record.flusher import Flusher
from notebook_probe.record.location import ROOT_KEY, is_unused
from notebook_probe.record.reader import OpenedRecord
from notebook_probe.record.schema import PYRAMID, level_name
from notebook_probe.record.source import ModuleRow
from notebook_probe.record.stored import StoredStream
from notebook_probe.record.stored_level import StoredLevel
from notebook_probe.record.stream import StreamWriter

__all__ = ["check_same_model", "extents", "old_record", "take_over"]


def old_record(folder: Path) -> OpenedRecord | None:
    """The record that is there already, or None for a place that is free.

    Raises RecordFormatError for anything else.
    """
    if folder.is_dir() and is_unused(folder):
        return None
    if not (folder / ROOT_KEY).is_file():
        what = "a folder with other files" if folder.is_dir() else "a file"
        raise RecordFormatError(f"{folder} is {what}, not a record; nothing was changed")
    old = OpenedRecord(folder)
    if old.problems:  # what cannot be read would be lost by going on
        raise old.problems[0]
    return old


def check_same_model(old: OpenedRecord, modules: Sequence[ModuleRow]) -> None:
    """Raise RecordMismatchError, naming the first differences, unless the modules are the same."""
    there = [_identity(row) for row in old.modules]
    given = [_identity(row) for row in modules]
    if there == given:
        return
    pairs = zip_longest(there, given, fillvalue="nothing")
    differences = [f"{a} there, {b} given" for a, b in pairs if a != b]
    shown = "; ".join(differences[:3])
    more = f"; and {len(differences) - 3} more" if len(differences) > 3 else ""
    raise RecordMismatchError(f"{old.location} holds the record of another model: {shown}{more}")


def _identity(row: ModuleRow) -> str:
    return f"{row.name} ({row.class_name}, {row.n_params} parameters)"


def extents(old: OpenedRecord) -> dict[str, Extent]:
    """Published shape and chunks of the arrays of ``old``, by path."""
    return {
        f"{path}/{name}": extent
        for stream_path, stream in old.paths.items()
        for path, group in _groups(stream_path, stream)
        for name, extent in group.extents().items()
    }


def _groups(path: str, stream: StoredStream) -> Iterator[tuple[str, StoredStream | StoredLevel]]:
    """A stream and its pyramid, each with its path."""
    yield path, stream
    for size, level in stream.levels.items():
        yield f"{PYRAMID}/{stream.name}/{level_name(size)}", level


def take_over(old: OpenedRecord, flusher: Flusher) -> None:
    """Go on where ``old`` ends."""
    flusher.events.extend(old.events)
    for path, stored in old.paths.items():
        n = stored.n_rows
        flusher.streams[path] = StreamWriter(
            stored.name,
            stored.long_name,
            flusher.has_room,
            flusher.names,
            axis=stored.axis,
            n_rows=n,
            last_step=int(stored.steps(n - 1, n)[0]) if n else -1,
            modules=stored.modules,
            variables=stored.variables,
        )
