"""icechunk: a versioned store, in which every shipment is a commit that stays readable."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import suppress
from functools import cached_property
from typing import TYPE_CHECKING, Any

from zarr.abc.store import Store
from zarr.core.buffer import cpu, default_buffer_prototype
from zarr.core.sync import sync

from notebook_probe.record.store.location import ROOT_KEY
from notebook_probe.record.store.remote.engine import (
    CommitDifference,
    ConflictError,
    Leased,
    chunk_of,
)

if TYPE_CHECKING:
    from icechunk import Repository, Session, Storage

__all__ = ["IcechunkEngine"]

BRANCH = "main"
LEASE_BRANCH = "writer"
"""Branch for the lease, which is one of its attributes.

A repository accepts only zarr's keys. Moving a branch is icechunk's conditional write, and the
history of the record stays one of flushes.
"""


class IcechunkEngine:
    """The branch ``main`` of a repository, which is made with the first lease."""

    every_s = 30.0

    def __init__(self, target: Repository | Storage, name: str) -> None:
        self.name = name
        self._target = target

    @cached_property
    def _repository(self) -> Repository:
        from icechunk import Repository

        if isinstance(self._target, Repository):
            return self._target
        if not Repository.exists(self._target):
            raise FileNotFoundError(self.name)
        return Repository.open(self._target)

    def read(self, key: str) -> bytes | None:
        return _get(self.reader(), key)

    def keys(self) -> list[str]:
        return sync(_all(self.reader().list()))

    def apply(self, changes: CommitDifference) -> None:
        session = self._repository.writable_session(BRANCH)
        _set(session, ROOT_KEY, changes.root)
        for key, document in changes.documents.items():  # before the chunks: an array must be there
            _set(session, key, document)
        for key, path in changes.chunks.items():
            content = chunk_of(path)
            if content is not None:
                _set(session, key, content)
            changes.keep()
        for key in changes.gone:
            sync(session.store.delete(key))
        changes.keep()
        if session.has_uncommitted_changes:
            session.commit("flush")
        for key in changes.chunks:
            changes.sent(key)

    def lease(self) -> Leased | None:
        try:
            branches = self._repository.list_branches()
        except FileNotFoundError:
            return None
        if LEASE_BRANCH not in branches:
            return None
        return _lease_of(self._repository.readonly_session(LEASE_BRANCH))

    def swap_lease(self, content: bytes, before: Leased | None) -> Leased:
        from icechunk import ConflictError as MovedError
        from icechunk import Repository, Storage

        if isinstance(self._target, Storage) and not Repository.exists(self._target):
            Repository.create(self._target)
        if LEASE_BRANCH not in self._repository.list_branches():
            self._begin()
        session = self._repository.writable_session(LEASE_BRANCH)
        # The session is pinned to a snapshot: the commit below fails if the branch has moved since.
        if _lease_of(session) != before:
            raise ConflictError(self.name)
        _set(session, ROOT_KEY, _group({"lease": content.decode()}))
        try:
            session.commit("lease")
        except MovedError as error:
            raise ConflictError(self.name) from error
        return Leased(content, None)

    def _begin(self) -> None:
        """Make the lease's branch where history begins."""
        from icechunk import IcechunkError

        *_, first = self._repository.ancestry(branch=BRANCH)
        with suppress(IcechunkError):  # another writer has just made it
            self._repository.create_branch(LEASE_BRANCH, first.id)

    def drop_lease(self, held: Leased) -> None:
        self._repository.delete_branch(LEASE_BRANCH)

    def reader(self) -> Store:
        return self._repository.readonly_session(BRANCH).store


def _lease_of(session: Session) -> Leased | None:
    root = _get(session.store, ROOT_KEY)
    if root is None:
        return None
    return Leased(json.loads(root)["attributes"]["lease"].encode(), None)


def _group(attrs: dict[str, str]) -> bytes:
    return json.dumps({"zarr_format": 3, "node_type": "group", "attributes": attrs}).encode()


def _get(store: Store, key: str) -> bytes | None:
    found = sync(store.get(key, default_buffer_prototype()))
    return None if found is None else bytes(found.to_bytes())


def _set(session: Session, key: str, content: bytes) -> None:
    sync(session.store.set(key, cpu.Buffer.from_bytes(content)))


async def _all(keys: AsyncIterator[Any]) -> list[str]:
    return [str(key) async for key in keys]
