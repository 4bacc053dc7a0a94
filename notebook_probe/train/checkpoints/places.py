"""Locations of checkpoints: a local folder, or an object store; files are replaced whole."""

from __future__ import annotations

import io
import os
import re
import tempfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import IO, Any, Protocol

import torch

from notebook_probe.errors import CheckpointError
from notebook_probe.record.store.location import Location, RemoteStore, local_path
from notebook_probe.record.store.remote import engine_of
from notebook_probe.record.store.remote.engine import SingleObjects
from notebook_probe.record.store.syncing import sync_folder, to_disk
from notebook_probe.uninterrupted import uninterrupted

__all__ = ["CheckpointFiles", "DamagedError", "Fill", "place_at", "read_state"]

PARTIAL = ".partial"
"""Name of the file being written: a killed writer leaves at most one, reused by the next."""

Fill = Callable[[IO[bytes]], Any]


class DamagedError(CheckpointError):
    """A file that could be opened holds no checkpoint that can be read."""


class CheckpointFiles(Protocol):
    """Files by name; one that is written exists as a whole, or is unchanged."""

    name: str

    def names(self) -> set[str]: ...
    def read(self, name: str) -> bytes | None: ...
    def open(self, name: str) -> IO[bytes]: ...
    def write(self, name: str, fill: Fill) -> None: ...
    def delete(self, name: str) -> None: ...


class CheckpointFolder:
    """A folder, made when something is first written to it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder.absolute()
        self.name = str(self.folder)

    def names(self) -> set[str]:
        if not self.folder.exists():
            return set()
        return {path.name for path in self.folder.iterdir() if path.is_file()}

    def read(self, name: str) -> bytes | None:
        path = self.folder / name
        return path.read_bytes() if path.is_file() else None

    def open(self, name: str) -> IO[bytes]:
        return (self.folder / name).open("rb")

    def write(self, name: str, fill: Fill) -> None:
        """Fill a file under another name, and give it this one once it is on the disk."""
        self.folder.mkdir(parents=True, exist_ok=True)
        partial = self.folder / PARTIAL
        partial.unlink(missing_ok=True)  # a killed writer's
        try:
            with partial.open("xb") as file:
                _filled(fill, file)
                # A system may put the new name on the disk before the content: a crash would leave
                # an empty file.
                file.flush()
                to_disk(file.fileno())
        except BaseException:
            with suppress(OSError):  # what is left of it would keep a full disk full
                partial.unlink(missing_ok=True)
            raise
        os.replace(partial, self.folder / name)  # noqa: PTH105  Path.replace parses both again
        # The new name is an entry of the folder, which the file's own sync does not write.
        sync_folder(self.folder)

    def delete(self, name: str) -> None:
        (self.folder / name).unlink(missing_ok=True)


class RemotePlace:
    """Objects of a store, through the engine that records are shipped by."""

    def __init__(self, objects: SingleObjects) -> None:
        self._objects, self.name = objects, objects.name

    def names(self) -> set[str]:
        return set(self._objects.keys())

    def read(self, name: str) -> bytes | None:
        return self._objects.read(name)

    def open(self, name: str) -> IO[bytes]:
        content = self.read(name)
        if content is None:
            raise FileNotFoundError(name)
        return io.BytesIO(content)

    def write(self, name: str, fill: Fill) -> None:
        with tempfile.TemporaryDirectory(prefix="notebook-probe-") as folder:
            path = Path(folder, "checkpoint")
            with path.open("xb") as file:
                _filled(fill, file)
            self._objects.put_file(name, path)

    def delete(self, name: str) -> None:
        self._objects.delete(name)


def place_at(location: Location) -> CheckpointFiles:
    """Return the place of a path or a URL.

    Raises
    ------
    CheckpointError
        A store whose objects are no files, such as icechunk's.
    """
    path = local_path(location)
    if path is not None:
        return CheckpointFolder(path)
    engine = engine_of(location if isinstance(location, RemoteStore) else RemoteStore(location))
    if not isinstance(engine, SingleObjects):
        raise CheckpointError(
            f"{engine.name} cannot hold checkpoints; allowed: a folder, an object store such as "
            f"s3://bucket/checkpoints, a zarr Store"
        )
    return RemotePlace(engine)


# What torch says next: to load the file again in a way that would run its code.
_ADVICE = re.compile(r"\s*(In PyTorch 2\.6|This file can still|Re-running|To do so).*")


def read_state(place: CheckpointFiles, name: str) -> dict[str, Any]:
    """Read a file's state; no code in it is run.

    Raises
    ------
    DamagedError
        The file is damaged, or contains types that may not be read.
    CheckpointError
        The file does not exist, or the disk does not answer.
    """
    try:
        with place.open(name) as file:
            state = torch.load(file, map_location="cpu", weights_only=True)
    except Exception as error:
        first = _ADVICE.sub("", f"{error}".strip().partition("\n")[0])
        kind = CheckpointError if isinstance(error, OSError) else DamagedError
        raise kind(
            f"{place.name}/{name} cannot be read as a checkpoint: {type(error).__name__}: {first}"
        ) from error
    return state if isinstance(state, dict) else {}


def _filled(fill: Fill, file: IO[bytes]) -> None:
    """Fill a file; raise the system's error rather than torch's.

    Whole: an interrupt within ``torch.save`` becomes a RuntimeError, or ends the process, where
    torch completes the archive of a file that has been closed.
    """
    try:
        with uninterrupted:
            fill(file)
    except RuntimeError as error:
        cause = error.__context__
        if isinstance(cause, OSError):
            raise cause from None
        raise
