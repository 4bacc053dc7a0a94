"""What a store that is not a folder of this machine must be able to do."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from zarr.abc.store import Store

from notebook_probe.record.format.codec import packed
from notebook_probe.record.store.location import ROOT_KEY

__all__ = ["Changes", "ConflictError", "Engine", "Leased", "Listing", "chunk_of", "top_of"]


class ConflictError(Exception):
    """Somebody else has replaced what was to be replaced."""


@dataclass(frozen=True, slots=True)
class Changes:
    """What leads a store from one commit of the writer to a later one.

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
        To be told of each chunk that will not be needed again.
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
    """The lease as it lies in a store; ``version`` tells it from any other."""

    content: bytes
    version: Any


@runtime_checkable
class Engine(Protocol):
    """One kind of store, as the writer of one record sees it. Errors are whatever it raises."""

    name: str
    every_s: float
    """Seconds between two shipments, unless the user says otherwise."""

    def read(self, key: str) -> bytes | None:
        """The bytes under ``key``, or None."""

    def keys(self) -> list[str]:
        """Every key of the record."""

    def apply(self, changes: Changes) -> None:
        """Make ``changes`` so that a reader sees the store before or after them, at any moment.

        Called by the shipper's thread. When it fails half-way it is called again.
        """

    def lease(self) -> Leased | None:
        """The lease that lies there, or None."""

    def swap_lease(self, content: bytes, before: Leased | None) -> Leased:
        """Put a lease in the place of ``before``, or raise ConflictError when another is there."""

    def drop_lease(self, held: Leased) -> None:
        """Remove the lease that is held."""

    def reader(self) -> Store:
        """What zarr reads from: the newest commit, when it is asked."""


@runtime_checkable
class Listing(Protocol):
    """An engine that tells at once what lies at the top of its store."""

    def top(self) -> dict[str, str]:
        """What tells each object from what was there before, by name; prefixes end in ``/``."""


def top_of(engine: Engine) -> dict[str, str]:
    """As `Listing.top`, of any; what is read of others is no more than the root's own bytes."""
    if isinstance(engine, Listing):
        return engine.top()
    found: dict[str, str] = {}
    for name, slash, _ in (key.partition("/") for key in [*engine.keys()]):
        found[name + slash] = ""
    root = engine.read(ROOT_KEY) if ROOT_KEY in found else None
    return {**found, ROOT_KEY: hashlib.sha256(root).hexdigest()} if root else found


def chunk_of(path: Path) -> bytes | None:
    """The bytes of a chunk to ship, compressed when they are not; None when the file has gone."""
    try:
        return packed(path.read_bytes())
    except FileNotFoundError:
        return None
