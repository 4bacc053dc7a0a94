"""A record opened for reading: finished, or growing under another process's writer."""

from __future__ import annotations

import threading
import time
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from zarr.abc.store import Store

from notebook_probe.errors import RecordFormatError, RecordWarning, StoreSilentError, shown_as
from notebook_probe.printable import counted
from notebook_probe.record.export.exports import Exports
from notebook_probe.record.format.kinds import NUMBERS
from notebook_probe.record.format.schema import NOT_READ, SCALARS, UNWRITTEN_OF
from notebook_probe.record.format.source import Event, ModuleRow
from notebook_probe.record.read.contents import read_contents
from notebook_probe.record.read.manifest import Manifest
from notebook_probe.record.read.stored import StoredStream, StoredVectors
from notebook_probe.record.read.stored_shapes import StoredBlob, StoredNames, StoredRagged
from notebook_probe.record.store.location import ROOT_KEY, Location, local_path, read_key
from notebook_probe.record.store.nothing import nothing_at
from notebook_probe.record.store.opener import opener
from notebook_probe.record.store.other_tools import run_of_other_tool
from notebook_probe.record.store.unwritten import unwritten
from notebook_probe.record.store.writing import has_writer
from notebook_probe.record.views.branches.branches import Branches
from notebook_probe.record.views.branches.line import events_of_line
from notebook_probe.record.views.chunked import ChunksLike, check_chunks
from notebook_probe.record.views.xarray_views import Snapshot

__all__ = ["OpenedRecord", "open_record"]

LONGEST_NAME = 1000
"""Characters of a title that are believed."""


def open_record(location: Location) -> OpenedRecord:
    """Open the record at a path, a URL or in a zarr Store.

    Raises
    ------
    RecordFormatError
        There is nothing, something else, or a record of a newer format.

    Warns
    -----
    RecordWarning
        For a part that cannot be read; the others can. And for rows that could not be written.
    """
    record = OpenedRecord(location)
    record.warn_of_unwritten()
    return record


@shown_as("run")
class OpenedRecord(Exports):
    """An opened record; a Source.

    Everything is read from one commit of the writer. `revision` looks for a newer one, and
    everything read afterwards is from that.

    Parameters
    ----------
    location : str, Path or zarr Store
    branch : int, optional
        Branch, from 1; by default the newest.
    chunks : dict, optional
        Chunks of `data` for dask; see `dataset`.
    """

    def __init__(
        self, location: Location, branch: int | None = None, chunks: ChunksLike | None = None
    ) -> None:
        check_chunks(chunks)
        self._path = local_path(location)
        self.location = str(location if self._path is None else self._path)
        self._location = location
        self._open = opener(location)
        self._branch, self._chunks = branch, chunks
        # The panel's thread and the user's may both look for a new commit.
        self._lock = threading.Lock()
        self._revision = 0
        self._signature: object = None
        self._left: OpenedRecord | None = None
        self._warned: set[str] = set()
        self.refresh()

    @property
    def name(self) -> str:
        """Name of the run."""
        return str(self.attrs.get("title", self.location))[:LONGEST_NAME]

    @property
    def finished(self) -> bool:
        """True if its writer has closed it."""
        return self.attrs.get("state") == "closed"

    @property
    def is_written(self) -> bool:
        """True while a process writes the record; reads the lock or the lease."""
        return not self.finished and has_writer(self._location)

    @property
    def revision(self) -> int:
        """Number of commits seen; looks for a new one (on a local disk: one ``stat``)."""
        if self._commit_signature() != self._signature:
            self.refresh()
        return self._revision

    @property
    def attrs(self) -> Mapping[str, Any]:
        """Attributes of the record's root."""
        return self._contents.attrs

    @property
    def modules(self) -> tuple[ModuleRow, ...]:
        """The recorded modules, in order."""
        return self._contents.modules

    @property
    def events(self) -> tuple[Event, ...]:
        """Events on the present branch, and before it on its parent branches."""
        return events_of_line(self.all_events, len(self._branches.starts))

    @property
    def parent(self) -> OpenedRecord | None:
        """Parent branch, up to its end; None for the first branch."""
        before = len(self._branches.starts) - 1
        if before and (self._left is None or self._left._branch != before):
            self._left = OpenedRecord(self._location, before)
        return self._left

    @property
    def all_events(self) -> tuple[Event, ...]:
        """Events on every branch, in the order in which they were written."""
        return self._contents.events

    @property
    def paths(self) -> Mapping[str, StoredStream]:
        """Streams of both kinds and of every branch, by their place in the record."""
        return self._contents.paths

    @property
    def problems(self) -> tuple[RecordFormatError, ...]:
        """Errors of the parts of the record that were left out."""
        return self._contents.problems

    @property
    def unwritten(self) -> list[Path]:
        """Records of rows that this one could not take; the next writer takes them in."""
        if self._path is None or UNWRITTEN_OF in self.attrs:
            return []
        return unwritten(self._path.absolute(), self.attrs.get("run_id"))

    def warn_of_unwritten(self) -> None:
        """Warn about rows that could not be written and are stored elsewhere."""
        for place in self.unwritten:
            text = (
                f"{self.location} lacks rows that could not be written: they are in {place}, a "
                "separate record, until the next writer of this one takes them in"
            )
            warnings.warn(text, RecordWarning, stacklevel=3)

    def refresh(self) -> None:
        """Read the newest commit."""
        with self._lock:
            before = self._signature
            self._signature = self._commit_signature()  # before reading: a commit in between counts
            try:
                store, document = self._read_root()
                self._contents = read_contents(Manifest(document, store, self.location))
            except StoreSilentError:
                self._signature = before  # else it would count as read until the next commit
                raise
            self._branches = Branches.of(self._contents.attrs, self._branch)
            self._revision += 1
        self._warn()

    def snapshot(self) -> Snapshot:
        """Return the present state."""
        now = self._contents
        every = tuple(now.paths.values())
        vectors = [stream for stream in every if isinstance(stream, StoredVectors)]
        return Snapshot(
            streams=[stream for stream in every if stream.kind is NUMBERS],
            vectors=vectors,
            modules=[row.name for row in now.modules],
            attrs=now.attrs,
            branches=self._branches,
            ragged=[stream for stream in every if isinstance(stream, StoredRagged)],
            blobs=[stream for stream in every if isinstance(stream, StoredBlob)],
            named=[stream for stream in every if isinstance(stream, StoredNames)],
        )

    def __repr__(self) -> str:
        rows = ", ".join(
            f"{path.removeprefix(SCALARS + '/')}: {counted(stream.n_rows, 'row')}"
            for path, stream in self.paths.items()
        )
        state = "finished" if self.finished else "open"
        return f"<OpenedRecord {self.location!r}, {state}; {rows or 'no rows'}>"

    def _read_root(self) -> tuple[Store, bytes]:
        """Return the store and its newest commit record."""
        try:
            store = self._open()
        except FileNotFoundError as error:
            raise RecordFormatError(nothing_at(self.location, self._path)) from error
        try:
            document = read_key(store, ROOT_KEY)
        except OSError:
            raise
        except Exception as error:  # a damaged archive
            raise RecordFormatError(f"cannot read {self.location}: {error}") from error
        if document is None:
            raise RecordFormatError(nothing_at(self.location, self._path))
        return store, document

    def _warn(self) -> None:
        """Warn once about each part that was left out."""
        sentences = self.attrs.get(NOT_READ, ())
        remarks = map(str, sentences if isinstance(sentences, list) else ())
        for text in (*(f"left out: {one}" for one in self.problems), *remarks):
            if text not in self._warned:
                self._warned.add(text)
                warnings.warn(text, RecordWarning, stacklevel=2)

    def _commit_signature(self) -> object:
        if self._path is None:
            return int(time.monotonic())  # a remote store is asked once a second at most
        try:
            stat = (self._path / ROOT_KEY).stat()
        except OSError:
            # Removed, or packed: what was read stays readable.
            found = run_of_other_tool(self._path)
            return self._signature if found is None else found.mark()
        return stat.st_mtime_ns, stat.st_size, stat.st_ino
