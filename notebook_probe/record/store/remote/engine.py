"""Interface of a store that is not a local folder."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from zarr.abc.store import Store

from notebook_probe.record.format.codec import packed
from notebook_probe.record.store.location import ROOT_KEY

__all__ = [
    "CommitDifference",
    "ConflictError",
    "Engine",
    "Leased",
    "Listing",
    "SingleObjects",
    "chunk_of",
    "top_of",
]


class ConflictError(Exception):
    """Another process has replaced the content in between."""


@dataclass(frozen=True, slots=True)
class CommitDifference:
    """Difference between two commits of the writer, to apply to a store.

    Attributes
    ----------
    chunks : mapping of str to Path
        Files to copy, by key.
    documents : mapping of str to bytes
        Metadata of arrays and groups below the root.
    root : bytes
        The root's metadata, which makes all the rest visible.
    gone : sequence of str
        Keys that nothing refers to once the root is there.
    sent : callable
        Called with each chunk that will not be needed again.
    keep : callable
        To be called now and then: it renews the lease, and raises when that is lost.
    """

    chunks: Mapping[str, Path]
    documents: Mapping[str, bytes]
    root: bytes
    gone: Sequence[str] = ()
    sent: Callable[[str], None] = lambda key: None
    keep: Callable[[], None] = lambda: None


@dataclass(frozen=True, slots=True)
class Leased:
    """Lease in a store; ``version`` identifies it."""

    content: bytes
    version: Any


@runtime_checkable
class Engine(Protocol):
    """One kind of store, for the writer of one record. May raise any error."""

    name: str
    every_s: float
    """Seconds between two shipments, unless the user says otherwise."""

    def read(self, key: str) -> bytes | None:
        """Return the bytes under ``key``, or None."""

    def keys(self) -> list[str]:
        """Every key of the record."""

    def apply(self, changes: CommitDifference) -> None:
        """Make ``changes`` so that a reader sees the store before or after them, at any moment.

        Called by the shipper's thread. If it fails half-way, it is called again.
        """

    def lease(self) -> Leased | None:
        """Return the lease in the store, or None."""

    def swap_lease(self, content: bytes, before: Leased | None) -> Leased:
        """Put a lease in the place of ``before``, or raise ConflictError when another is there."""

    def drop_lease(self, held: Leased) -> None:
        """Remove our lease."""

    def reader(self) -> Store:
        """Return a store for zarr with the newest commit."""


@runtime_checkable
class Listing(Protocol):
    """An engine that can list the top of its store in one request."""

    def top(self) -> dict[str, str]:
        """Return a version of each object by name; prefixes end in ``/``."""


@runtime_checkable
class SingleObjects(Engine, Protocol):
    """An engine that also has single objects: marks, letters of a mailbox, checkpoints."""

    def put(self, key: str, content: bytes) -> None:
        """Replace one object."""

    def put_file(self, key: str, path: Path) -> None:
        """Replace one object by the content of a file, which may be large."""

    def delete(self, key: str) -> None:
        """Remove one object, which may be gone already."""

    def sizes(self, prefix: str) -> dict[str, int]:
        """Return the size of each object whose key begins with ``prefix``."""


def top_of(engine: Engine) -> dict[str, str]:
    """Return `Listing.top` of any engine; others read only the root's bytes."""
    if isinstance(engine, Listing):
        return engine.top()
    found: dict[str, str] = {}
    for name, slash, _ in (key.partition("/") for key in [*engine.keys()]):
        found[name + slash] = ""
    root = engine.read(ROOT_KEY) if ROOT_KEY in found else None
    return {**found, ROOT_KEY: hashlib.sha256(root).hexdigest()} if root else found


def chunk_of(path: Path) -> bytes | None:
    """Return the bytes of a chunk to ship, always compressed; None if the file is missing."""
    try:
        return packed(path.read_bytes())
    except FileNotFoundError:
        return None
