"""Change detection of a folder, at the cost of one system call."""

from __future__ import annotations

import os

__all__ = ["folder_mark", "is_settled"]

SETTLED_S = 2.0
"""Seconds within which a second change may have the same time stamp."""


def folder_mark(folder: str) -> str:
    """Return a mark that changes when anything in a folder is made, renamed or removed.

    Raises
    ------
    OSError
        The system call failed.
    """
    try:
        found = os.stat(folder)  # noqa: PTH116  thousands at once, and a Path costs as much again
    except (FileNotFoundError, NotADirectoryError):
        return ""
    return f"{found.st_mtime_ns}.{found.st_ino}.{found.st_size}"


def is_settled(mark: str, seen_s: float) -> bool:
    """Return whether a folder's mark was old enough when seen that none after has the same."""
    changed_ns = mark.partition(".")[0]
    return bool(changed_ns) and seen_s - int(changed_ns) / 1e9 > SETTLED_S
