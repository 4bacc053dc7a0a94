"""Syncing of written data to the disk, so that it survives a loss of power."""

from __future__ import annotations

import os
import sys
from pathlib import Path

__all__ = ["sync_folder", "to_disk"]

if sys.platform == "darwin":
    import fcntl

    def to_disk(fd: int) -> None:
        """Wait until the file is on the disk, and not in its cache."""
        # On macOS fsync leaves the data in the drive's cache, see its man page.
        fcntl.fcntl(fd, fcntl.F_FULLFSYNC)

else:

    def to_disk(fd: int) -> None:
        """Wait until the file is on the disk."""
        os.fsync(fd)


def sync_folder(folder: Path) -> None:
    """Wait until the names in the folder are on the disk; on Windows they are without asking."""
    if sys.platform == "win32":
        return
    # A rename is durable only once its folder is synced.
    fd = os.open(folder, os.O_RDONLY)
    try:
        to_disk(fd)
    finally:
        os.close(fd)
