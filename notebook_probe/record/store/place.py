"""Where a record is written: a folder of this machine, for itself or on its way elsewhere."""

from __future__ import annotations

from pathlib import Path
from typing import Protocol

from notebook_probe.record.store.location import Location

__all__ = ["LocalPlace", "Place"]


class Place(Protocol):
    """The folder that a writer fills, and what becomes of it."""

    folder: Path
    name: str
    """As the user knows it."""
    readable: Location
    """Where the record can be read now."""
    opening_note: str
    """What happened when it was opened, in words; empty when nothing worth telling."""

    @property
    def problem(self) -> str:
        """Why what is in the folder is not where it belongs; empty when it is."""

    def begin(self) -> None:
        """The writer has made its first commit."""

    def flush(self, timeout_s: float) -> bool:
        """Whether what is in the folder now is where it belongs."""

    def close(self) -> None:
        """The writer has made its last commit."""

    def abandon(self) -> None:
        """The writer could not begin."""


class LocalPlace:
    """A folder that is the record."""

    opening_note = problem = ""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.readable: Location = folder
        self.name = str(folder)

    def begin(self) -> None:
        """Nothing: it is there."""

    def flush(self, timeout_s: float) -> bool:
        return True

    def close(self) -> None:
        """Nothing: it is there."""

    def abandon(self) -> None:
        """Nothing: it stays as it is."""
