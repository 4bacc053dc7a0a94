"""Requests of a view, parsed and checked."""

from __future__ import annotations

from typing import Any, TypedDict

__all__ = ["TableRequest", "asked"]

KINDS = ("hello", "look", "lines", "columns", "filter")
LONGEST = 2000
"""Characters of a condition."""
MOST = 1000
"""Rows or columns in one message."""


class TableRequest(TypedDict):
    """A question of one view; what a kind does not have is empty."""

    type: str
    view: str
    text: str
    names: list[str]
    runs: list[int]


def asked(content: Any, n_rows: int) -> TableRequest | None:
    """Parse a request; None if it is invalid.

    Examples
    --------
    >>> asked({"type": "lines", "runs": [2, 7]}, n_rows=3)["runs"]
    [2]
    >>> asked({"type": "sort"}, n_rows=3)
    """
    if not isinstance(content, dict) or content.get("type") not in KINDS:
        return None
    return {
        "type": content["type"],
        "view": str(content.get("view", "")),
        "text": str(content.get("text", ""))[:LONGEST],
        "names": [one for one in _list(content, "names") if isinstance(one, str)],
        "runs": [one for one in _list(content, "runs") if type(one) is int and 0 <= one < n_rows],
    }


def _list(content: dict[str, Any], key: str) -> list[Any]:
    found = content.get(key)
    return found[:MOST] if isinstance(found, list) else []
