"""Storage of marks: a zarr group of the record that only readers write.

As a group, any zarr library reads them, and they are packed with the record.
"""

from __future__ import annotations

import os
import stat
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from notebook_probe.catalogues.marks.marks import Marks
from notebook_probe.errors import RecordFormatError, RecordWriteError
from notebook_probe.record.format.schema import MARKS
from notebook_probe.record.read.ranks import rank_folders
from notebook_probe.record.store.files import open_here
from notebook_probe.record.store.location import (
    ROOT_KEY,
    Location,
    RemoteStore,
    local_path,
    read_key,
)
from notebook_probe.record.store.opener import opener
from notebook_probe.record.store.remote import engine_of
from notebook_probe.record.store.remote.engine import SingleObjects
from notebook_probe.record.store.zipped import is_zip

__all__ = ["PARTIAL", "change", "read"]

KEY = f"{MARKS}/{ROOT_KEY}"
PARTIAL = ".marks."
"""Prefix of temporary files in the record's folder."""
MOST_BYTES = 2**20


def read(location: Location) -> dict[str, Any]:
    """Read the tags, the note, and the archived flag of the record at a location.

    They are empty for a record without any, or one that cannot be read.

    Examples
    --------
    >>> read("nowhere.zarr")
    {'tags': [], 'note': '', 'archived': False}
    """
    path = local_path(location)
    if path is None or is_zip(path):
        with suppress(FileNotFoundError):
            return Marks.parsed(read_key(opener(location)(), KEY)).plain()
        return Marks().plain()
    return Marks.parsed(_of_file(path / KEY)).plain()


def change(location: Location, how: Callable[[Marks], Marks]) -> dict[str, Any]:
    """Mark the record at a place otherwise; of a job of several ranks the record of each.

    If two processes on one machine do so at once, no mark is lost; in a store the later one counts.

    Raises
    ------
    RecordFormatError
        No record is there.
    RecordWriteError
        It cannot be marked: packed, or in a store that is no bucket.
    """
    ranks = rank_folders(location)
    if ranks:
        first, *_ = [change(one, how) for one in ranks.values()]
        return first
    path = local_path(location)
    return _in_store(location, how) if path is None else _in_folder(path, how)


# -------------------------------------------------------------------- on a disk


def _in_folder(folder: Path, how: Callable[[Marks], Marks]) -> dict[str, Any]:
    """Change the marks of a record in a local folder."""
    if is_zip(folder):
        raise RecordWriteError(f"{folder} is packed and is not changed; mark it, then pack it")
    if not (folder / ROOT_KEY).is_file():
        raise RecordFormatError(f"no record in {folder}")
    group = folder / MARKS
    try:
        # Another process may mark the record for the first time at this moment.
        with suppress(FileExistsError):
            group.mkdir()
        if not stat.S_ISDIR(group.lstat().st_mode):
            raise RecordFormatError(f"{group} is a link or a file; a folder is expected")
        # Read, change and replace as one: otherwise the later of two processes drops the first
        # mark.
        with _alone(group):
            marks = how(Marks.parsed(_of_file(folder / KEY)))
            _replace(folder, marks.text())
    except OSError as error:
        raise RecordWriteError(f"cannot mark {folder}: {error}") from error
    return marks.plain()


def _replace(folder: Path, content: bytes) -> None:
    """Replace the file by one rename in the record's own folder, whose time then changes."""
    fd, name = tempfile.mkstemp(prefix=PARTIAL, dir=folder)
    try:
        with os.fdopen(fd, "wb") as file:
            file.write(content)
            os.fchmod(fd, 0o644) if hasattr(os, "fchmod") else None
        os.replace(name, folder / KEY)  # noqa: PTH105  Path.replace parses both again
    except BaseException:
        with suppress(OSError):
            os.unlink(name)  # noqa: PTH108
        raise


def _of_file(path: Path) -> bytes | None:
    """Read a plain file; a pipe is not waited for."""
    try:
        # Without O_NONBLOCK, opening a pipe waits for its writer.
        fd = open_here(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
    except OSError:
        return None
    with os.fdopen(fd, "rb") as file:
        is_plain = stat.S_ISREG(os.fstat(fd).st_mode)
        return file.read(MOST_BYTES) if is_plain else None


if sys.platform == "win32":

    @contextmanager
    def _alone(folder: Path) -> Iterator[None]:
        yield  # a folder cannot be locked there: of two at once the later one counts

else:
    import fcntl

    @contextmanager
    def _alone(folder: Path) -> Iterator[None]:
        """Wait for other processes to finish marking; not at all if there are no file locks."""
        fd = os.open(folder, os.O_RDONLY)
        try:
            # Some network file systems have no flock; then the later of two writers wins.
            with suppress(OSError):
                fcntl.flock(fd, fcntl.LOCK_EX)
            yield
        finally:
            os.close(fd)


# -------------------------------------------------------------------- in a store


def _in_store(location: Location, how: Callable[[Marks], Marks]) -> dict[str, Any]:
    """Change the marks of a record in a store."""
    engine = engine_of(location if isinstance(location, RemoteStore) else RemoteStore(location))
    if not isinstance(engine, SingleObjects):
        raise RecordWriteError(f"{location} cannot be marked; a folder or an object store can")
    if engine.read(ROOT_KEY) is None:
        raise RecordFormatError(f"no record in {location}")
    marks = how(Marks.parsed(engine.read(KEY)))
    engine.put(KEY, marks.text())
    return marks.plain()
