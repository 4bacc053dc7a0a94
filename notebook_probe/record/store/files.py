"""Files of one record on a local disk, each replaced as a whole."""

from __future__ import annotations

import os
import shutil
import time
from contextlib import suppress
from pathlib import Path

__all__ = ["Files"]

PARTIAL = ".partial"
"""One name for the file being written: a killed writer leaves at most one, reused by the next."""
REPLACE_PAUSES_S = (0.01, 0.03, 0.1, 0.3)


class Files:
    """Bytes under keys below one folder; a reader sees the old bytes or the new, never a mixture.

    One thread writes. ``nbytes`` is the size of everything in the folder.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._partial = folder / PARTIAL
        self._sizes = {
            str(path.relative_to(folder).as_posix()): path.stat().st_size
            for path in folder.rglob("*")
            if path.is_file() and path != self._partial
        }
        self.nbytes = sum(self._sizes.values())

    def has(self, key: str) -> bool:
        return key in self._sizes

    def read(self, key: str) -> bytes | None:
        """The bytes under ``key``, or None."""
        if not self.has(key):
            return None
        return (self.folder / key).read_bytes()

    def write(self, key: str, content: bytes) -> None:
        """Put ``content`` under ``key``."""
        self.write_sparse(key, content, len(content))

    def write_sparse(self, key: str, content: bytes, size: int) -> None:
        """Put ``content`` under ``key``, followed by zeros up to ``size`` that take no room."""
        target = self.folder / key
        try:
            self._fill_partial(content, size)
        except OSError:
            with suppress(OSError):  # what is left of it would keep a full disk full
                self._partial.unlink(missing_ok=True)
            raise
        if not self.has(key):  # only now: a removed record's folder must not come back
            target.parent.mkdir(parents=True, exist_ok=True)
        _replace(self._partial, target)
        self.note(key, len(content))

    def _fill_partial(self, content: bytes, size: int) -> None:
        with self._partial.open("wb", buffering=0) as file:
            written = file.write(content)
            while written < len(content):  # a short write: the disk is nearly full
                written += file.write(content[written:])
            if size > len(content):
                file.truncate(size)

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
        paths = (self.folder / under).rglob("*")
        return [path.relative_to(self.folder).as_posix() for path in paths if path.is_file()]


def _replace(source: Path, target: Path) -> None:
    """Rename over ``target``; on Windows this fails for a moment while a reader has it open."""
    for pause in REPLACE_PAUSES_S:
        try:
            os.replace(source, target)  # noqa: PTH105  Path.replace parses both paths again
        except PermissionError:
            time.sleep(pause)
        else:
            return
    source.replace(target)
