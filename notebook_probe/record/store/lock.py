"""One writer per record: an exclusive lock on ``.lock``, released by the system when it dies."""

from __future__ import annotations

import json
import os
import socket
import sys
from datetime import UTC, datetime
from pathlib import Path
from weakref import WeakSet

from notebook_probe.errors import RecordLockedError

__all__ = ["LOCK_NAME", "Lock"]

LOCK_NAME = ".lock"
WINDOWS_LOCK_BYTE = 1 << 30
"""A locked byte cannot be read by others on Windows, so the one locked lies past the text."""


class Lock:
    """The exclusive lock of a record's folder, held until `release`.

    Raises
    ------
    RecordLockedError
        When another writer holds it, of this or another process; the message says which.
    """

    def __init__(self, folder: Path) -> None:
        self.path = folder / LOCK_NAME
        self._fd = os.open(self.path, os.O_RDWR | os.O_CREAT, 0o644)
        try:
            _lock(self._fd)
        except OSError as error:
            holder = _holder(self.path)
            self.release()
            raise RecordLockedError(f"{folder} has another writer: {holder}") from error
        os.truncate(self._fd, 0)
        os.write(self._fd, _own_name())
        _held.add(self)

    def is_in_place(self) -> bool:
        """Whether the folder is still there and still ours, not removed or made anew.

        Raises
        ------
        OSError
            When the system does not let us look.
        """
        try:
            on_disk = self.path.stat()
        except (FileNotFoundError, NotADirectoryError):
            return False
        ours = os.fstat(self._fd)
        return (on_disk.st_dev, on_disk.st_ino) == (ours.st_dev, ours.st_ino)

    def release(self) -> None:
        """Give the lock back; safe to call twice.

        Closing is enough, and unlike unlocking it does not take the lock from a parent process:
        after a fork both share it.
        """
        fd, self._fd = self._fd, -1
        if fd >= 0:
            os.close(fd)


if sys.platform == "win32":
    import msvcrt

    def _lock(fd: int) -> None:
        os.lseek(fd, WINDOWS_LOCK_BYTE, os.SEEK_SET)
        msvcrt.locking(fd, msvcrt.LK_NBLCK, 1)
        os.lseek(fd, 0, os.SEEK_SET)

else:
    import fcntl

    def _lock(fd: int) -> None:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)


def _own_name() -> bytes:
    started = datetime.now(UTC).isoformat(timespec="seconds")
    owner = {"pid": os.getpid(), "host": socket.gethostname(), "started": started}
    return json.dumps(owner).encode()


def _holder(path: Path) -> str:
    try:
        owner = json.loads(path.read_text())
        return f"process {owner['pid']} on {owner['host']}, since {owner['started']}"
    except (OSError, ValueError, KeyError):
        return f"unknown, see {path}"  # it is just being written


_held: WeakSet[Lock] = WeakSet()


def _release_in_child() -> None:
    for lock in list(_held):
        lock.release()


if sys.platform != "win32":
    # A forked worker that outlives the writer would keep the record locked.
    os.register_at_fork(after_in_child=_release_in_child)
