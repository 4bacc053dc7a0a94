"""Requests of a view, parsed and checked."""

from __future__ import annotations

from typing import Any, TypedDict

__all__ = ["TableRequest", "asked"]

KINDS = ("hello", "look", "lines", "columns", "filter", "mark", "groups")
FIELDS = ("name", "note", "tags")
"""Marks that a view can change."""
LONGEST = 2000
"""Characters of a condition."""
LONGEST_MARK = 10_001
"""Characters that are taken: one more than a note may have, so that a longer one is refused."""
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
    longest = LONGEST_MARK if content["type"] == "mark" else LONGEST
    message: TableRequest = {
        "type": content["type"],
        "view": str(content.get("view", "")),
        "text": str(content.get("text", ""))[:longest],
        "names": [one for one in _list(content, "names") if isinstance(one, str)],
        "runs": [one for one in _list(content, "runs") if type(one) is int and 0 <= one < n_rows],
    }
    return message if _is_whole(message) else None


def _is_whole(message: TableRequest) -> bool:
    """Return whether a mark is of one run and one field, and groups are by a column."""
    if message["type"] == "mark":
        return len(message["runs"]) == 1 and message["names"] in [[one] for one in FIELDS]
    return message["type"] != "groups" or len(message["names"]) == 1


def _list(content: dict[str, Any], key: str) -> list[Any]:
    found = content.get(key)
    return found[:MOST] if isinstance(found, list) else []
