"""One writer per record: an exclusive lock on ``.lock``, which ends with its process.

Some network file systems have no locks; a lease file is used there (`lease_file`).
"""

from __future__ import annotations

import errno
import json
import os
import socket
import stat
import sys
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from weakref import WeakSet

from notebook_probe.errors import RecordFormatError, RecordLockedError
from notebook_probe.record.store.files import open_here
from notebook_probe.record.store.lease_file import LEASE_NAME, LEASE_S, LeaseFile, live_lease

__all__ = ["LOCK_NAME", "Lock", "is_locked"]

LOCK_NAME = ".lock"
PATIENCE_S = 0.1
"""Seconds that a writer retries: checking whether a record is locked takes the lock briefly."""
WINDOWS_LOCK_BYTE = 1 << 30
"""Locked byte beyond the text, as others cannot read a locked byte on Windows."""


HELD = {errno.EAGAIN, errno.EWOULDBLOCK, errno.EACCES, errno.EDEADLK}
"""Error numbers for a file that another process has locked."""
NO_LOCKS = {errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP, errno.ENOTSUP}
"""Error numbers where files cannot be locked."""


class Lock:
    """The exclusive lock of a record's folder, until `release`.

    Attributes
    ----------
    note : str
        Description of the replacement if the file system has no locks; else empty.

    Raises
    ------
    RecordLockedError
        Another writer has it, in this or another process; the message says which.
    RecordFormatError
        A link or a device is in its place.
    """

    def __init__(self, folder: Path) -> None:
        self.path = folder / LOCK_NAME
        self.note = ""
        self._lease: LeaseFile | None = None
        self._fd = _opened(self.path)
        try:
            self._take(folder)
            # Only now that the lock is held: it may be another writer's name.
            os.truncate(self._fd, 0)
            os.write(self._fd, json.dumps(_own_name()).encode())
        except BaseException:
            self.release()
            raise
        _held.add(self)

    def _take(self, folder: Path) -> None:
        try:
            _lock_patiently(self._fd)
        except OSError as error:
            if error.errno in HELD:
                holder = _holder(self._fd, self.path)
                raise RecordLockedError(f"{folder} has another writer: {holder}") from error
            if error.errno not in NO_LOCKS:
                raise
            self._lease = LeaseFile(folder, _own_name())
            self.note = (
                f"{folder} is where files cannot be locked ({error.strerror}); its file "
                f"{LEASE_NAME} keeps other writers away, until {LEASE_S:.0f} s after this one has "
                f"died. The clocks of machines that write there should agree within some seconds"
            )
        else:
            if holder := live_lease(folder):
                raise RecordLockedError(f"{folder} has another writer: {holder}")

    def is_in_place(self) -> bool:
        """Return whether the folder still exists with our lock, and was not removed or replaced.

        Raises
        ------
        RecordLockedError
            Another writer has taken over our lease.
        OSError
            The system denies access.
        """
        if self._lease is not None and self.path.exists():
            self._lease.keep()
        try:
            on_disk = self.path.stat()
        except (FileNotFoundError, NotADirectoryError):
            return False
        # A lock on a removed file protects nothing, as others lock a new one of this name.
        ours = os.fstat(self._fd)
        return (on_disk.st_dev, on_disk.st_ino) == (ours.st_dev, ours.st_ino)

    def release(self) -> None:
        """Give the lock back; safe to call twice.

        Closing is enough, and unlike unlocking it does not take the lock from a parent process:
        after a fork both share it.
        """
        lease, self._lease = self._lease, None
        if lease is not None:
            lease.release()
        fd, self._fd = self._fd, -1
        if fd >= 0:
            os.close(fd)


def is_locked(folder: Path) -> bool:
    """Return whether a writer has the lock of a folder, or a lease.

    A free lock is taken for a moment, which writers wait for.
    """
    try:
        return _is_held(folder / LOCK_NAME) or bool(live_lease(folder))
    except OSError:
        return False


def _is_held(path: Path) -> bool:
    try:
        fd = open_here(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
    except OSError:
        return False
    try:
        # Locking a device or a pipe could block.
        if stat.S_ISREG(os.fstat(fd).st_mode):
            _lock_shared(fd)
    except OSError as error:
        return error.errno in HELD
    finally:
        os.close(fd)
    return False


def _lock_patiently(fd: int) -> None:
    until = time.monotonic() + PATIENCE_S
    while True:
        try:
            return _lock(fd)
        except OSError as error:
            # A reader that asks whether it is locked holds it for a moment.
            if error.errno not in HELD or time.monotonic() > until:
                raise
        time.sleep(PATIENCE_S / 20)


if sys.platform == "win32":
    import msvcrt

    def _lock_shared(fd: int) -> None:
        _lock(fd)

    def _lock(fd: int) -> None:
        # Windows locks are mandatory: a byte beyond the text leaves the holder's name readable.
        os.lseek(fd, WINDOWS_LOCK_BYTE, os.SEEK_SET)
        msvcrt.locking(fd, msvcrt.LK_NBLCK, 1)
        os.lseek(fd, 0, os.SEEK_SET)

else:
    import fcntl

    def _lock_shared(fd: int) -> None:
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)

    def _lock(fd: int) -> None:
        # flock, not lockf: POSIX locks end as soon as the process closes any descriptor of the
        # file.
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)


def _opened(path: Path) -> int:
    """Open or create the lock file itself, never the target of a link."""
    try:
        fd = open_here(path, os.O_RDWR | os.O_CREAT | getattr(os, "O_NONBLOCK", 0))
    except OSError as error:
        if path.is_symlink():
            raise RecordFormatError(f"{path} is a link; a file is expected") from error
        raise
    if not stat.S_ISREG(os.fstat(fd).st_mode):
        os.close(fd)
        raise RecordFormatError(f"{path} is no plain file")
    return fd


def _own_name() -> dict[str, Any]:
    started = datetime.now(UTC).isoformat(timespec="seconds")
    return {"pid": os.getpid(), "host": socket.gethostname(), "started": started}


def _holder(fd: int, path: Path) -> str:
    try:
        os.lseek(fd, 0, os.SEEK_SET)
        owner = json.loads(os.read(fd, 4096))
        return f"process {owner['pid']} on {owner['host']}, since {owner['started']}"
    except (OSError, ValueError, KeyError, TypeError):
        return f"unknown, see {path}"  # it is just being written


_held: WeakSet[Lock] = WeakSet()


def _release_in_child() -> None:
    for lock in list(_held):
        lock.release()


if sys.platform != "win32":
    # A forked worker that outlives the writer would keep the record locked.
    os.register_at_fork(after_in_child=_release_in_child)
