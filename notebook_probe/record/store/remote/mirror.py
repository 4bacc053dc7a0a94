"""One shipment: what the store does not hold yet, in an order that is safe for every reader.

The root is read first. Published rows never change, so whatever chunk is read after it has at least
the rows that this root speaks of; rows that have come since do no harm. The store gets the chunks,
then the arrays' own metadata as they stand in this root, then the root. A reader who comes in
between opens the old root, whose rows are still there.

Only taking rows away breaks this, and a writer does so when it opens a record and never later:
`Mirror.begin` publishes that in the store before other rows can come in their place.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeAlias

from notebook_probe.record.format.chunks import is_beyond
from notebook_probe.record.store.location import ROOT_KEY
from notebook_probe.record.store.remote.engine import Changes, Engine
from notebook_probe.record.store.remote.spool import Spool, Stamp, digest, stamp

__all__ = ["Mirror"]

SETTLED_NS = 10**9
"""A file whose time is younger may change once more without getting another: clocks are coarse."""

Node: TypeAlias = dict[str, Any]


class Mirror:
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

    def _apply(self, found: Mapping[str, Stamp], root: bytes) -> None:
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
        self._engine.apply(Changes(new, changed, root, gone, sent, self._keep))
        self._root, self._documents = root, documents
        for key in gone:
            note.sent.pop(key, None)
        self._spool.save([digest(root)])

    def _published_chunks(self, nodes: Mapping[str, Node]) -> dict[str, Stamp]:
        """The chunks of published rows that lie in the spool, as they are now."""
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
    """Whether nothing of what ``nodes`` speak of lies in the chunk under ``key``."""
    path, _, place = key.rpartition("/c/")
    node = nodes.get(path, {})
    if node.get("node_type") != "array":
        return True
    return is_beyond(place, node["chunk_grid"]["configuration"]["chunk_shape"], node["shape"])


def _without(before: Node, now: Node) -> Node | None:
    """The root ``before`` without what is no longer there ``now``; None when all of it is."""
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
