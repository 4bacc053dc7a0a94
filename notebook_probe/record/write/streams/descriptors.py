"""Files that stay open between two writes: the ones used last, and none in a forked child."""

from __future__ import annotations

import os
import sys
from collections import OrderedDict
from pathlib import Path
from weakref import WeakSet

from notebook_probe.record.store.files import open_here
from notebook_probe.record.store.syncing import to_disk

__all__ = ["Descriptors"]

MOST_OPEN = 192
SHARE = 5
"""Divisor of the open-file limit, usually 1024 or 256: at most a fifth of it is ours."""


class Descriptors:
    """Open files below one folder, by key; made and used by one thread.

    Parameters
    ----------
    outlives_power : bool
        True if written data is on the disk after `sync`.
    """

    def __init__(self, folder: Path, *, outlives_power: bool = False) -> None:
        self._folder = str(folder)
        self._outlives_power = outlives_power
        self._unsynced: set[str] = set()
        self._most = _most_open()
        self._fds: OrderedDict[str, int] = OrderedDict()
        _all.add(self)

    def write_at(self, key: str, offset: int, content: memoryview) -> None:
        """Write all of ``content``, a view of bytes, into the file at ``offset``."""
        # pwrite needs no seek, and leaves the file's position alone.
        fd = self._of(key)
        if self._outlives_power:
            self._unsynced.add(key)
        written = os.pwrite(fd, content, offset)
        while written < len(content):  # a short write: the disk is nearly full
            written += os.pwrite(fd, content[written:], offset + written)

    def read_at(self, key: str, offset: int, n_bytes: int) -> bytes:
        """Read at most ``n_bytes`` of the file at ``offset``."""
        return os.pread(self._of(key), n_bytes, offset)

    def sync(self) -> None:
        """Wait until all that was written is on the disk, where that is wanted."""
        for key in sorted(self._unsynced):
            to_disk(self._of(key))
            # One by one: what raised stays for the next attempt.
            self._unsynced.discard(key)

    def drop(self, key: str) -> None:
        """Close a file that gets another one's place."""
        self._unsynced.discard(key)
        fd = self._fds.pop(key, None)
        if fd is not None:
            os.close(fd)

    def close(self) -> None:
        """Close all; safe to call twice."""
        while self._fds:
            os.close(self._fds.popitem()[1])

    def _of(self, key: str) -> int:
        if key not in self._fds:
            if len(self._fds) >= self._most:
                # The least recently used.
                os.close(self._fds.popitem(last=False)[1])
            self._fds[key] = open_here(f"{self._folder}/{key}", os.O_RDWR)
        self._fds.move_to_end(key)
        return self._fds[key]


if sys.platform == "win32":

    def _most_open() -> int:
        return MOST_OPEN

else:
    import resource

    def _most_open() -> int:
        allowed, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
        return MOST_OPEN if allowed < 0 else min(MOST_OPEN, allowed // SHARE)


_all: WeakSet[Descriptors] = WeakSet()


def _close_in_child() -> None:
    # A copy, as the collector may shrink the set meanwhile.
    for descriptors in list(_all):
        descriptors.close()


if sys.platform != "win32":
    # A worker that lives long would keep the blocks of files that have been replaced since.
    os.register_at_fork(after_in_child=_close_in_child)
