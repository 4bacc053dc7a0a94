"""Files of a folder that belong to a record; any other file prevents its removal.

A file belongs to the record if its group or array is in the record's metadata, or if it is one of
the few that writers and marks leave there.
"""

from __future__ import annotations

import json
import os
import re
import stat
import warnings
import zipfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from notebook_probe.catalogues.marks.mark_store import PARTIAL
from notebook_probe.errors import ProbeError, RecordWarning
from notebook_probe.record.format.schema import GROUPS, MARKS
from notebook_probe.record.read.ranks import rank_folders
from notebook_probe.record.read.reader import OpenedRecord
from notebook_probe.record.store.files import MAILBOX
from notebook_probe.record.store.location import ROOT_KEY
from notebook_probe.record.store.lock import LOCK_NAME
from notebook_probe.record.store.zipped import is_zip

__all__ = ["StaysError", "check_packed", "opened", "own_files", "own_ranks"]

CHUNK = re.compile(r"(.+)/c(?:/[0-9]+)*")
BESIDE = re.compile(
    rf"{re.escape(LOCK_NAME)}|\.lease(\.[0-9a-f]+)?|\.partial|{re.escape(PARTIAL)}\w+"
    rf"|{re.escape(MAILBOX)}/(run|(in|out)/[0-9a-f]{{32}})\.json"
)
"""Files of writers, and of marks that are being written, in the record's folder itself."""


class StaysError(Exception):
    """Reason why something is not removed, as text."""


def opened(folder: Path, run_id: str) -> OpenedRecord:
    """Return the record of a run in a folder, or packed into a file.

    Raises
    ------
    StaysError
        There is none, it cannot be read, it is of another run, or it is behind a link.
    """
    mode = _mode(folder)
    if not (stat.S_ISDIR(mode) or (stat.S_ISREG(mode) and is_zip(folder))):
        what = "a link" if stat.S_ISLNK(mode) else "neither a folder nor a packed record"
        raise StaysError(what)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RecordWarning)
            record = OpenedRecord(folder)
    except (ProbeError, OSError) as error:
        raise StaysError(f"no record that can be read: {error}") from error
    if not run_id or record.attrs.get("run_id") != run_id:
        raise StaysError("another run is stored there now")
    return record


def own_files(folder: Path) -> tuple[Path, ...]:
    """Return the files of the record in a folder.

    Raises
    ------
    StaysError
        Something in it is no file of the record.
    """
    nodes = _nodes((folder / ROOT_KEY).read_bytes)
    found = []
    for path in _walked(folder):
        key = path.relative_to(folder).as_posix()
        if not _is_own(key, nodes):
            raise StaysError(f"its folder holds {key!r}, which is not of the record")
        found.append(path)
    return tuple(found)


def check_packed(file: Path) -> None:
    """See that a packed record holds nothing else.

    Raises
    ------
    StaysError
        Something in it is no file of the record.
    """
    try:
        with zipfile.ZipFile(file) as packed:
            nodes = _nodes(lambda: packed.read(ROOT_KEY))
            names = packed.namelist()
    except (OSError, ValueError, zipfile.BadZipFile) as error:
        raise StaysError(f"it cannot be read: {error}") from error
    for name in names:
        if not _is_own(name, nodes):
            raise StaysError(f"it holds {name!r}, which is not of the record")


def own_ranks(job: Path) -> dict[int, Path]:
    """Return the records of a job's ranks; empty if it is no job.

    Raises
    ------
    StaysError
        The folder is a link, or contains anything else.
    """
    if not stat.S_ISDIR(_mode(job)):
        return {}
    try:
        ranks = {rank: Path(str(place)) for rank, place in rank_folders(job).items()}
        others = {path.name for path in job.iterdir()} - {path.name for path in ranks.values()}
    except OSError as error:
        raise StaysError(f"its folder cannot be read: {error}") from error
    if ranks and others:
        raise StaysError(f"its folder holds {min(others)!r}, which is of no rank")
    return ranks


def _mode(path: Path) -> int:
    try:
        return path.lstat().st_mode
    except (OSError, ValueError) as error:
        raise StaysError(f"it is not there: {getattr(error, 'strerror', error)}") from error


def _nodes(root_bytes: Callable[[], bytes]) -> set[str]:
    """Return groups and arrays of the record, without foreign entries in its list."""
    try:
        root = json.loads(root_bytes())
        nodes: Mapping[str, Any] = root["consolidated_metadata"]["metadata"]
        own = {*GROUPS, *(path for path, node in nodes.items() if "axis" in node["attributes"])}
        known = {path for path in nodes if path.partition("/")[0] in own}
    except (OSError, ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
        raise StaysError(f"its {ROOT_KEY} cannot be read: {error}") from error
    return {"", MARKS, *known}


def _is_own(key: str, nodes: set[str]) -> bool:
    above, _, name = key.rpartition("/")
    if name == ROOT_KEY:
        return above in nodes
    chunk = CHUNK.fullmatch(key)
    return chunk[1] in nodes if chunk else BESIDE.fullmatch(key) is not None


def _walked(folder: Path) -> Iterator[Path]:
    """Every file below; a link, a pipe or a device ends it."""
    for above, folders, names in os.walk(folder, onerror=_raised):
        for name in sorted([*folders, *names]):
            path = Path(above, name)
            mode = path.lstat().st_mode
            if stat.S_ISREG(mode):
                yield path
            elif not stat.S_ISDIR(mode):
                key = path.relative_to(folder).as_posix()
                raise StaysError(f"its folder holds {key!r}, a link or a device")


def _raised(error: OSError) -> None:
    raise StaysError(f"its folder cannot be read: {error}")
