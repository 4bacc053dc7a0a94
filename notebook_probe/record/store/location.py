"""Location of a record: a path, a URL, a zarr Store, or one of these with options."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeAlias
from urllib.parse import urlparse
from urllib.request import url2pathname

from zarr.abc.store import Store
from zarr.core.buffer import default_buffer_prototype
from zarr.core.sync import sync
from zarr.storage import LocalStore

from notebook_probe.errors import RecordWriteError
from notebook_probe.record.store.lock import LOCK_NAME
from notebook_probe.record.store.plain_files import PlainFiles

__all__ = [
    "ROOT_KEY",
    "Location",
    "RemoteStore",
    "below",
    "called_apart",
    "ends_in",
    "is_unused",
    "local_path",
    "new_folder",
    "next_to",
    "read_key",
    "stem",
]

ROOT_KEY = "zarr.json"


@dataclass(frozen=True)
class RemoteStore:
    """A store that is not a local folder, with its options.

    A URL or a store alone will do wherever this is taken: credentials come from the environment.

    Attributes
    ----------
    store : str, zarr Store or icechunk Repository
        ``"s3://bucket/run.zarr"``, ``"gs://..."``, ``"az://..."``, ``"memory://name"``,
        ``"icechunk:///folder"``, ``"icechunk+s3://bucket/run"``; ``"file:///folder"`` for a folder
        that is shipped to, such as one on a network.
    options : mapping of str to values
        Settings of the store, such as ``{"endpoint": "https://minio.example", "region": "eu"}``:
        those of obstore, or of icechunk's own storage.
    spool : str or Path, optional
        Folder of this machine in which the run is written before it is shipped; in the user's
        cache by default. Give a local disk where homes are on a network.
    every_s : float, optional
        Seconds between two shipments; 15 by default, 30 for icechunk, where each is a commit.

    Examples
    --------
    >>> store = RemoteStore("s3://bucket/run.zarr", options={"region": "eu-central-1"})
    >>> run = nbp.watch(model, store=store)  # doctest: +SKIP
    """

    store: Any
    options: Mapping[str, Any] = field(default_factory=dict, repr=False)
    spool: str | Path | None = None
    every_s: float | None = None

    def __str__(self) -> str:
        return str(self.store)


Location: TypeAlias = str | Path | Store | RemoteStore


def local_path(location: Location) -> Path | None:
    """Return the local folder of ``location``, or None.

    Examples
    --------
    >>> local_path("file:///tmp/first%20run.zarr").as_posix()
    '/tmp/first run.zarr'
    >>> local_path("s3://bucket/first.zarr") is None
    True
    """
    if isinstance(location, Path):
        return location.expanduser()
    if isinstance(location, LocalStore):
        return location.root
    if not isinstance(location, str):
        return None
    if location.startswith("file://"):
        return Path(url2pathname(urlparse(location).path))
    if "://" in location or "::" in location:
        return None
    return Path(location).expanduser()


def below(location: Location, name: str) -> Location:
    """Return the location of ``name`` in the folder or below the URL of ``location``.

    Examples
    --------
    >>> below("s3://bucket/run.zarr/", "rank_00003")
    's3://bucket/run.zarr/rank_00003'
    """
    if isinstance(location, RemoteStore):
        return replace(location, store=below(location.store, name))
    if isinstance(location, Path):
        return location / name
    if isinstance(location, str):
        return f"{location.rstrip('/')}/{name}"
    raise RecordWriteError(f"cannot make {name} in {location!r}; give a URL or a path")


def next_to(location: Location, name: str) -> Location:
    """Return the location of ``name`` in the folder or below the URL that ``location`` is in.

    Examples
    --------
    >>> next_to("s3://bucket/run.zarr/rank_00000", "rank_00003")
    's3://bucket/run.zarr/rank_00003'
    """
    if isinstance(location, RemoteStore):
        return replace(location, store=next_to(location.store, name))
    if isinstance(location, Path):
        return location.parent / name
    if isinstance(location, str):
        return f"{location.rstrip('/').rpartition('/')[0]}/{name}"
    raise RecordWriteError(f"nothing can be next to {location!r}; give a URL or a path")


def stem(location: str) -> str:
    """Return the record's name without its suffix.

    Examples
    --------
    >>> stem("runs/digits-cnn-5.zarr")
    'digits-cnn-5'
    """
    return Path(location.rstrip("/")).name.removesuffix(".zip").removesuffix(".zarr") or location


def ends_in(location: str, words: str) -> bool:
    """Return whether a location ends in this name, or in folders and this name.

    Examples
    --------
    >>> ends_in("/lab/runs/first.zarr", "first"), ends_in("/lab/runs/first.zarr", "runs/first")
    (True, True)
    >>> ends_in("/lab/runs/first.zarr", "irst")
    False
    """
    return any(words == tail for tail in _tails(location))


def called_apart(names: Sequence[str], locations: Sequence[str]) -> list[str]:
    """Return distinct names of records, as short as possible.

    A record's own name if it is unique; else the end of its location.

    Examples
    --------
    >>> called_apart(["net", "net", "best"], ["a/run.zarr", "b/run.zarr", "c/run.zarr"])
    ['a/run', 'b/run', 'best']
    """
    ways = [[name, *_tails(place)] for name, place in zip(names, locations, strict=True)]
    how_often = Counter(word for words in ways for word in {*words})
    return [
        next((word for word in words if word and how_often[word] == 1), place)
        for words, place in zip(ways, locations, strict=True)
    ]


def _tails(location: str) -> list[str]:
    """Return the record's name, then the name with one folder above it, with two, ..."""
    *folders, _ = Path(location.rstrip("/")).parts or ("",)
    name = stem(location)
    return ["/".join([*folders[len(folders) - n :], name]) for n in range(len(folders) + 1)]


def read_key(store: Store, key: str) -> bytes | None:
    """Return the bytes under ``key``, or None."""
    if isinstance(store, PlainFiles):  # without zarr's event loop on another thread
        return store.bytes_of(key)
    try:
        found = sync(store.get(key, default_buffer_prototype()))
    except (FileNotFoundError, NotADirectoryError):  # there is no store at all
        return None
    return None if found is None else found.to_bytes()


def new_folder(path: Path) -> Path:
    """Return the folder to write a record into, made if missing.

    Raises
    ------
    RecordWriteError
        It cannot be made.
    """
    folder = path.absolute()
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except FileExistsError:
        return folder  # a file: for the caller, who knows what may be there
    except OSError as error:
        raise RecordWriteError(f"cannot make the folder {folder}: {error.strerror}") from error
    return folder


def is_unused(folder: Path) -> bool:
    """Return whether ``folder`` is empty, or a writer died there before its first commit."""
    return not any(folder.iterdir()) or (
        (folder / LOCK_NAME).exists() and not (folder / ROOT_KEY).exists()
    )
