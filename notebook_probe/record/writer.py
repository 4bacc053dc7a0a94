"""Writing a record: rows from the training thread, everything else on a thread of its own."""

from __future__ import annotations

import shutil
import time
import uuid
import weakref
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from itertools import zip_longest
from pathlib import Path
from types import MappingProxyType
from typing import Any, Self

from notebook_probe.errors import (
    RecordFormatError,
    RecordLockedError,
    RecordMismatchError,
    RecordWriteError,
)
from notebook_probe.record.commit import Commits
from notebook_probe.record.files import Files
from notebook_probe.record.flusher import Flusher
from notebook_probe.record.live import LiveSource
from notebook_probe.record.location import ROOT_KEY, is_unused, new_folder
from notebook_probe.record.lock import Lock
from notebook_probe.record.reader import OpenedRecord
from notebook_probe.record.schema import (
    CONVENTIONS,
    FORMAT_VERSION,
    SCALARS,
    check_stream,
    module_label,
)
from notebook_probe.record.source import Event, ModuleRow, Source
from notebook_probe.record.stream import StreamWriter

__all__ = ["RecordWriter"]


class RecordWriter:
    """The one writer of a record: makes it, or goes on with one of the same model.

    Parameters
    ----------
    location : str or Path
        Folder of the record, on a local disk.
    title : str
        Name of the run.
    modules : sequence of ModuleRow
        The model, in definition order.
    attrs : mapping of str to str, optional
        Further attributes of the root group.
    flush_s, flush_rows : float, int
        Rows reach the disk after so many seconds or so many rows, whichever comes first; a slow
        disk makes it later, so that flushing takes 5 % of one core at most.
    ring_bytes : int
        Memory for rows that wait; more are dropped, and counted.

    Raises
    ------
    RecordFormatError
        When something else is there; it is left as it is.
    RecordMismatchError
        When the record of another model is there.
    RecordLockedError
        When another writer has it.
    RecordWriteError
        When it cannot be written.

    Examples
    --------
    >>> import tempfile, numpy as np
    >>> from notebook_probe.record import Variable, open_record
    >>> folder = tempfile.mkdtemp()
    >>> with RecordWriter(folder, title="first", modules=[]) as writer:
    ...     stream = writer.stream("every_1", "every(1)")
    ...     stream.extend(["fc"], [Variable("norm")])
    ...     for step in range(3):
    ...         kept = stream.record(step, 0, np.array([[step / 2]], np.float32))
    >>> open_record(folder).series("fc", "norm").values.tolist()
    [0.0, 0.5, 1.0]
    """

    def __init__(
        self,
        location: str | Path,
        *,
        title: str,
        modules: Sequence[ModuleRow],
        attrs: Mapping[str, str] = MappingProxyType({}),
        flush_s: float = 1.0,
        flush_rows: int = 4096,
        ring_bytes: int = 32 << 20,
    ) -> None:
        folder = new_folder(location)
        table = tuple(replace(row, name=module_label(row.name)) for row in modules)
        old = _old_record(folder)
        if old is not None:
            _check_same_model(old, table)
        lock = _lock(folder)
        try:
            if old is not None:
                old.refresh()  # what was committed before the lock was ours
            root_attrs = {**(_new_attrs() if old is None else old.attrs), **attrs, "title": title}
            self._files = Files(folder)
            commits = Commits(self._files, lock, table, {} if old is None else _chunks(old))
            self._flusher = Flusher(
                commits,
                lock,
                root_attrs,
                flush_s=flush_s,
                flush_rows=flush_rows,
                ring_bytes=ring_bytes,
            )
            if old is not None:
                _take_over(old, self._flusher)
            self._flusher.start()
        except OSError as error:
            lock.release()
            raise RecordWriteError(f"cannot write the record {folder}: {error}") from error
        self.continued = old is not None
        self.location = str(folder)
        self.run_id = str(root_attrs["run_id"])
        self.source: Source = LiveSource(title, self.location, table, self._flusher)
        # Also when the writer is forgotten, and at the interpreter's exit.
        self._close = weakref.finalize(self, self._flusher.close)

    @property
    def last_step(self) -> int:
        """Greatest step in any stream, -1 when there is none."""
        return max((stream.last_step for stream in self._streams()), default=-1)

    @property
    def dropped_rows(self) -> int:
        """Rows of this writer that did not reach the disk and never will."""
        return self._flusher.dropped_rows

    @property
    def last_error(self) -> str:
        """Why the last flush failed, in words; empty when it did not."""
        return self._flusher.last_error

    @property
    def flushed_at(self) -> float | None:
        """``time.monotonic()`` of the last flush that wrote something."""
        return self._flusher.flushed_at

    @property
    def nbytes(self) -> int:
        """Size of the record on disk."""
        return self._files.nbytes

    def published_rows(self, stream: str) -> int:
        """Rows of a stream that readers of the store can see."""
        return self._flusher.streams[stream].published

    def stream(self, name: str, long_name: str = "") -> StreamWriter:
        """The stream called ``name``, made when it is new."""
        if name not in self._flusher.streams:
            check_stream(name)
            stream = StreamWriter(name, long_name or name, self._flusher.has_room)
            self._flusher.streams[name] = stream
        return self._flusher.streams[name]

    def event(self, step: int, kind: str, text: str) -> None:
        """Note that something happened at ``step``."""
        self._flusher.events.append(Event(step, time.time_ns() // 1_000_000, kind, text))

    def flush(self, timeout_s: float = 10.0) -> bool:
        """Wait until everything recorded so far is on disk; False when it failed or took longer."""
        return self._flusher.flush(timeout_s)

    def close(self) -> None:
        """Write the rest and mark the record closed; safe to call twice.

        What cannot be written is counted in ``dropped_rows``, and ``last_error`` says why.
        """
        self._close()

    def discard_if_empty(self) -> bool:
        """Close, and remove the record when it holds no row and no event."""
        self.close()
        rows = sum(stream.n_rows for stream in self._streams())
        if rows or self._flusher.events or not self._flusher.finished:
            return False
        shutil.rmtree(self.location, ignore_errors=True)
        return True

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        rows = ", ".join(f"{stream.name}: {stream.n_rows} rows" for stream in self._streams())
        return f"<RecordWriter {self.location!r}; {rows or 'no rows'}>"

    def _streams(self) -> tuple[StreamWriter, ...]:
        return tuple(self._flusher.streams.values())


def _old_record(folder: Path) -> OpenedRecord | None:
    """The record that is there already, or None for a place that is free."""
    if folder.is_dir() and is_unused(folder):
        return None
    if not (folder / ROOT_KEY).is_file():
        what = "a folder with other files" if folder.is_dir() else "a file"
        raise RecordFormatError(f"{folder} is {what}, not a record; nothing was changed")
    return OpenedRecord(folder)


def _check_same_model(old: OpenedRecord, modules: Sequence[ModuleRow]) -> None:
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


def _lock(folder: Path) -> Lock:
    try:
        return Lock(folder)
    except RecordLockedError:
        raise
    except OSError as error:
        raise RecordWriteError(f"cannot write to {folder}: {error.strerror}") from error


def _new_attrs() -> dict[str, Any]:
    try:
        package = version("notebook-probe")
    except PackageNotFoundError:  # a source tree that is not installed
        package = "unknown"
    return {
        "Conventions": CONVENTIONS,
        "notebook_probe_version": package,
        "format_version": FORMAT_VERSION,
        "run_id": uuid.uuid4().hex,
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
    }


def _chunks(old: OpenedRecord) -> dict[str, tuple[int, ...]]:
    """Chunk shape of the arrays of ``old``, by path."""
    return {
        f"{SCALARS}/{stream.name}/{name}": chunks
        for stream in old.streams.values()
        for name, chunks in stream.chunks().items()
    }


def _take_over(old: OpenedRecord, flusher: Flusher) -> None:
    """Go on where ``old`` ends."""
    flusher.events.extend(old.events)
    for name, stored in old.streams.items():
        n = stored.n_rows
        flusher.streams[name] = StreamWriter(
            name,
            stored.long_name,
            flusher.has_room,
            n_rows=n,
            last_step=int(stored.steps(n - 1, n)[0]) if n else -1,
            modules=stored.modules,
            variables=stored.variables,
        )
