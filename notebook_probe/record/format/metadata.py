"""The commit record: the root ``zarr.json`` with the metadata of every array in it.

Shapes of all arrays become visible together when this one file is replaced. It is built here from
the arrays' own metadata, not by ``zarr.consolidate_metadata``, which would read every file again;
and from JSON texts that are made once, because only shapes change from commit to commit.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from notebook_probe.record.format.array_specs import ArraySpec

__all__ = ["Nodes", "root_text"]

NO_SHAPE = '"shape":[]'


class Nodes:
    """Every group and array below the root, each as the text of its ``zarr.json``."""

    def __init__(self) -> None:
        self.texts: dict[str, str] = {}
        """By path."""
        self._around: dict[str, tuple[str, str]] = {}
        self._order: list[str] = []

    def group(self, path: str, attrs: Mapping[str, Any] | None = None) -> None:
        """Put a group."""
        self.texts[path] = _dump(_group(attrs or {}))

    def array(self, path: str, spec: ArraySpec, shape: tuple[int, ...]) -> None:
        """Put an array, or the new shape of one whose ``spec`` is as before."""
        if path not in self._around:
            # Everything but the shape is dumped once: at a commit only shapes change.
            head, tail = _dump(spec.metadata(())).split(NO_SHAPE, 1)
            self._around[path] = f'{head}"shape":[', f"]{tail}"
        head, tail = self._around[path]
        self.texts[path] = f"{head}{','.join(map(str, shape))}{tail}"

    def drop(self, path: str) -> None:
        """Remove a group and its contents."""
        # With a slash, or `every_1` would take `every_10` with it.
        for key in [key for key in self.texts if f"{key}/".startswith(f"{path}/")]:
            del self.texts[key]
            self._around.pop(key, None)

    def inline(self) -> str:
        """Return the metadata of all nodes, as in the root.

        Keys are sorted by depth, parent and name: zarr before 3.2 loses arrays, or whole groups, if
        the children of one parent are not adjacent within their depth.
        """
        # Sorting thousands of paths at each flush would cost more than writing them.
        if len(self._order) != len(self.texts) or not self.texts.keys() >= set(self._order):
            self._order = sorted(self.texts, key=_place)
        entries = ",".join([f'"{path}":{self.texts[path]}' for path in self._order])
        return '{"kind":"inline","must_understand":false,"metadata":{' + entries + "}}"


def root_text(attrs: Mapping[str, Any], inline: str) -> str:
    """Return the root's ``zarr.json``; ``inline`` is from `Nodes`."""
    return f'{_dump(_group(attrs))[:-1]},"consolidated_metadata":{inline}}}'


def _group(attrs: Mapping[str, Any]) -> dict[str, Any]:
    return {"zarr_format": 3, "node_type": "group", "attributes": dict(attrs)}


def _place(path: str) -> tuple[int, str, str]:
    parent, _, name = path.rpartition("/")
    return path.count("/"), parent, name


_dump = json.JSONEncoder(separators=(",", ":")).encode
