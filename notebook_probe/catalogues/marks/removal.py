"""Plan and removal of one run, with each of its records locked."""

from __future__ import annotations

import time
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from notebook_probe.catalogues.marks.own_checkpoints import own_checkpoints, remove_folders
from notebook_probe.catalogues.marks.parts import RecordPart, parts_of
from notebook_probe.catalogues.marks.record_files import StaysError
from notebook_probe.record.store.location import ROOT_KEY, local_path

__all__ = ["Removal", "planned"]


@dataclass(frozen=True, slots=True)
class Removal:
    """One run that can be removed.

    Attributes
    ----------
    run, name : str
    parts : tuple of RecordPart
        Records of the run, one except for a job.
    nbytes : int
        Bytes of the record and its checkpoints.
    age_s : float
        Since its last commit.
    checkpoints : tuple of str
        Files that would go with it.
    left : tuple of str
        Checkpoints in its record that would stay, and why.
    """

    run: str
    name: str
    nbytes: int
    age_s: float
    parts: tuple[RecordPart, ...]
    checkpoints: tuple[str, ...] = ()
    left: tuple[str, ...] = ()

    def apply(self) -> None:
        """Remove it: every part, or none.

        Raises
        ------
        StaysError
            It is being written now, or has changed since; deleted files are listed.
        """
        place = _place(self.run)
        with ExitStack() as locks:
            try:
                for part in self.parts:
                    locks.enter_context(part.alone())
                if parts_of(place, self.parts[0].run_id) != self.parts:
                    raise StaysError("it has other ranks now")
                whole = [(part, part.files(), self._agreed(part)) for part in self.parts]
                for part, files, checkpoints in whole:
                    for path in checkpoints:
                        path.unlink(missing_ok=True)
                    part.remove(files)
                remove_folders([path for *_, checkpoints in whole for path in checkpoints], place)
            except OSError as error:
                raise StaysError(f"it could not be removed whole: {error}") from error

    def _agreed(self, part: RecordPart) -> tuple[Path, ...]:
        """Return the files that were shown; files saved since are kept."""
        found = own_checkpoints(part.opened()).files
        return tuple(path for path in found if str(path) in self.checkpoints)


def planned(row: Mapping[str, Any]) -> Removal:
    """Return what would be removed of a row's run.

    Raises
    ------
    StaysError
        Nothing would, and why.
    """
    run, run_id = str(row.get("run") or ""), str(row.get("run_id") or "")
    if row.get("state") == "running":
        raise StaysError("it is being written")
    parts = parts_of(_place(run), run_id)
    records = [part.opened() for part in parts]
    files = [path for part in parts for path in part.files()]
    found = [own_checkpoints(record) for record in records]
    return Removal(
        run=run,
        name=records[0].name,
        nbytes=sum(path.lstat().st_size for path in files) + sum(one.nbytes for one in found),
        age_s=time.time() - max(path.lstat().st_mtime for path in map(_root, parts)),
        parts=parts,
        checkpoints=tuple(str(path) for one in found for path in one.files),
        left=tuple(why for one in found for why in one.left),
    )


def _root(part: RecordPart) -> Path:
    return part.path / ROOT_KEY if part.path.is_dir() else part.path


def _place(run: str) -> Path:
    path = local_path(run) if run else None
    if path is None:
        raise StaysError("it is in a store; only what is on this machine is removed")
    return path.absolute()
