"""Finding of old runs: at a path, by the content of the files there, and below a folder."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from urllib.parse import quote, unquote

from notebook_probe.errors import RecordFormatError, near
from notebook_probe.old_runs.formats.json_lines import JsonLinesFormat
from notebook_probe.old_runs.formats.mlflow_folder import MlflowFolderFormat
from notebook_probe.old_runs.formats.mlflow_sqlite import MlflowSqliteFormat
from notebook_probe.old_runs.formats.old_format import OldFormat
from notebook_probe.old_runs.formats.sqlite_file import is_sqlite
from notebook_probe.old_runs.formats.table_csv import CsvFormat, LightningFormat
from notebook_probe.old_runs.formats.tensorboard import TensorBoardFormat
from notebook_probe.old_runs.formats.trackio import TrackioFormat
from notebook_probe.old_runs.formats.trainer_state import CHECKPOINT, TrainerStateFormat
from notebook_probe.old_runs.formats.wandb import WandbFormat
from notebook_probe.old_runs.place import OldPlace
from notebook_probe.record.store.other_tools import NoRunError

__all__ = ["find_old_run", "old_runs_in"]

FORMATS: Sequence[OldFormat] = (
    WandbFormat(),
    TensorBoardFormat(),
    MlflowFolderFormat(),
    TrainerStateFormat(),
    LightningFormat(),
    TrackioFormat(),
    MlflowSqliteFormat(),
    JsonLinesFormat(),
    CsvFormat(),
)
HEAD_BYTES = 1 << 13
MOST_ENTRIES = 20_000
MOST_NAMED = 4
SINGLE = re.compile(r".*\.(csv|tsv|jsonl|ndjson|db|sqlite|sqlite3)", re.IGNORECASE)
"""Files that are looked into while a folder is searched; any other is part of a run's folder."""


def find_old_run(path: Path) -> OldPlace | None:
    """Return the run of another tool at a path; None if there is none.

    A run in a SQLite file is at ``project.db/name``, the name percent-encoded.

    Raises
    ------
    RecordFormatError
        The file holds several runs, or none of this name.
    """
    if path.is_file():
        return _in_file(path)
    if path.is_dir():
        return _in_folder(path)
    above = path.parent
    if above.is_file() and is_sqlite(_head(above)):
        return _named(above, unquote(path.name), path)
    return None


def old_runs_in(above: str, folders: list[str], names: Sequence[str]) -> Iterator[Path]:
    """Yield the locations of the runs in one folder of a walk from the top.

    Folders that belong to a run that was found are removed from ``folders``.
    """
    used: set[str] = set()
    try:
        place = _in_folder(Path(above), [*folders, *names])
    except OSError:  # not ours to read
        place = None
    if place is not None:
        yield place.path
        used = {file.name for file in place.files if file.parent == place.path}
        inside = {file.relative_to(place.path).parts[0] for file in place.files}
        folders[:] = [
            one
            for one in folders
            if not (place.format.owns_folder or one in inside or CHECKPOINT.fullmatch(one))
        ]
    for name in names:
        if name not in used and SINGLE.fullmatch(name):
            yield from _each_in(Path(above, name))


def _each_in(path: Path) -> Iterator[Path]:
    try:
        head = _head(path)
        for one in FORMATS:
            if one.in_file(path, head) and not one.why_no_run(path, head):
                keys = one.keys(path)
                single = len(keys) == 1
                yield from (path if single or not key else path / _spelled(key) for key in keys)
                return
    except (OSError, RecordFormatError):
        return


def _in_file(path: Path) -> OldPlace | None:
    head = _head(path)
    for one in FORMATS:
        if one.in_file(path, head):
            why = one.why_no_run(path, head)
            if why:
                raise NoRunError(why)
            key, *others = one.keys(path) or ("",)
            if others:
                some = ", ".join(
                    repr(str(path / _spelled(name))) for name in (key, *others)[:MOST_NAMED]
                )
                raise RecordFormatError(
                    f"{path} holds {1 + len(others)} runs of {one.tool}; open one of them: {some}"
                )
            return OldPlace(one, path, (path,), key)
    return None


def _named(file: Path, key: str, path: Path) -> OldPlace | None:
    head = _head(file)
    for one in FORMATS:
        if one.in_file(file, head):
            keys = one.keys(file)
            if key not in keys:
                raise RecordFormatError(f"{file} has no run {key!r}; {near(key, keys)}")
            return OldPlace(one, path, (file,), key)
    return None


def _in_folder(folder: Path, names: Sequence[str] | None = None) -> OldPlace | None:
    entries = _entries(folder) if names is None else names
    found = ((one, one.in_folder(folder, entries)) for one in FORMATS)
    return next((OldPlace(one, folder, files) for one, files in found if files), None)


def _entries(folder: Path) -> list[str]:
    try:
        with os.scandir(folder) as entries:
            return [entry.name for entry, _ in zip(entries, range(MOST_ENTRIES), strict=False)]
    except OSError:
        return []


def _head(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            return file.read(HEAD_BYTES)
    except OSError:
        return b""


def _spelled(key: str) -> str:
    return quote(key, safe=" +,=@")
