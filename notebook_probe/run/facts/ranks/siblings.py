"""Records of the other ranks of a job: in the next folders, or on the same store."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from notebook_probe.errors import ProbeError
from notebook_probe.record.read.ranks import rank_name
from notebook_probe.record.store.location import (
    ROOT_KEY,
    Location,
    RemoteStore,
    local_path,
    next_to,
)
from notebook_probe.record.store.remote import engine_of
from notebook_probe.record.store.remote.engine import Engine
from notebook_probe.record.store.writing import has_writer
from notebook_probe.uninterrupted import join

__all__ = ["FolderSiblings", "Siblings", "StoreSiblings", "siblings_of"]

LAST_S = 3.0
"""Seconds that the end of a run waits for the last answers of a store."""
N_LATE = 3
"""Shipments that may pass before a rank that moves is seen to move: its own, a look, and one more
for a slow store."""


class Siblings(Protocol):
    """Records of the other ranks."""

    @property
    def late_s(self) -> float:
        """Seconds by which a rank's state may be seen late."""

    def look(self, ranks: Sequence[int]) -> None:
        """Look at the records of these ranks; may be called at any flush, and never waits."""

    def last_look(self, ranks: Sequence[int]) -> None:
        """Look once more, as the run ends; may wait for `LAST_S`."""

    def changed(self, rank: int) -> bytes | None:
        """Return the root of a rank's record if it has changed since the last call."""

    def has_writer(self, rank: int) -> bool:
        """Return whether a process may still write a rank's record."""


def siblings_of(location: Location) -> Siblings | None:
    """Return the records next to the one at a location; None if nothing can be next to it.

    Examples
    --------
    >>> siblings_of("runs/first.zarr/rank_00000")
    FolderSiblings('runs/first.zarr')
    """
    folder = local_path(location)
    if folder is not None:
        return FolderSiblings(folder.parent)
    try:
        next_to(location, rank_name(0))
    except ProbeError:  # an object, which has no address
        return None
    return StoreSiblings(location if isinstance(location, RemoteStore) else RemoteStore(location))


class FolderSiblings:
    """Records in the folders of one folder.

    Parameters
    ----------
    folder : Path
    """

    late_s = 0.0

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._signatures: dict[int, object] = {}

    def look(self, ranks: Sequence[int]) -> None:
        """Do nothing: a folder answers at once."""

    def last_look(self, ranks: Sequence[int]) -> None:
        """Do nothing: a folder answers at once."""

    def changed(self, rank: int) -> bytes | None:
        path = self._folder / rank_name(rank) / ROOT_KEY
        try:
            status = path.stat()
            signature = status.st_mtime_ns, status.st_size
            if signature == self._signatures.get(rank):
                return None
            content = path.read_bytes()
        except OSError:  # not there yet
            return None
        self._signatures[rank] = signature
        return content

    def has_writer(self, rank: int) -> bool:
        return has_writer(self._folder / rank_name(rank))

    def __repr__(self) -> str:
        return f"FolderSiblings({self._folder.as_posix()!r})"


@dataclass(slots=True)
class _Sibling:
    """Results of the last look at one rank."""

    engine: Engine
    root: bytes | None = None
    is_new: bool = False
    has_writer: bool = True


class StoreSiblings:
    """Records below one URL, read by a thread: a store may take seconds, and a flush must not wait.

    Parameters
    ----------
    own : RemoteStore
        Store of this rank's record.
    """

    def __init__(self, own: RemoteStore) -> None:
        self._own = own
        self._every_s = engine_of(own).every_s if own.every_s is None else own.every_s
        self._siblings: dict[int, _Sibling] = {}
        self._next = 0.0
        self._thread: threading.Thread | None = None

    @property
    def late_s(self) -> float:
        return N_LATE * self._every_s

    def look(self, ranks: Sequence[int]) -> None:
        if time.monotonic() >= self._next and (self._thread is None or not self._thread.is_alive()):
            self._next = time.monotonic() + self._every_s
            self._thread = threading.Thread(
                target=self._read_all, args=(ranks,), name="ranks of a job", daemon=True
            )
            self._thread.start()

    def last_look(self, ranks: Sequence[int]) -> None:
        ends = time.monotonic() + LAST_S
        self._wait(ends)
        self._next = 0.0
        self.look(ranks)
        self._wait(ends)

    def _wait(self, until: float) -> None:
        """Wait for a look that is taken, up to a time of the monotonic clock."""
        if self._thread is not None:
            join(self._thread, until - time.monotonic())

    def changed(self, rank: int) -> bytes | None:
        found = self._siblings.get(rank)
        if found is None or not found.is_new:
            return None
        found.is_new = False
        return found.root

    def has_writer(self, rank: int) -> bool:
        found = self._siblings.get(rank)
        return found is None or found.has_writer

    def _read_all(self, ranks: Sequence[int]) -> None:
        for rank in ranks:
            try:
                self._read(rank)
            except Exception:  # whatever a store's library raises: what is not known is not said
                continue

    def _read(self, rank: int) -> None:
        if rank not in self._siblings:
            place = next_to(self._own, rank_name(rank))
            assert isinstance(place, RemoteStore)
            self._siblings[rank] = _Sibling(engine_of(place))
        found = self._siblings[rank]
        root = found.engine.read(ROOT_KEY)
        # After the root: a lease that is gone by now was given up after what was read.
        found.has_writer = _is_leased(found.engine)
        if root is not None and root != found.root:
            found.root, found.is_new = root, True

    def __repr__(self) -> str:
        return f"StoreSiblings({str(self._own)!r})"


def _is_leased(engine: Engine) -> bool:
    """Return whether a writer's lease is valid; unlike `has_writer`, raise if it is not known."""
    lease = engine.lease()
    ends = None if lease is None else json.loads(lease.content).get("ends")
    return isinstance(ends, int | float) and ends > time.time()
