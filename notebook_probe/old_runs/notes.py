"""Settings and words of other tools, made plain and short enough for a record."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any

__all__ = ["fitting", "plain"]

MOST_BYTES = 90_000
"""Size of the notes of one kind, below what a record takes."""
LONGEST_TEXT = 10_000
MOST_ENTRIES = 1000
DEEPEST = 16


def plain(value: Any, depth: int = 0) -> Any:
    """Return a value with text as keys, finite numbers, and no deep nesting.

    Examples
    --------
    >>> plain({"lr": 0.1, 3: [float("nan"), b"x"]})
    {'lr': 0.1, '3': ['nan', "b'x'"]}
    """
    if value is None or isinstance(value, bool | int):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if isinstance(value, Mapping) and depth < DEEPEST:
        some = [*value.items()][:MOST_ENTRIES]
        return {str(key)[:LONGEST_TEXT]: plain(one, depth + 1) for key, one in some}
    if isinstance(value, list | tuple) and depth < DEEPEST:
        return [plain(one, depth + 1) for one in value[:MOST_ENTRIES]]
    return _sound(str(value)[:LONGEST_TEXT])


def fitting(notes: Mapping[str, Any]) -> dict[str, Any]:
    """Return the notes without the entries for which there is no room."""
    kept, n_bytes = {}, 0
    for key, value in notes.items():
        size = len(json.dumps({key: value}, ensure_ascii=False).encode(errors="replace"))
        if n_bytes + size <= MOST_BYTES:
            kept[_sound(key)], n_bytes = value, n_bytes + size
    return kept


def _sound(text: str) -> str:
    """Return text without surrogates, which cannot be encoded."""
    return text.encode(errors="replace").decode()
