"""The folder of this machine in which a remote record is written."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import tempfile
import uuid
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self, TypeAlias

from notebook_probe.errors import RecordFormatError, RecordLockedError, RecordWriteError
from notebook_probe.record.store.location import ROOT_KEY
from notebook_probe.record.store.lock import Lock
from notebook_probe.record.store.remote.engine import Engine

__all__ = ["Spool", "Stamp", "digest", "spool_of", "stamp"]

RECORD, NOTE = "record.zarr", "shipped.json"
SAFE_KEY = re.compile(r"(?!\.)[\w.%~-]{1,255}(/(?!\.)[\w.%~-]{1,255})*", re.ASCII)
"""A key that is a path below the folder: no way up, nothing hidden."""
AT_ONCE = 8
DOWNLOADED_NS = 10**9
"""Time given to files that came from the store: a writer's change gives them another."""

Stamp: TypeAlias = list[int]
"""Time, size and number of a file: while they are equal, the file has not changed."""


@dataclass(slots=True)
class Note:
    """Known contents of the store, readable also after this process has died."""

    token: str = field(default_factory=lambda: uuid.uuid4().hex)
    """Token of the lease."""
    roots: list[str] = field(default_factory=lambda: [digest(None)])
    """Digests of the root in the store; two while it is being replaced."""
    sent: dict[str, Stamp] = field(default_factory=dict)
    """Stamps of the chunks in the store."""

    @classmethod
    def read(cls, path: Path) -> Self:
        try:
            found: dict[str, Any] = json.loads(path.read_text())
            return cls(str(found["token"]), list(found["roots"]), dict(found["sent"]))
        except (OSError, ValueError, KeyError, TypeError):
            return cls()


class Spool:
    """A local copy of the record, kept until all of it is in the store.

    Parameters
    ----------
    place : Path
        Folder for it, created if needed; see `spool_of`.
    name : str
        Name of the store, for messages.

    Raises
    ------
    RecordLockedError
        Another process of this machine writes to the same store.
    """

    def __init__(self, place: Path, name: str) -> None:
        self.place = place
        self.place.mkdir(parents=True, exist_ok=True)
        try:
            self._lock = Lock(self.place)
        except RecordLockedError as error:
            raise RecordLockedError(f"{name}: its spool {error}") from error
        self.folder = self.place / RECORD
        self.note = Note.read(self.place / NOTE)
        self.save(self.note.roots)  # the token, before it is used

    def fill(self, engine: Engine) -> str:
        """Fill the spool with the record in the store, or a later state of it.

        Returns
        -------
        str
            Note about rows that had to be moved away; empty if there are none.

        Raises
        ------
        RecordFormatError
            The store contains something else.
        """
        root = engine.read(ROOT_KEY)
        check_record(root, engine)
        left = ""
        if digest(root) not in self.note.roots:
            left = self._set_aside()
            self.note = Note(self.note.token)
            if root is not None:
                self._download(engine, root)
        return left

    def save(self, roots: Sequence[str]) -> None:
        """Keep the note, with these digests of the store's root."""
        self.note.roots = list(roots)
        content = {"token": self.note.token, "roots": self.note.roots, "sent": self.note.sent}
        partial = self.place / f"{NOTE}.partial"
        partial.write_text(json.dumps(content))
        partial.replace(self.place / NOTE)

    def remove(self) -> None:
        """Remove the spool, except for rows that were moved away before."""
        shutil.rmtree(self.folder, ignore_errors=True)
        (self.place / NOTE).unlink(missing_ok=True)
        self.release()
        if all(path == self._lock.path for path in self.place.iterdir()):
            shutil.rmtree(self.place, ignore_errors=True)

    def release(self) -> None:
        """Release the lock for other processes."""
        self._lock.release()

    def _set_aside(self) -> str:
        """Move the spool away: another writer has continued in the store without it."""
        if not (self.folder / ROOT_KEY).exists():
            shutil.rmtree(self.folder, ignore_errors=True)
            return ""
        aside = Path(tempfile.mkdtemp(prefix="left-", dir=self.place)) / RECORD
        self.folder.replace(aside)
        return f"rows that an earlier process recorded and could not ship are in {aside}"

    def _download(self, engine: Engine, root: bytes) -> None:
        """Copy the record here, its root last."""
        partial = self.folder.with_suffix(".partial")
        shutil.rmtree(partial, ignore_errors=True)

        def fetch(key: str) -> None:
            content = engine.read(key)
            if content is None or not SAFE_KEY.fullmatch(key):
                return
            path = partial / key
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
            os.utime(path, ns=(DOWNLOADED_NS, DOWNLOADED_NS))
            if "/c/" in key:
                self.note.sent[key] = stamp(path)

        with ThreadPoolExecutor(AT_ONCE) as pool:
            list(pool.map(fetch, set(engine.keys()) - {ROOT_KEY}))
        (partial / ROOT_KEY).write_bytes(root)
        partial.replace(self.folder)
        self.save([digest(root)])


def spool_of(name: str, above: str | Path | None) -> Path:
    """Return the folder of a spool, fixed by the name, so that a killed writer's is found.

    Parameters
    ----------
    name : str
        Name of the store; empty for one that exists only in this process.
    above : path, optional
        Folder for spools, created if needed; the user's cache by default.

    Raises
    ------
    RecordWriteError
        It cannot be made.
    """
    if not name and above is None:
        return Path(tempfile.mkdtemp(prefix="spool-"))
    folder = Path.home() / ".cache" / "notebook_probe" / "spool" if above is None else Path(above)
    folder = folder.expanduser().absolute()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if not name:
            return Path(tempfile.mkdtemp(prefix="spool-", dir=folder))
    except OSError as error:
        raise RecordWriteError(f"cannot make the spool in {folder}: {error.strerror}") from error
    # Names are URLs, which are no valid folder names everywhere.
    return folder / hashlib.sha256(name.encode()).hexdigest()[:16]


def check_record(root: bytes | None, engine: Engine) -> None:
    """Raise RecordFormatError unless this is a record's root."""
    if root is None:
        if engine.keys():
            raise RecordFormatError(f"{engine.name} holds other objects; nothing was changed")
        return
    try:
        is_record = "format_version" in json.loads(root)["attributes"]
    except (ValueError, KeyError, TypeError):
        is_record = False
    if not is_record:
        raise RecordFormatError(f"{engine.name} is not a record; nothing was changed")


def digest(root: bytes | None) -> str:
    """Return a digest of the root; empty for none."""
    return "" if root is None else hashlib.sha256(root).hexdigest()


def stamp(path: Path) -> Stamp:
    """Return the present stamp of a file."""
    found = path.stat()
    return [found.st_mtime_ns, found.st_size, found.st_ino]
