"""The commit record as readers take it: one document that names every group and array.

A record is validated here. Allowed contents of a document are checked; entries that this version
does not know are ignored, and entries that it cannot read are refused.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from zarr.abc.store import Store

from notebook_probe.errors import RecordFormatError
from notebook_probe.record.format.schema import FORMAT_VERSION
from notebook_probe.record.read.checked_store import CheckedStore
from notebook_probe.record.read.stored_array import StoredArray

__all__ = ["Manifest"]

SAFE_NAME = re.compile(r"(?!\.)[\w.%~-]{1,255}", re.ASCII)
"""Names of groups and arrays: no separators, no way up, nothing hidden."""


class Manifest:
    """Groups and arrays of one commit.

    Parameters
    ----------
    document : bytes
        The root's ``zarr.json``.
    location : str
        Location for messages.

    Raises
    ------
    RecordFormatError
        It is not a record, or a record of a newer format.
    """

    def __init__(self, document: bytes, store: Store, location: str) -> None:
        self.location = location
        # A damaged chunk raises, instead of giving wrong numbers.
        self._store = CheckedStore(store)
        root = _parsed(document, location)
        self.attrs: dict[str, Any] = root["attributes"]
        self._nodes: Mapping[str, Any] = root["consolidated_metadata"]["metadata"]
        self._children: dict[str, list[str]] = {"": []}
        self.unsafe: list[str] = []
        for path in self._nodes:
            above, _, name = path.rpartition("/")
            if all(SAFE_NAME.fullmatch(part) for part in path.split("/")):
                self._children.setdefault(above, []).append(name)
            else:
                # Such as '../x': reported, and never used as a path.
                self.unsafe.append(path)

    def place(self, path: str) -> str:
        """``path`` in messages."""
        return f"{self.location}/{path}"

    def groups(self, above: str = "") -> list[str]:
        """Names of the groups in the group at ``above``."""
        return list(self._of_type("group", above))

    def group_attrs(self, path: str) -> dict[str, Any]:
        """Return the attributes of the group at ``path``; empty if there is no such group."""
        node = self._nodes.get(path)
        attrs = node.get("attributes") if isinstance(node, dict) else None
        return dict(attrs) if isinstance(attrs, dict) else {}

    def arrays(self, above: str) -> list[str]:
        """Names of the arrays in the group at ``above``."""
        return list(self._of_type("array", above))

    def array(self, path: str) -> StoredArray:
        """Return the array at ``path``; RecordFormatError if it is missing or malformed."""
        node = self._nodes.get(path)
        if not isinstance(node, dict) or node.get("node_type") != "array":
            raise RecordFormatError(f"{self.place(path)} is missing")
        return StoredArray.parse(self._store, path, self.place(path), node)

    def _of_type(self, node_type: str, above: str) -> Iterator[str]:
        for name in self._children.get(above, ()):
            node = self._nodes[f"{above}/{name}" if above else name]
            if isinstance(node, dict) and node.get("node_type") == node_type:
                yield name


def _parsed(document: bytes, location: str) -> dict[str, Any]:
    """Return the root document, in the form of the newest format."""
    try:
        root = json.loads(document)
    except (ValueError, RecursionError) as error:
        raise RecordFormatError(f"{location} is not a record: zarr.json: {error}") from error
    attrs = root.get("attributes") if isinstance(root, dict) else None
    version = attrs.get("format_version") if isinstance(attrs, dict) else None
    if not isinstance(version, int) or version < 1:
        raise RecordFormatError(f"{location} is not a record: it has no format_version")
    if version > FORMAT_VERSION:
        raise RecordFormatError(
            f"record of format {version}; this version reads up to {FORMAT_VERSION}: {location}"
        )
    # A document of an older format is brought to the newest one here: nothing after it asks.
    consolidated = root.get("consolidated_metadata")
    if not isinstance(consolidated, dict) or not isinstance(consolidated.get("metadata"), dict):
        raise RecordFormatError(f"{location} is not a record: it has no consolidated metadata")
    return dict(root)
