"""A record opened for reading: finished, or growing under another process's writer."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import zarr

from notebook_probe.errors import RecordFormatError
from notebook_probe.record.branches import Branches
from notebook_probe.record.location import ROOT_KEY, Location, local_path
from notebook_probe.record.pyramid import SIZES
from notebook_probe.record.schema import FORMAT_VERSION, PYRAMID, SCALARS, level_name
from notebook_probe.record.source import Event, ModuleRow, StreamView, VectorView
from notebook_probe.record.stored import StoredStream, StoredVectors
from notebook_probe.record.tables import read_events, read_modules
from notebook_probe.record.views import Snapshot, Views

__all__ = ["OpenedRecord", "open_record"]


def open_record(location: Location) -> OpenedRecord:
    """Open the record at a path, a URL or in a zarr Store.

    Raises
    ------
    RecordFormatError
        When there is nothing, something else, or a record of a newer format.
    """
    return OpenedRecord(location)


class OpenedRecord(Views):
    """One record as its readers see it; a Source.

    Everything is read from one commit of the writer. `revision` looks for a newer one, and
    everything read afterwards comes from that.

    Parameters
    ----------
    location : str, Path or zarr Store
    branch : int, optional
        Whose history is seen, from 1; the newest one's by default.

    Attributes
    ----------
    paths : mapping of str to StoredStream
        Streams of both kinds and of every branch, by their place in the record.
    """

    def __init__(self, location: Location, branch: int | None = None) -> None:
        self._path = local_path(location)
        self._store = location if self._path is None else str(self._path)
        self.location = str(self._store)
        self._branch = branch
        self._lock = threading.Lock()
        self._revision = 0
        self._signature: object = None
        self.refresh()

    @property
    def name(self) -> str:
        return str(self.attrs.get("title", self.location))

    @property
    def finished(self) -> bool:
        return self.attrs["state"] == "closed"

    @property
    def revision(self) -> int:
        """Number of commits seen; looks for a new one (on a local disk: one ``stat``)."""
        if self._commit_signature() != self._signature:
            self.refresh()
        return self._revision

    @property
    def streams(self) -> Mapping[str, StreamView]:
        return {view.name: view for view in self.snapshot().history[0]}

    @property
    def vectors(self) -> Mapping[str, VectorView]:
        return {f"{view.axis.group}/{view.name}": view for view in self.snapshot().history[1]}

    def refresh(self) -> None:
        """Read the newest commit."""
        with self._lock:
            self._signature = self._commit_signature()  # before reading: a commit in between counts
            root = _open_root(self._store, self.location)
            groups = dict(root.groups())
            pyramids = dict(groups[PYRAMID].groups()) if PYRAMID in groups else {}
            paths: dict[str, StoredStream] = {
                f"{SCALARS}/{name}": StoredStream(name, group, _levels(pyramids.get(name)))
                for name, group in groups[SCALARS].groups()
            }
            paths |= {
                f"{kind}/{name}": StoredVectors(name, group, str(above.attrs["axis"]))
                for kind, above in groups.items()
                if "axis" in above.attrs
                for name, group in above.groups()
            }
            self.attrs: dict[str, Any] = root.attrs.asdict()
            self.modules: tuple[ModuleRow, ...] = read_modules(groups["modules"])
            self.events: tuple[Event, ...] = read_events(groups["events"])
            self.paths: Mapping[str, StoredStream] = MappingProxyType(paths)
            self._branches = Branches.of(self.attrs, self._branch)
            self._revision += 1

    def __repr__(self) -> str:
        rows = ", ".join(
            f"{path.removeprefix(SCALARS + '/')}: {stream.n_rows} rows"
            for path, stream in self.paths.items()
        )
        state = "finished" if self.finished else "open"
        return f"<OpenedRecord {self.location!r}, {state}; {rows or 'no rows'}>"

    def snapshot(self) -> Snapshot:
        every = tuple(self.paths.values())
        vectors = [stream for stream in every if isinstance(stream, StoredVectors)]
        numbers = [stream for stream in every if stream.axis is None]
        names = [row.name for row in self.modules]
        return Snapshot(numbers, vectors, names, self.attrs, self._branches)

    def _commit_signature(self) -> object:
        if self._path is None:
            return int(time.monotonic())  # a remote store is asked once a second at most
        try:
            stat = (self._path / ROOT_KEY).stat()
        except OSError:
            return self._signature  # removed: what was read stays readable
        return stat.st_mtime_ns, stat.st_size, stat.st_ino


def _levels(pyramid: zarr.Group | None) -> dict[int, zarr.Group]:
    there = {} if pyramid is None else dict(pyramid.groups())
    return {size: there[level_name(size)] for size in SIZES if level_name(size) in there}


def _open_root(store: Location, location: str) -> zarr.Group:
    try:
        root = zarr.open_group(store, mode="r", use_consolidated=True)
    except (FileNotFoundError, NotADirectoryError) as error:
        raise RecordFormatError(f"no record at {location}") from error
    except ValueError as error:
        raise RecordFormatError(f"{location} is not a record: {error}") from error
    version = root.attrs.get("format_version")
    if not isinstance(version, int):
        raise RecordFormatError(f"{location} is a zarr group, but not a record")
    if version > FORMAT_VERSION:
        raise RecordFormatError(
            f"record of format {version}; this version reads up to {FORMAT_VERSION}: {location}"
        )
    return root
