"""The last arrangement of a table, in a small file: columns, order, filter and picture."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

__all__ = ["FILE_NAME", "KeptTable"]

FILE_NAME = "runs_table.json"
MOST_BYTES = 1 << 20
KINDS = {
    "columns": (list, type(None)),
    "sorted": (dict,),
    "filter": (str,),
    "picture": (dict,),
}
"""Fields of an arrangement and their types."""
FIELDS: Mapping[str, Mapping[str, type]] = {
    "sorted": {"name": str, "down": bool},
    "picture": dict.fromkeys(("kind", "x", "y", "colour", "by"), str),
}
"""Fields of these fields."""


class KeptTable:
    """File of the arrangement; a damaged or foreign one counts as empty.

    Parameters
    ----------
    folder : path or None
        Folder of the file; with None nothing is kept.

    Examples
    --------
    >>> kept = KeptTable(Path(tempfile.mkdtemp()))
    >>> kept.write({"columns": ["lr"], "filter": "lr > 1"})
    >>> kept.read()
    {'columns': ['lr'], 'filter': 'lr > 1'}
    """

    def __init__(self, folder: Path | None) -> None:
        self._path = None if folder is None else folder / FILE_NAME

    def read(self) -> dict[str, Any]:
        """Return the arrangement; empty if there is none."""
        if self._path is None:
            return {}
        try:
            with self._path.open("rb") as file:
                found = json.loads(file.read(MOST_BYTES))
        except (OSError, ValueError, RecursionError):
            return {}
        return checked(found)

    def write(self, arrangement: Mapping[str, Any]) -> None:
        """Replace the file; nothing happens where it cannot be written."""
        if self._path is None:
            return
        text = json.dumps(checked(arrangement), indent=2)
        partial = None
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            fd, partial = tempfile.mkstemp(prefix=".runs_table.", dir=self._path.parent)
            with os.fdopen(fd, "w", encoding="utf-8") as file:
                file.write(text)
            Path(partial).replace(self._path)
        except OSError:
            # A read-only folder: the table is arranged as usual next time.
            if partial is not None:
                Path(partial).unlink(missing_ok=True)


def checked(arrangement: object) -> dict[str, Any]:
    """Return the fields of an arrangement that a view can read.

    Examples
    --------
    >>> checked({"columns": ["lr", 3], "filter": 4, "more": 1})
    {'columns': ['lr']}
    """
    if not isinstance(arrangement, Mapping):
        return {}
    found = {
        name: arrangement[name]
        for name, kinds in KINDS.items()
        if name in arrangement and isinstance(arrangement[name], kinds)
    }
    if found.get("columns"):
        found["columns"] = [one for one in found["columns"] if isinstance(one, str)]
    for name, fields in FIELDS.items():
        if name in found:
            found[name] = _fields(found[name], fields)
    return found


def _fields(given: Mapping[str, Any], fields: Mapping[str, type]) -> dict[str, Any]:
    return {one: given[one] for one, kind in fields.items() if isinstance(given.get(one), kind)}
