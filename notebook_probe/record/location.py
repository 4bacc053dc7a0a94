"""Where a record is: a path, a URL or a zarr Store."""

from __future__ import annotations

from pathlib import Path
from typing import TypeAlias
from urllib.parse import urlparse
from urllib.request import url2pathname

import zarr
from zarr.abc.store import Store
from zarr.core.buffer import default_buffer_prototype
from zarr.core.sync import sync
from zarr.storage import LocalStore

from notebook_probe.errors import RecordWriteError
from notebook_probe.record.lock import LOCK_NAME
from notebook_probe.record.zipped import is_zip, open_zip

__all__ = [
    "ROOT_KEY",
    "Location",
    "is_unused",
    "local_path",
    "new_folder",
    "open_store",
    "read_key",
]

Location: TypeAlias = str | Path | Store
ROOT_KEY = "zarr.json"


def local_path(location: Location) -> Path | None:
    """The folder that ``location`` names on this machine's disk, or None.

    Examples
    --------
    >>> local_path("file:///tmp/first%20run.zarr").as_posix()
    '/tmp/first run.zarr'
    >>> local_path("s3://bucket/first.zarr") is None
    True
    """
    if isinstance(location, Path):
        return location.expanduser()
    if isinstance(location, Store):
        return None
    if location.startswith("file://"):
        return Path(url2pathname(urlparse(location).path))
    if "://" in location or "::" in location:
        return None
    return Path(location).expanduser()


def open_store(location: Location) -> Store:
    """The zarr Store of the record at ``location``, for reading.

    Raises
    ------
    FileNotFoundError
        When there is none.
    """
    if isinstance(location, Store):
        return location
    path = local_path(location)
    if path is not None:
        if is_zip(path):
            return open_zip(path)
        if not (path / ROOT_KEY).is_file():  # a pipe of that name would be waited for
            raise FileNotFoundError(path)
        return LocalStore(path, read_only=True)
    return zarr.open_group(str(location), mode="r", use_consolidated=False).store


def read_key(store: Store, key: str) -> bytes | None:
    """The bytes under ``key``, or None."""
    try:
        found = sync(store.get(key, default_buffer_prototype()))
    except (FileNotFoundError, NotADirectoryError):  # there is no store at all
        return None
    return None if found is None else found.to_bytes()


def new_folder(location: str | Path) -> Path:
    """The folder to write a record into, made when it is not there yet.

    Raises
    ------
    RecordWriteError
        When it is not on a local disk or cannot be made.
    """
    folder = local_path(location)
    if folder is None:
        raise RecordWriteError(f"cannot write to {location}; a run is recorded to a local folder")
    folder = folder.absolute()
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except FileExistsError:
        return folder  # a file: for the caller, who knows what may be there
    except OSError as error:
        raise RecordWriteError(f"cannot make the folder {folder}: {error.strerror}") from error
    return folder


def is_unused(folder: Path) -> bool:
    """Whether ``folder`` is empty, or was left by a writer that died before its first commit."""
    return not any(folder.iterdir()) or (
        (folder / LOCK_NAME).exists() and not (folder / ROOT_KEY).exists()
    )
