"""Place of an old run: its files, and its name in a file that holds several."""

from __future__ import annotations

import hashlib
import os
import stat
import struct
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from zarr.abc.store import Store

from notebook_probe.errors import RecordFormatError
from notebook_probe.old_runs.allowance import Allowance, SpentError
from notebook_probe.old_runs.formats.old_format import OldFormat
from notebook_probe.old_runs.points import Points
from notebook_probe.old_runs.record import as_store
from notebook_probe.old_runs.run import OldRun

__all__ = ["OldPlace"]

RECENT_S = 60.0
"""Seconds after the last change in which a file may still grow."""


@dataclass(frozen=True)
class OldPlace:
    """A run of another tool that was found at a path; its files are only read.

    Attributes
    ----------
    format : OldFormat
    path : Path
        Location of the file.
    files : tuple of Path
    key : str
        Name of the run in a file with several runs.
    """

    format: OldFormat
    path: Path
    files: Sequence[Path]
    key: str = ""

    def mark(self) -> str:
        """Return a text that changes with the files."""
        found = hashlib.sha256(self.key.encode())
        for file, stat_ in self._stats():
            found.update(f"{file}:{stat_.st_mtime_ns}.{stat_.st_ino}.{stat_.st_size};".encode())
        return found.hexdigest()

    def is_growing(self) -> bool:
        """Return whether a file has changed a moment ago."""
        changed = max((found.st_mtime for _, found in self._stats()), default=0.0)
        return 0.0 <= time.time() - changed < RECENT_S

    @property
    def n_bytes(self) -> int:
        """Size of the files."""
        return sum(found.st_size for _, found in self._stats())

    def read(self) -> OldRun:
        """Read the run.

        Raises
        ------
        RecordFormatError
            It cannot be read.
        """
        points = Points(Allowance(), self.is_growing())
        try:
            for file in self.files:
                if not stat.S_ISREG(file.stat().st_mode):  # a pipe would be waited for
                    raise RecordFormatError(f"{file} is no plain file")
            run = self.format.read(self.files, self.key, points)
        except RecordFormatError:
            raise
        except (OSError, ValueError, RecursionError, struct.error, SpentError) as error:
            what = f"{self.path} cannot be read as a run of {self.format.tool}"
            raise RecordFormatError(f"{what}: {error}"[:500]) from error
        histograms = points.histograms
        if histograms.n_odd:
            points.remarks.append(f"{histograms.n_odd} histograms are left out: they are damaged")
        if points.images.n_odd:
            n = points.images.n_odd
            points.remarks.append(f"{n} images are left out: they are no PNG, or too many")
        return replace(
            run,
            remarks=tuple(points.remarks),
            histograms=histograms.series(),
            images=points.images.series(),
        )

    def store(self) -> Store:
        """Return the run as a record in memory."""
        return as_store(self.read(), str(self.path), self.is_growing())

    def _stats(self) -> list[tuple[Path, os.stat_result]]:
        found = []
        for file in self.files:
            # What a SQLite database has not taken in yet is in a file next to it.
            for path in (file, file.with_name(f"{file.name}-wal")):
                try:
                    found.append((path, path.stat()))
                except OSError:
                    continue
        return found
