"""The checkpoints of a run: those in its record that were not written since."""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from notebook_probe.record.format.notes import CHECKPOINT
from notebook_probe.record.format.source import Event
from notebook_probe.record.read.reader import OpenedRecord

__all__ = ["OwnCheckpointFiles", "own_checkpoints", "remove_folders"]

LIST = "checkpoints.json"
"""List of checkpoints, in each folder of checkpoints."""
RECORD = "record.zarr"
FOLDERS = ("checkpoints", "recent")
"""Folders of checkpoints that an experiment has next to its record."""
MOST_BYTES = 2**26
SLACK_S = 2.0
"""Seconds between the end of a file and its event, by clocks of network disks."""


class OwnCheckpointFiles(NamedTuple):
    """Files that are of this run alone, and why others are left where they are."""

    files: tuple[Path, ...]
    nbytes: int
    left: tuple[str, ...]


def own_checkpoints(record: OpenedRecord) -> OwnCheckpointFiles:
    """Return checkpoints that record and folder list, and that were not written since."""
    files: dict[Path, int] = {}
    left: dict[str, str] = {}
    for path, detail, event in _noted_checkpoints(record):
        why = _why_not(path, detail, event)
        if not why:
            files[path] = path.lstat().st_size
        elif path.exists():
            left[str(path)] = why
    for path in files:
        left.pop(str(path), None)  # saved twice; the later one is stored there
    told = tuple(f"{path}: {why}" for path, why in left.items())
    return OwnCheckpointFiles(tuple(files), sum(files.values()), told)


def remove_folders(checkpoints: Iterable[Path], place: Path) -> None:
    """Remove folders in which these checkpoints, or the record at a place, have left nothing.

    A list of missing checkpoints counts as empty. The folder of an experiment is removed, too.
    """
    is_experiment = place.name == RECORD
    beside = [place.parent / name for name in FOLDERS] if is_experiment else []
    for folder in dict.fromkeys([*(path.parent for path in checkpoints), *beside]):
        with suppress(OSError, ValueError):
            if stat.S_ISDIR(folder.lstat().st_mode) and _has_a_list_alone(folder):
                (folder / LIST).unlink()
                folder.rmdir()
    for folder in (place, place.parent) if is_experiment else (place,):
        with suppress(OSError):  # there is something in it
            folder.rmdir()


def _has_a_list_alone(folder: Path) -> bool:
    return {path.name for path in folder.iterdir()} == {LIST}


def _noted_checkpoints(record: OpenedRecord) -> Iterator[tuple[Path, Any, Event]]:
    """Yield the checkpoints that a record names: path, detail and event."""
    for event in record.all_events:
        if event.kind == CHECKPOINT:
            with suppress(ValueError, LookupError, TypeError, RecursionError):
                detail = json.loads(event.detail)
                path = str(detail["path"])
                # On Windows merely to look at a share sends its host the user's credentials.
                if not path.startswith(("\\\\", "//")) and "\0" not in path:
                    yield Path(path), detail, event


def _why_not(path: Path, detail: Any, event: Event) -> str:
    if not path.is_absolute() or os.path.normpath(path) != str(path):
        return "its path is no plain one"
    try:
        found = path.lstat()
        if not stat.S_ISREG(found.st_mode) or not stat.S_ISDIR(path.parent.lstat().st_mode):
            return "a link, or in a folder that is one"
    except OSError as error:
        return f"it is not there: {error.strerror}"
    if path.name not in _listed(path.parent):
        return f"{LIST} next to it does not list it"
    if found.st_size != detail.get("bytes") or found.st_mtime > event.time_ms / 1000 + SLACK_S:
        return "it was written again since"
    return ""


def _listed(folder: Path) -> set[str]:
    path = folder / LIST
    try:
        if not stat.S_ISREG(path.lstat().st_mode) or path.lstat().st_size > MOST_BYTES:
            return set()
        found = json.loads(path.read_bytes())
        return {str(one["file"]) for one in found["checkpoints"]}
    except (OSError, ValueError, LookupError, TypeError, RecursionError):
        return set()
