"""Interface of a reader of one format, with what most of them have in common."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from notebook_probe.old_runs.points import Points
from notebook_probe.old_runs.run import OldRun

__all__ = ["OldFormat"]


class OldFormat:
    """A format of files, recognized by their content.

    Attributes
    ----------
    tool : str
        Name for messages.
    owns_folder : bool
        True if everything in a run's folder belongs to that run.
    """

    tool: str
    owns_folder = False

    def in_file(self, path: Path, head: bytes) -> bool:
        """Return whether a file, which starts with ``head``, is of this format."""
        return False

    def why_no_run(self, path: Path, head: bytes) -> str:
        """Return why a file of this format is no run, as text; empty if it is one."""
        return ""

    def in_folder(self, folder: Path, names: Sequence[str]) -> tuple[Path, ...]:
        """Return the files of the run that a folder with these entries is; empty if it is none."""
        return ()

    def keys(self, path: Path) -> tuple[str, ...]:
        """Return the names of the runs in a file; one that is a single run has an empty name.

        Raises
        ------
        RecordFormatError
            The file cannot be read.
        """
        return ("",)

    def read(self, files: Sequence[Path], key: str, points: Points) -> OldRun:
        """Read the run in these files, up to the limits of ``points``.

        Any of OSError, ValueError, RecursionError and `SpentError` says that it cannot be read.
        """
        raise NotImplementedError
