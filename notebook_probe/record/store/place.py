"""Target of a writer: a local folder, final or shipped elsewhere."""

from __future__ import annotations

from pathlib import Path
from typing import Protocol

from notebook_probe.record.store.location import Location

__all__ = ["LocalRecordFolder", "RecordFolder"]


class RecordFolder(Protocol):
    """The folder that a writer fills, and what becomes of it."""

    folder: Path
    name: str
    """Name for the user."""
    readable: Location
    """Location at which the record can be read now."""
    opening_note: str
    """Message about its opening; usually empty."""

    @property
    def problem(self) -> str:
        """Reason why the folder's contents are not at their destination yet; empty if they are."""

    def begin(self) -> None:
        """Note the first commit of the writer."""

    def flush(self, timeout_s: float) -> bool:
        """Return whether the folder's contents are at their destination."""

    def close(self) -> None:
        """Note the last commit of the writer."""

    def abandon(self) -> None:
        """Give the place up: the writer could not start."""


class LocalRecordFolder:
    """A folder that is the record."""

    opening_note = problem = ""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.readable: Location = folder
        self.name = str(folder)

    def begin(self) -> None:
        """Do nothing: the folder is the destination."""

    def flush(self, timeout_s: float) -> bool:
        return True

    def close(self) -> None:
        """Do nothing: the folder is the destination."""

    def abandon(self) -> None:
        """Do nothing: the folder stays."""
