"""Files of one record on a local disk, each replaced as a whole."""

from __future__ import annotations

import os
import shutil
import stat
import time
from collections.abc import Iterator
from contextlib import suppress
from io import FileIO
from pathlib import Path

from notebook_probe.errors import RecordFormatError
from notebook_probe.record.store.syncing import sync_folder, to_disk

__all__ = ["MAILBOX", "Files", "open_here", "plain_files"]

MAILBOX = ".control"
"""Folder of requests to a training: no part of the record, not packed and not counted."""

PARTIAL = ".partial"
"""Name of the file being written: a killed writer leaves at most one, reused by the next."""
REPLACE_PAUSES_S = (0.01, 0.03, 0.1, 0.3)


class Files:
    """Bytes under keys below one folder; a reader sees the old bytes or the new, never a mixture.

    One thread writes. ``nbytes`` is the size of everything in the folder.

    Parameters
    ----------
    outlives_power : bool
        Files are on the disk itself before they get their names, and these after `sync`.

    Raises
    ------
    RecordFormatError
        A link or a device is there: a writer stays in its record's folder.
    """

    def __init__(self, folder: Path, *, outlives_power: bool = False) -> None:
        self.folder = folder
        self.outlives_power = outlives_power
        self._changed_folders = {folder.parent} if outlives_power else set()
        self._partial = folder / PARTIAL
        # Strings: joining and parsing paths took more time than the system takes to write a file.
        self._root, self._partial_name = str(folder), str(folder / PARTIAL)
        self._sizes = {
            path.relative_to(folder).as_posix(): path.stat().st_size
            for path in plain_files(folder)
            if path != self._partial
        }
        self.nbytes = sum(self._sizes.values())

    def has(self, key: str) -> bool:
        return key in self._sizes

    def read(self, key: str) -> bytes | None:
        """Return the bytes under ``key``, or None."""
        if not self.has(key):
            return None
        with os.fdopen(open_here(self.folder / key, os.O_RDONLY), "rb") as file:
            return file.read()

    def write(self, key: str, content: bytes) -> None:
        """Put ``content`` under ``key``."""
        self.write_sparse(key, content, len(content))

    def write_sparse(self, key: str, content: bytes, size: int) -> None:
        """Put ``content`` under ``key``, followed by zeros up to ``size`` that take no room."""
        try:
            self._fill_partial(content, size)
        except OSError:
            with suppress(OSError):  # what is left of it would keep a full disk full
                self._partial.unlink(missing_ok=True)
            raise
        if not self.has(key):  # only now: a removed record's folder must not come back
            _make_folder(f"{self._root}/{key}".rpartition("/")[0])
        _replace(self._partial_name, f"{self._root}/{key}")
        if self.outlives_power:
            self._note_change((self.folder / key).parent, is_new=not self.has(key))
        self.note(key, len(content))

    def _note_change(self, folder: Path, *, is_new: bool) -> None:
        """Note a change of the folder; a new name may affect the folders above too."""
        self._changed_folders.add(folder)
        if is_new:
            above = (one for one in folder.parents if one.is_relative_to(self.folder))
            self._changed_folders.update(above)

    def sync(self) -> None:
        """Wait until the names of all files are on the disk, where that is wanted."""
        for folder in sorted(self._changed_folders):
            sync_folder(folder)
        self._changed_folders.clear()

    def _fill_partial(self, content: bytes, size: int) -> None:
        with self._new_partial() as file:
            written = file.write(content)
            while written < len(content):  # a short write: the disk is nearly full
                written += file.write(content[written:])
            if size > len(content):
                file.truncate(size)
            if self.outlives_power:
                to_disk(file.fileno())

    def _new_partial(self) -> FileIO:
        """Return the new, empty file to fill; never one that another process has put there."""
        try:
            return FileIO(self._partial_name, "x")
        except FileExistsError:  # a killed writer's
            self._partial.unlink()
            return FileIO(self._partial_name, "x")

    def note(self, key: str, n_bytes: int) -> None:
        """Take note that ``key`` takes so much room now."""
        self.nbytes += n_bytes - self._sizes.get(key, 0)
        self._sizes[key] = n_bytes

    @property
    def sizes(self) -> dict[str, int]:
        """Bytes of every key, as found or noted."""
        return self._sizes.copy()

    def size(self, key: str) -> int:
        """Bytes of ``key`` as found or noted; 0 when there is none."""
        return self._sizes.get(key, 0)

    def delete(self, key: str) -> None:
        """Remove ``key``, which may be gone already."""
        (self.folder / key).unlink(missing_ok=True)
        self.nbytes -= self._sizes.pop(key, 0)

    def delete_all(self, under: str) -> None:
        """Remove a folder and everything below it."""
        for key in self.keys(under):
            self.delete(key)
        shutil.rmtree(self.folder / under, ignore_errors=True)

    def keys(self, under: str) -> list[str]:
        """Keys below the folder ``under``."""
        if not os.path.isdir(f"{self._root}/{under}"):  # noqa: PTH112  of each new array
            return []
        paths = (self.folder / under).rglob("*")
        return [path.relative_to(self.folder).as_posix() for path in paths if path.is_file()]


def plain_files(folder: Path) -> Iterator[Path]:
    """Yield the files of a record, in the order of their names, without its mailbox.

    Raises
    ------
    RecordFormatError
        Something in it is not a file or a folder.
    """
    for above, folders, names in os.walk(folder):
        folders.sort()
        if Path(above) == folder and MAILBOX in folders and not (folder / MAILBOX).is_symlink():
            folders.remove(MAILBOX)
        for name in sorted([*names, *folders]):
            path = Path(above, name)
            mode = path.lstat().st_mode
            if stat.S_ISREG(mode):
                yield path
            elif not stat.S_ISDIR(mode):
                raise RecordFormatError(f"{path} is a link or a device; files are expected")


def open_here(path: Path | str, flags: int) -> int:
    """Open ``path`` itself, never the target of a link."""
    # A link in a record from elsewhere could point to any file of the user. Windows has no
    # O_NOFOLLOW, and translates line ends without O_BINARY.
    return os.open(path, flags | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0), 0o644)


def _make_folder(path: str) -> None:
    """Make a folder, and those above it, where there is none."""
    try:
        os.mkdir(path)  # noqa: PTH102  see `Files`
    except FileExistsError:
        return
    except FileNotFoundError:
        os.makedirs(path, exist_ok=True)  # noqa: PTH103


def _replace(source: str, target: str) -> None:
    """Rename over ``target``; on Windows this fails for a moment while a reader has it open."""
    # Readers open files for milliseconds; a longer failure is a real one, raised below.
    for pause in REPLACE_PAUSES_S:
        try:
            os.replace(source, target)  # noqa: PTH105  see `Files`
        except PermissionError:
            time.sleep(pause)
        else:
            return
    os.replace(source, target)  # noqa: PTH105
