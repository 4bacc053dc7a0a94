"""Opening a record to write it: a new one, or an existing one to continue."""

from __future__ import annotations

import json
import uuid
import warnings
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache, partial
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from notebook_probe.errors import ProbeError, RecordFormatError, RecordWarning, RecordWriteError
from notebook_probe.record.format.chunk_sizes import CHUNKS, read_sizes
from notebook_probe.record.format.resume import Resume
from notebook_probe.record.format.schema import (
    CONVENTIONS,
    DROPPED_ROWS,
    FORMAT_VERSION,
    STOPPED,
)
from notebook_probe.record.format.source import ModuleRow
from notebook_probe.record.read.reader import OpenedRecord
from notebook_probe.record.store.files import Files
from notebook_probe.record.store.location import Location
from notebook_probe.record.store.lock import Lock
from notebook_probe.record.store.noted import note_place
from notebook_probe.record.store.place import RecordFolder
from notebook_probe.record.store.remote import place_of
from notebook_probe.record.write.backfill import leftovers
from notebook_probe.record.write.commit import Commits
from notebook_probe.record.write.flusher import Flusher, Options
from notebook_probe.record.write.model import check_same_model
from notebook_probe.record.write.resuming import (
    begin,
    extents,
    old_record,
    remaining_summary,
    take_over,
)
from notebook_probe.record.write.streams.arrays import ShapedArrayWriter
from notebook_probe.record.write.streams.hot_chunks import new_chunks
from notebook_probe.record.write.unwritten import take_in

__all__ = ["CHANGED_MODULES", "Opened", "open_to_write"]

CHANGED_MODULES = "changed_modules"
"""Attribute: modules that came, went or were replaced while the record was written."""


WHERE = (
    "Numbers are in groups named after their schedules: xarray.open_zarr(path, "
    "group='scalars/every_1'), or all with xarray.open_datatree(path). Joined on one step axis: "
    "xarray.open_dataset(path, engine='notebook_probe')."
)
"""Hint for readers who open the root, which has no arrays."""


@dataclass(frozen=True, slots=True)
class Opened:
    """A record that is being written."""

    place: RecordFolder
    files: Files
    commits: Commits
    flusher: Flusher
    modules: tuple[ModuleRow, ...]
    """The record's own table."""
    continued: bool
    first_step: int
    branch: int
    removed: str

    def close(self) -> None:
        """Close a record that will not be written."""
        self.flusher.close()
        self.place.close()


def open_to_write(
    location: Location,
    modules: tuple[ModuleRow, ...],
    attrs: Mapping[str, Any],
    resume: Resume,
    options: Options,
) -> Opened:
    """Lock the record, publish where it continues, and start to write.

    Raises
    ------
    RecordFormatError, RecordMismatchError, RecordLockedError, RecordWriteError
        Nothing was changed.
    """
    place = place_of(location)
    folder = place.folder
    with _write_errors(place.name), ExitStack() as failure:
        failure.callback(place.abandon)
        old_record(folder)  # before the lock, which must not appear among foreign files
        lock = Lock(folder)
        failure.callback(lock.release)
        if lock.note:
            warnings.warn(lock.note, RecordWarning, stacklevel=4)
        old = old_record(folder)
        resume.check(folder, old is not None)
        if old is not None:
            changed = _changed_modules(old.attrs, old.location)
            check_same_model(old.location, old.modules, modules, changed)
            take_in(old, lock)
            modules = old.modules
        beginning = begin(old, resume)
        root_attrs = {**(_new_attrs() if old is None else old.attrs), **attrs}
        root_attrs["format_version"] = FORMAT_VERSION  # it may have been an older one
        root_attrs.pop(STOPPED, None)
        if options.chunks:
            _choose(options.chunks, root_attrs, old)
        if not isinstance(root_attrs.get(DROPPED_ROWS), int):
            root_attrs[DROPPED_ROWS] = 0
        if beginning.branch > 1:
            root_attrs["branches"] = [*beginning.starts]
        files = Files(folder, outlives_power=options.durability == "power loss")
        existing = extents(old)
        paths = {} if old is None else old.paths
        for path in leftovers(folder, paths):
            files.delete_all(path)
        arrays = ShapedArrayWriter(new_chunks(files), existing, root_attrs)
        commits = Commits(files, arrays, lock, modules, paths, remaining_summary(old, beginning))
        flusher = Flusher(commits, lock, root_attrs, options)
        take_over(old, flusher, beginning)
        remaining = extents(old, beginning.n_rows)
        flusher.start(partial(arrays.cut, remaining) if remaining != existing else None)
        failure.callback(flusher.close)
        place.begin()
        failure.pop_all()
    note_place(location)
    first, branch = beginning.first_step, beginning.branch
    return Opened(
        place=place,
        files=files,
        commits=commits,
        flusher=flusher,
        modules=modules,
        continued=old is not None,
        first_step=first,
        branch=branch,
        removed=beginning.removed,
    )


def _changed_modules(attrs: Mapping[str, Any], location: str) -> list[str]:
    """Return the names of modules that may differ."""
    found = attrs.get(CHANGED_MODULES, [])
    if not isinstance(found, list) or not all(isinstance(name, str) for name in found):
        raise RecordFormatError(
            f"{CHANGED_MODULES}={str(found)[:80]!r} of {location}; a list of names is expected"
        )
    return found


def _choose(
    chunks: Mapping[str, int], root_attrs: dict[str, Any], old: OpenedRecord | None
) -> None:
    """Note the chunk sizes of a new record; an existing one keeps its own."""
    if old is None:
        root_attrs[CHUNKS] = json.dumps(dict(chunks))
    elif dict(chunks) != (own := read_sizes(old.attrs)):
        text = f"{old.location} keeps its chunks, {own or 'those of no choice'}; not {dict(chunks)}"
        warnings.warn(text, RecordWarning, stacklevel=6)


@contextmanager
def _write_errors(name: str) -> Iterator[None]:
    """Convert an error of the system to a RecordWriteError that names the record."""
    try:
        yield
    except ProbeError:
        raise
    except OSError as error:
        raise RecordWriteError(f"cannot write the record {name}: {error}") from error


def _new_attrs() -> dict[str, Any]:
    return {
        "Conventions": CONVENTIONS,
        "notebook_probe_version": _package_version(),
        "format_version": FORMAT_VERSION,
        "comment": WHERE,
        "run_id": uuid.uuid4().hex,
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
    }


@cache  # the package's metadata is a long mail header, parsed each time
def _package_version() -> str:
    try:
        return version("notebook-probe")
    except PackageNotFoundError:  # a source tree that is not installed
        return "unknown"
