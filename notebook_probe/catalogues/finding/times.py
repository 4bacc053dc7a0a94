"""What tells of a folder that something in it has changed, at the cost of one look."""

from __future__ import annotations

import os

__all__ = ["folder_mark", "is_settled"]

SETTLED_S = 2.0
"""What changed within so long of being seen may change once more without a later time."""


def folder_mark(folder: str) -> str:
    """What is another when anything in a folder was made, renamed or removed; empty for none.

    Raises
    ------
    OSError
        It cannot be told.
    """
    try:
        found = os.stat(folder)  # noqa: PTH116  thousands at once, and a Path costs as much again
    except (FileNotFoundError, NotADirectoryError):
        return ""
    return f"{found.st_mtime_ns}.{found.st_ino}.{found.st_size}"


def is_settled(mark: str, seen_s: float) -> bool:
    """Whether a folder had its mark for so long, when it was seen, that none after has the same."""
    changed_ns = mark.partition(".")[0]
    return bool(changed_ns) and seen_s - int(changed_ns) / 1e9 > SETTLED_S
