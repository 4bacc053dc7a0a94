"""Where marks lie: a zarr group of the record that only its readers' side writes.

As a group they are told by any zarr library, packed with the record, and no stranger in it.
"""

from __future__ import annotations

import os
import stat
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

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
from notebook_probe.record.store.zipped import is_zip

__all__ = ["PARTIAL", "change", "read"]

KEY = f"{MARKS}/{ROOT_KEY}"
PARTIAL = ".marks."
"""How the names begin of files that are being written, in the record's folder."""
MOST_BYTES = 2**20


@runtime_checkable
class Objects(Protocol):
    """A store whose keys are replaced one by one."""

    def read(self, key: str) -> bytes | None: ...
    def put_file(self, key: str, path: Path) -> None: ...


def read(location: Location) -> dict[str, Any]:
    """The tags, the note, and whether it is put aside, of the record at a place.

    Of a record without any they are empty, and so they are of one that cannot be read.

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

    Of two that do so at once on one machine none loses what the other said; in a store the later
    one counts.

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
    if is_zip(folder):
        raise RecordWriteError(f"{folder} is packed and stays as it is; mark it, then pack it")
    if not (folder / ROOT_KEY).is_file():
        raise RecordFormatError(f"no record in {folder}")
    group = folder / MARKS
    try:
        with suppress(FileExistsError):
            group.mkdir()
        if not stat.S_ISDIR(group.lstat().st_mode):
            raise RecordFormatError(f"{group} is a link or a file; a folder is expected")
        with _alone(group):
            marks = how(Marks.parsed(_of_file(folder / KEY)))
            _replace(folder, marks.text())
    except OSError as error:
        raise RecordWriteError(f"cannot mark {folder}: {error}") from error
    return marks.plain()


def _replace(folder: Path, content: bytes) -> None:
    """One rename, from the record's own folder, whose time of change tells of it."""
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
    """What a plain file holds; a pipe is not waited for."""
    try:
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
        """Until others have marked the record; at once where the file system knows no locks."""
        fd = os.open(folder, os.O_RDONLY)
        try:
            with suppress(OSError):
                fcntl.flock(fd, fcntl.LOCK_EX)
            yield
        finally:
            os.close(fd)


# -------------------------------------------------------------------- in a store


def _in_store(location: Location, how: Callable[[Marks], Marks]) -> dict[str, Any]:
    engine = engine_of(location if isinstance(location, RemoteStore) else RemoteStore(location))
    if not isinstance(engine, Objects):
        raise RecordWriteError(f"{location} cannot be marked; a folder or an object store can")
    if engine.read(ROOT_KEY) is None:
        raise RecordFormatError(f"no record in {location}")
    marks = how(Marks.parsed(engine.read(KEY)))
    with tempfile.TemporaryDirectory(prefix="notebook-probe-") as folder:
        path = Path(folder, "marks")
        path.write_bytes(marks.text())
        engine.put_file(KEY, path)
    return marks.plain()
