"""Mailbox of a training: small files in the store of its record, each replaced as a whole."""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from pathlib import Path
from typing import Protocol

from notebook_probe.errors import ProbeError
from notebook_probe.record.store.files import MAILBOX, open_here
from notebook_probe.record.store.location import Location, RemoteStore, local_path
from notebook_probe.record.store.remote import engine_of
from notebook_probe.record.store.remote.engine import SingleObjects

__all__ = ["LocalMail", "Mail", "MailError", "ObjectMail", "mail_of"]


class MailError(ProbeError, OSError):
    """The mailbox of a record cannot be used."""


class Mail(Protocol):
    """Small files of a mailbox by key, ``in/<id>.json`` and so on. May raise any error."""

    poll_s: float
    """Seconds between two looks for an answer."""

    def begin(self) -> None:
        """Make an empty mailbox, in place of one that a process has left."""

    def sizes(self, under: str) -> dict[str, int]:
        """Return the size of each file in a folder of the mailbox, by its key."""

    def read(self, key: str, most_bytes: int) -> bytes | None:
        """Return the content of a file; None if it is gone, too large, or not to be trusted."""

    def write(self, key: str, content: bytes) -> None:
        """Put a file there as a whole."""

    def delete(self, key: str) -> None:
        """Remove a file, which may be gone already."""

    def sender(self, key: str) -> str:
        """Return what the store knows of who wrote a file, as text."""

    def end(self) -> None:
        """Remove the mailbox."""


def mail_of(location: Location) -> Mail:
    """Return the mailbox of a record.

    Raises
    ------
    MailError
        The store has no room for one.
    """
    path = local_path(location)
    if path is not None:
        return LocalMail(path / MAILBOX)
    engine = engine_of(location if isinstance(location, RemoteStore) else RemoteStore(location))
    if not isinstance(engine, SingleObjects):
        raise MailError(f"{engine.name}: this kind of store has no mailbox")
    return ObjectMail(engine)


class LocalMail:
    """A mailbox in a folder of this machine, or of a network.

    Only its owner can open it, and files of other users are not read.
    """

    poll_s = 0.2

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def begin(self) -> None:
        """Make the folders.

        Raises
        ------
        MailError
            A link, a file or the folder of another user is in their place.
        """
        for folder in (self._folder, self._folder / "in", self._folder / "out"):
            with suppress(FileExistsError):
                folder.mkdir(mode=0o700)
            found = folder.lstat()
            if not stat.S_ISDIR(found.st_mode) or found.st_uid != self._folder.stat().st_uid:
                raise MailError(f"{folder} is not a folder of ours")
            folder.chmod(0o700)
        for under in ("in", "out"):
            for key in self.sizes(under):
                self.delete(key)

    def sizes(self, under: str) -> dict[str, int]:
        found = {}
        with suppress(FileNotFoundError), os.scandir(self._folder / under) as entries:
            for entry in entries:
                with suppress(FileNotFoundError):
                    size = entry.stat(follow_symlinks=False).st_size
                    found[f"{under}/{entry.name}"] = size
        return found

    def read(self, key: str, most_bytes: int) -> bytes | None:
        try:
            owner = self._folder.stat().st_uid
            # Not waiting: a pipe of that name would be waited for.
            fd = open_here(self._folder / key, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
        except OSError:
            return None
        with os.fdopen(fd, "rb") as file:
            found = os.fstat(fd)
            is_ours = found.st_uid == owner
            if not (stat.S_ISREG(found.st_mode) and is_ours and found.st_size <= most_bytes):
                return None
            return file.read(most_bytes)

    def write(self, key: str, content: bytes) -> None:
        target = self._folder / key
        partial = target.with_name(f".{target.name}.{os.getpid()}.partial")
        fd = open_here(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
        try:
            with os.fdopen(fd, "wb") as file:
                file.write(content)
            partial.replace(target)
        finally:
            partial.unlink(missing_ok=True)

    def delete(self, key: str) -> None:
        with suppress(FileNotFoundError):
            (self._folder / key).unlink()

    def sender(self, key: str) -> str:
        try:
            owner = (self._folder / key).lstat().st_uid
        except OSError:
            return ""
        return f"user {owner}"

    def end(self) -> None:
        for under in ("in", "out", "."):
            for key in self.sizes(under):
                with suppress(OSError):  # a folder
                    self.delete(key)
            with suppress(OSError):
                (self._folder / under).rmdir()
        with suppress(OSError):
            self._folder.rmdir()


class ObjectMail:
    """A mailbox in an object store, or any zarr Store, under a prefix of the record."""

    poll_s = 0.5

    def __init__(self, engine: SingleObjects) -> None:
        self._engine = engine

    def begin(self) -> None:
        self.end()

    def sizes(self, under: str) -> dict[str, int]:
        n = len(MAILBOX) + 1
        found = self._engine.sizes(f"{MAILBOX}/{under}/")
        return {key[n:]: size for key, size in found.items()}

    def read(self, key: str, most_bytes: int) -> bytes | None:
        content = self._engine.read(f"{MAILBOX}/{key}")
        return content if content is not None and len(content) <= most_bytes else None

    def write(self, key: str, content: bytes) -> None:
        self._engine.put(f"{MAILBOX}/{key}", content)

    def delete(self, key: str) -> None:
        self._engine.delete(f"{MAILBOX}/{key}")

    def sender(self, key: str) -> str:
        return ""

    def end(self) -> None:
        for key in self._engine.sizes(f"{MAILBOX}/"):
            self._engine.delete(key)
