"""Object stores through obstore: S3, Google, Azure, memory, a directory."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from zarr.abc.store import Store

from notebook_probe.record.store.files import MAILBOX
from notebook_probe.record.store.location import ROOT_KEY
from notebook_probe.record.store.remote.engine import (
    CommitDifference,
    ConflictError,
    Leased,
    chunk_of,
)
from notebook_probe.record.store.remote.reached import ReachedStore

if TYPE_CHECKING:
    from obstore.store import ObjectStore

__all__ = ["ObjectEngine"]

LEASE = ".lease"
AT_ONCE = 8
"""Requests at a time, which bounds the memory too: each holds one chunk."""

T = TypeVar("T")


class ObjectEngine:
    """The objects of an obstore store, which begins at the record's own prefix.

    Every object is replaced as a whole. Chunks go first and the root last, so that a reader who
    opens the record finds everything that its root refers to; unreferenced objects are removed
    after that.
    """

    every_s = 15.0

    def __init__(self, store: ObjectStore, name: str) -> None:
        self.name = name
        self._store = store

    def read(self, key: str) -> bytes | None:
        import obstore

        try:
            return bytes(obstore.get(self._store, key).bytes())
        except FileNotFoundError:
            return None

    def keys(self) -> list[str]:
        import obstore

        keys = (entry["path"] for page in obstore.list(self._store) for entry in page)
        return [key for key in keys if key != LEASE and not key.startswith(f"{MAILBOX}/")]

    def top(self) -> dict[str, str]:
        import obstore

        listed = obstore.list_with_delimiter(self._store)
        objects = {one["path"]: _tag(one) for one in listed["objects"] if one["path"] != LEASE}
        prefixes = {name.rstrip("/") for name in listed["common_prefixes"]} - {MAILBOX}
        return {**objects, **{f"{name}/": "" for name in prefixes}}

    def apply(self, changes: CommitDifference) -> None:
        asyncio.run(self._apply(changes))

    async def _apply(self, changes: CommitDifference) -> None:
        async def send(item: tuple[str, Path]) -> None:
            key, path = item
            content = chunk_of(path)
            if content is not None:
                await self._put(key, content)
                changes.sent(key)
            changes.keep()

        await _each(send, changes.chunks.items())
        await _each(lambda item: self._put(*item), changes.documents.items())
        changes.keep()
        await self._put(ROOT_KEY, changes.root)
        await _each(self._delete, changes.gone)

    async def _put(self, key: str, content: bytes) -> None:
        import obstore

        await obstore.put_async(self._store, key, content)

    def put(self, key: str, content: bytes) -> None:
        """Replace one object."""
        import obstore

        obstore.put(self._store, key, content)

    def sizes(self, prefix: str) -> dict[str, int]:
        """Return the size of each object whose key begins with ``prefix``."""
        import obstore

        pages = obstore.list(self._store, prefix)
        return {entry["path"]: entry["size"] for page in pages for entry in page}

    def put_file(self, key: str, path: Path) -> None:
        """Replace one object by a file, in parts if it is large."""
        import obstore

        obstore.put(self._store, key, path)

    def delete(self, key: str) -> None:
        """Remove one object, which may be gone already."""
        import obstore

        with suppress(FileNotFoundError):
            obstore.delete(self._store, key)

    async def _delete(self, key: str) -> None:
        import obstore

        await obstore.delete_async(self._store, key)

    def lease(self) -> Leased | None:
        import obstore

        try:
            found = obstore.get(self._store, LEASE)
        except FileNotFoundError:
            return None
        return Leased(bytes(found.bytes()), _version(found.meta))

    def swap_lease(self, content: bytes, before: Leased | None) -> Leased:
        from obstore.exceptions import AlreadyExistsError, NotSupportedError, PreconditionError

        try:
            # Conditional on the version that was read, so that the store decides between two
            # writers.
            return self._put_lease(content, "create" if before is None else before.version)
        except (AlreadyExistsError, PreconditionError) as error:
            raise ConflictError(self.name) from error
        except (NotImplementedError, NotSupportedError):  # a directory: can create, not compare
            if self.lease() != before:
                raise ConflictError(self.name) from None
            return self._put_lease(content, "overwrite")

    def _put_lease(self, content: bytes, mode: Any) -> Leased:
        import obstore

        key = LEASE
        put = obstore.put(self._store, key, content, mode=mode, use_multipart=False)
        return Leased(content, _version(put))

    def drop_lease(self, held: Leased) -> None:
        import obstore

        obstore.delete(self._store, LEASE)

    def reader(self) -> Store:
        return ReachedStore(self._store, self.name)


def _tag(found: Any) -> str:
    return f"{found['e_tag']}.{found['size']}.{found['last_modified']}"


def _version(found: Any) -> dict[str, str]:
    """Return the part of a response that a conditional request compares."""
    return {name: found[name] for name in ("e_tag", "version") if found[name]}


async def _each(action: Callable[[T], Awaitable[None]], items: Iterable[T]) -> None:
    """Run an action on every item, `AT_ONCE` at a time; the first error ends it."""
    waiting = iter(items)

    async def work() -> None:
        for item in waiting:  # one iterator for all workers
            await action(item)

    async with asyncio.TaskGroup() as workers:
        for _ in range(AT_ONCE):
            workers.create_task(work())
