"""Sizes of chunks: default, or chosen by the user."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from notebook_probe.checks import is_whole

__all__ = ["CHUNKS", "LARGE", "SMALL", "ChunkSizes", "check_sizes", "chosen_sizes", "read_sizes"]

CHUNKS = "chunks"
"""Attribute of the root: the sizes that were chosen, as JSON."""

LONGEST = {"step": 2**20, "module": 2**12}
MOST_VALUES = 2**24
"""Values of a chunk whose size was chosen: 64 MiB, which are in memory while it is compressed."""


@dataclass(frozen=True, slots=True)
class ChunkSizes:
    """Sizes of chunks; large ones are read sooner, as a series is read chunk by chunk."""

    values: int
    """Values in a chunk of a quantity."""
    index: int
    """Rows of the step axis."""
    steps: int | None = None
    """Rows in a chunk of a quantity, if chosen by the user."""
    modules: int | None = None
    """Modules in a chunk of a quantity, if chosen by the user."""

    def length(self, usual: int, row: int) -> int:
        """Rows of a chunk whose rows have ``row`` values; ``usual`` unless chosen."""
        if self.steps is None:
            return usual
        # A chosen length must not make a chunk of a wide stream exceed the memory of one chunk.
        return max(1, min(self.steps, MOST_VALUES // row))


SMALL = ChunkSizes(2**15, 2**15)
"""Sizes for places where every flush writes the last chunk of every array again."""
LARGE = ChunkSizes(2**18, 2**16)
"""Sizes for places where rows are written into the last chunk in place."""


def check_sizes(chunks: Mapping[str, int] | None) -> None:
    """Raise ValueError unless chunks can be of these sizes."""
    if chunks is None:
        return
    if not isinstance(chunks, Mapping) or not all(map(_is_size, chunks, chunks.values())):
        allowed = " and ".join(f"{dim!r} (1 to {most})" for dim, most in LONGEST.items())
        raise ValueError(
            f"chunks={chunks!r}; whole numbers by {allowed}, such as {{'step': 10_000}}"
        )
    if _n_values(chunks) > MOST_VALUES:
        raise ValueError(
            f"chunks={chunks!r} are {_n_values(chunks)} values each; at most {MOST_VALUES}"
        )


def _is_size(dim: object, size: object) -> bool:
    most = LONGEST.get(dim, 0) if isinstance(dim, str) else 0
    return is_whole(size) and 1 <= size <= most


def _n_values(chunks: Mapping[str, int]) -> int:
    return chunks.get("step", 1) * chunks.get("module", 1)


def chosen_sizes(sizes: ChunkSizes, attrs: Mapping[str, Any]) -> ChunkSizes:
    """``sizes``, but where the record's attributes tell others."""
    chosen = read_sizes(attrs)
    return replace(sizes, steps=chosen.get("step"), modules=chosen.get("module"))


def read_sizes(attrs: Mapping[str, Any]) -> dict[str, int]:
    """Return the chosen sizes in a record's attributes; empty if they are invalid.

    Examples
    --------
    >>> read_sizes({"chunks": '{"step": 1000}'}), read_sizes({"chunks": "[]"})
    ({'step': 1000}, {})
    """
    try:
        found = json.loads(attrs.get(CHUNKS, "{}"))
        check_sizes(found)
    except (TypeError, ValueError, RecursionError):
        return {}
    return dict(found or {})
