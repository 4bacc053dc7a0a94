"""Runs that other tools have written, as the store sees them: places that can be read as records.

The store knows no format of another tool. A reader of one is registered here, and whatever opens a
local path asks for it where there is no record.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Protocol, TypeAlias

from zarr.abc.store import Store

from notebook_probe.errors import RecordFormatError
from notebook_probe.registry import Registry

__all__ = [
    "NoRunError",
    "RunOfOtherTool",
    "is_run_of_other_tool",
    "run_of_other_tool",
    "run_readers",
]


class NoRunError(RecordFormatError):
    """A file of a known format that holds no run, such as a table without steps."""


class RunOfOtherTool(Protocol):
    """A run of another tool at a local path, which is only read."""

    def mark(self) -> str:
        """Return a text that changes with the files of the run."""

    def is_growing(self) -> bool:
        """Return whether something was added to the files a moment ago."""

    def store(self) -> Store:
        """Return the run as a record in memory.

        Raises
        ------
        RecordFormatError
            It cannot be read.
        """


Finds: TypeAlias = Callable[[Path], RunOfOtherTool | None]

run_readers: Registry[Finds] = Registry("reader of other tools' runs", "notebook_probe.run_readers")
"""Functions of a path that return the run there, or None; the first one that finds a run counts."""


def run_of_other_tool(path: Path) -> RunOfOtherTool | None:
    """Return the run of another tool at a path, recognized by its content; None if there is none.

    Raises
    ------
    RecordFormatError
        There are several runs, or the one that is named is missing.
    """
    found = (find(path) for find in run_readers.values())
    return next((one for one in found if one is not None), None)


def is_run_of_other_tool(path: Path) -> bool:
    """Return whether runs of another tool are at a path, one or several."""
    try:
        return run_of_other_tool(path) is not None
    except NoRunError:
        return False
    except RecordFormatError:
        return True
