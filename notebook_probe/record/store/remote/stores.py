"""Engine for any zarr Store."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable
from pathlib import Path
from typing import TypeVar

from zarr.abc.store import Store
from zarr.core.buffer import cpu, default_buffer_prototype
from zarr.core.sync import sync

from notebook_probe.record.store.files import MAILBOX
from notebook_probe.record.store.location import ROOT_KEY
from notebook_probe.record.store.remote.engine import (
    CommitDifference,
    ConflictError,
    Leased,
    chunk_of,
)

__all__ = ["StoreEngine"]

LEASE = ".lease"

T = TypeVar("T")


class StoreEngine:
    """The keys of a zarr Store, one after the other, in the order of objects.

    A zarr Store compares nothing while it replaces: two writers that begin within the same moment
    are noticed when the one renews its lease, not when it takes it.
    """

    every_s = 15.0

    def __init__(self, store: Store, name: str) -> None:
        self.name = name
        self._store = store

    def read(self, key: str) -> bytes | None:
        found = _now(self._store.get(key, default_buffer_prototype()))
        return None if found is None else bytes(found.to_bytes())

    def keys(self) -> list[str]:
        keys = _now(_all(self._store.list()))
        return [key for key in keys if key != LEASE and not key.startswith(f"{MAILBOX}/")]

    def apply(self, changes: CommitDifference) -> None:
        for key, path in changes.chunks.items():
            content = chunk_of(path)
            if content is not None:
                self.put(key, content)
                changes.sent(key)
            changes.keep()
        for key, document in changes.documents.items():
            self.put(key, document)
        changes.keep()
        self.put(ROOT_KEY, changes.root)
        for key in changes.gone:
            _now(self._store.delete(key))

    def put_file(self, key: str, path: Path) -> None:
        """Replace the value of a key by a file."""
        self.put(key, path.read_bytes())

    def delete(self, key: str) -> None:
        """Delete a key if it exists."""
        _now(self._store.delete(key))

    def sizes(self, prefix: str) -> dict[str, int]:
        """Return the size of each key that begins with ``prefix``."""
        keys = _now(_all(self._store.list_prefix(prefix)))
        return {key: _now(self._store.getsize(key)) for key in keys}

    def put(self, key: str, content: bytes) -> None:
        """Replace the value of a key."""
        _now(self._store.set(key, cpu.Buffer.from_bytes(content)))

    def lease(self) -> Leased | None:
        found = self.read(LEASE)
        return None if found is None else Leased(found, None)

    def swap_lease(self, content: bytes, before: Leased | None) -> Leased:
        if self.lease() != before:
            raise ConflictError(self.name)
        self.put(LEASE, content)
        return Leased(content, None)

    def drop_lease(self, held: Leased) -> None:
        _now(self._store.delete(LEASE))

    def reader(self) -> Store:
        return self._store


def _now(awaitable: Awaitable[T]) -> T:
    async def wait() -> T:
        return await awaitable

    return sync(wait())


async def _all(keys: AsyncIterator[str]) -> list[str]:
    return [key async for key in keys]
