"""The commit record: the root ``zarr.json`` with the metadata of every array in it.

Shapes of all arrays become visible together when this one file is replaced. It is built here from
the arrays' own metadata, not by ``zarr.consolidate_metadata``, which would read every file again.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

__all__ = ["dump", "group", "root"]


def group(attrs: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """A group's ``zarr.json``."""
    return {"zarr_format": 3, "node_type": "group", "attributes": dict(attrs or {})}


def root(attrs: Mapping[str, Any], nodes: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """The root's ``zarr.json``; ``nodes`` maps the path of every array and group to its own.

    Keys are sorted by depth, parent and name: zarr before 3.2 loses arrays, or whole groups, when
    the children of one parent are not neighbours within their depth.
    """
    consolidated = {path: dict(nodes[path]) for path in sorted(nodes, key=_place)}
    inline = {"kind": "inline", "must_understand": False, "metadata": consolidated}
    return {**group(attrs), "consolidated_metadata": inline}


def _place(path: str) -> tuple[int, str, str]:
    parent, _, name = path.rpartition("/")
    return path.count("/"), parent, name


def dump(document: Mapping[str, Any]) -> bytes:
    """A metadata document as the bytes of its file."""
    return json.dumps(document, separators=(",", ":")).encode()
