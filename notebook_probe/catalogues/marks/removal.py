"""What of one run would be removed, and its removal, under the lock of its record."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from notebook_probe.catalogues.marks.own import StaysError, opened, own_files
from notebook_probe.catalogues.marks.own_checkpoints import (
    Checkpoints,
    own_checkpoints,
    remove_lists,
)
from notebook_probe.errors import ProbeError
from notebook_probe.record.store.location import ROOT_KEY, local_path
from notebook_probe.record.store.lock import LOCK_NAME, Lock

__all__ = ["Removal", "planned"]


@dataclass(frozen=True, slots=True)
class Removal:
    """One run, as it would be removed.

    Attributes
    ----------
    run, name : str
    nbytes : int
        Of the record and its checkpoints.
    age_s : float
        Since its last commit.
    checkpoints : tuple of str
        Files that would go with it.
    left : tuple of str
        Checkpoints that it tells of and that would stay, and why.
    """

    run: str
    run_id: str
    name: str
    nbytes: int
    age_s: float
    checkpoints: tuple[str, ...] = ()
    left: tuple[str, ...] = ()

    def apply(self) -> None:
        """Remove it.

        Raises
        ------
        StaysError
            It is written now, or has become something else since; what is gone is said.
        """
        folder = _folder(self.run)
        opened(folder, self.run_id)  # before the lock, which must not appear in others' folders
        try:
            lock = Lock(folder)
        except (ProbeError, OSError) as error:
            raise StaysError(str(error)) from error
        try:
            record = opened(folder, self.run_id)
            files, checkpoints = own_files(folder), self._agreed(own_checkpoints(record))
            _remove(folder, files, checkpoints)
        except OSError as error:
            raise StaysError(f"it could not be removed whole: {error}") from error
        finally:
            lock.release()

    def _agreed(self, found: Checkpoints) -> tuple[Path, ...]:
        """Those that were shown; what was saved since was not."""
        return tuple(path for path in found.files if str(path) in self.checkpoints)


def planned(row: Mapping[str, Any]) -> Removal:
    """What would be removed of the run of a row.

    Raises
    ------
    StaysError
        Nothing would, and why.
    """
    run, run_id = str(row.get("run") or ""), str(row.get("run_id") or "")
    if row.get("state") == "running":
        raise StaysError("it is being written")
    folder = _folder(run)
    record = opened(folder, run_id)
    files, checkpoints = own_files(folder), own_checkpoints(record)
    nbytes = sum(path.lstat().st_size for path in files)
    age_s = time.time() - (folder / ROOT_KEY).lstat().st_mtime
    shown = tuple(map(str, checkpoints.files))
    whole = nbytes + checkpoints.nbytes
    return Removal(run, run_id, record.name, whole, age_s, shown, checkpoints.left)


def _folder(run: str) -> Path:
    path = local_path(run) if run else None
    if path is None:
        raise StaysError("it is in a store; only folders of this machine are removed")
    return path.absolute()


def _remove(folder: Path, files: tuple[Path, ...], checkpoints: tuple[Path, ...]) -> None:
    """Checkpoints first; then the root, after which there is no record with holes in it."""
    for path in checkpoints:
        path.unlink(missing_ok=True)
    remove_lists(checkpoints)
    for path in sorted(files, key=lambda path: path != folder / ROOT_KEY):
        if path != folder / LOCK_NAME:
            path.unlink(missing_ok=True)
    for above, _, _ in os.walk(folder, topdown=False):
        if Path(above) != folder:
            with suppress(OSError):  # something has come into it
                Path(above).rmdir()
    (folder / LOCK_NAME).unlink(missing_ok=True)
    folder.rmdir()
