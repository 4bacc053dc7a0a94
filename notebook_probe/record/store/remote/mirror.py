"""One shipment: everything that the store lacks, in an order that is safe for every reader.

The root is read first. Published rows never change, so a chunk read after it has at least the rows
of this root; newer rows do no harm. The store gets the chunks, then the metadata of the arrays as
in this root, then the root. A reader in between opens the old root, whose rows still exist.

Only removing rows breaks this, and a writer does so only when it opens a record:
`RecordMirror.begin` publishes that in the store before other rows can take their place.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeAlias

from notebook_probe.errors import RecordWriteError
from notebook_probe.record.format.chunks import is_beyond
from notebook_probe.record.store.location import ROOT_KEY
from notebook_probe.record.store.remote.engine import CommitDifference, Engine
from notebook_probe.record.store.remote.spool import Spool, Stamp, digest, stamp

__all__ = ["RecordMirror"]

SETTLED_NS = 10**9
"""A file whose time is younger may change once more without getting another: clocks are coarse."""

Node: TypeAlias = dict[str, Any]


class RecordMirror:
    """The record of a spool and its copy in a store.

    Parameters
    ----------
    keep : callable
        Renews the lease, or raises when it is lost.
    """

    def __init__(self, spool: Spool, engine: Engine, keep: Callable[[], None]) -> None:
        self._spool = spool
        self._engine = engine
        self._keep = keep
        self._root: bytes | None = engine.read(ROOT_KEY)
        self._documents: dict[str, bytes] = {}
        self.n_sent_again = 0
        """Objects that had been shipped, and were found to have gone from the store."""

    def begin(self) -> None:
        """Publish in the store what the writer has taken away, if anything, and ship the rest."""
        if self._root is not None:
            root = _without(json.loads(self._root), json.loads(self._local_root()))
            if root is not None:
                self._apply({}, _dump(root))
        self.ship()

    def ship(self) -> bool:
        """Bring the store to the newest commit; returns whether there was a new one."""
        root = self._local_root()
        if root == self._root:
            return False
        self._apply(self._published_chunks(_nodes(json.loads(root))), root)
        return True

    def finish(self) -> None:
        """Ship the rest, and list what the store has, before the spool goes, which has all.

        Raises
        ------
        RecordWriteError
            The store does not keep what is sent.
        """
        self.ship()
        gone = self._not_there()
        if not gone:
            return
        self.n_sent_again = len(gone)
        for key in gone:
            self._spool.note.sent.pop(key, None)
            self._documents.pop(key, None)
        self._root = None
        self.ship()
        if still := self._not_there():
            raise RecordWriteError(f"the store lacks {len(still)} objects, such as {still[0]}")

    def _not_there(self) -> list[str]:
        """Return the keys of the newest commit that the store does not list."""
        nodes = _nodes(json.loads(self._local_root()))
        wanted = {*self._published_chunks(nodes), *self._documents, ROOT_KEY}
        return sorted(wanted.difference(self._engine.keys()))

    def _apply(self, found: Mapping[str, Stamp], root: bytes) -> None:
        """Send the changes of one commit to the store, and note what was sent."""
        note, settled_ns = self._spool.note, time.time_ns() - SETTLED_NS
        nodes = _nodes(json.loads(root))
        documents = {f"{path}/{ROOT_KEY}": _dump(node) for path, node in nodes.items()}
        gone = [key for key in note.sent if _is_gone(key, nodes)]
        gone += [key for key in self._documents if key not in documents]

        def sent(key: str) -> None:
            if found[key][0] < settled_ns:
                note.sent[key] = found[key]

        folder = self._spool.folder
        new = {key: folder / key for key, seen in found.items() if note.sent.get(key) != seen}
        known = self._documents.items()
        changed = {key: text for key, text in documents.items() if (key, text) not in known}
        self._spool.save([digest(self._root), digest(root)])
        self._engine.apply(CommitDifference(new, changed, root, gone, sent, self._keep))
        self._root, self._documents = root, documents
        for key in gone:
            note.sent.pop(key, None)
        self._spool.save([digest(root)])

    def _published_chunks(self, nodes: Mapping[str, Node]) -> dict[str, Stamp]:
        """Return the stamps of the chunks of published rows in the spool."""
        folder = self._spool.folder
        found = {}
        for above, _, names in os.walk(folder):
            for name in names:
                key = Path(above, name).relative_to(folder).as_posix()
                if "/c/" in key and not _is_gone(key, nodes):
                    with suppress(FileNotFoundError):  # the writer is just replacing it
                        found[key] = stamp(folder / key)
        return found

    def _local_root(self) -> bytes:
        return (self._spool.folder / ROOT_KEY).read_bytes()


def _nodes(root: Node) -> Mapping[str, Node]:
    nodes: Mapping[str, Node] = root["consolidated_metadata"]["metadata"]
    return nodes


def _is_gone(key: str, nodes: Mapping[str, Node]) -> bool:
    """Return whether the chunk under ``key`` is outside every array in ``nodes``."""
    path, _, place = key.rpartition("/c/")
    node = nodes.get(path, {})
    if node.get("node_type") != "array":
        return True
    return is_beyond(place, node["chunk_grid"]["configuration"]["chunk_shape"], node["shape"])


def _without(before: Node, now: Node) -> Node | None:
    """Return the root ``before`` without what ``now`` lacks; None if it lacks nothing."""
    nodes, left = _nodes(now), {}
    for path, node in _nodes(before).items():
        if path in nodes:
            shape = nodes[path].get("shape", [])
            left[path] = {**node, "shape": list(map(min, node["shape"], shape))} if shape else node
    if left == _nodes(before):
        return None
    return {
        **before,
        "consolidated_metadata": {**before["consolidated_metadata"], "metadata": left},
    }


def _dump(document: Node) -> bytes:
    return json.dumps(document, separators=(",", ":")).encode()
