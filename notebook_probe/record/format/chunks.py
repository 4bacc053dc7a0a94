"""Writing a record's arrays, chunk by chunk: the only place that turns rows into bytes.

The commit (`commit`) decides what is written and when it becomes visible. This module decides how
rows become chunks: `PlainChunks` writes every chunk they touch again, over any bytes under keys.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from notebook_probe.record.format.array_specs import ArraySpec
from notebook_probe.record.format.chunk_sizes import ChunkSizes
from notebook_probe.record.format.missing import NOT_MEASURED

__all__ = ["FILL", "Array", "Chunks", "Extent", "is_beyond", "spans"]

Array = npt.NDArray[Any]

FILL: dict[str, Any] = {"float32": NOT_MEASURED, "float64": np.nan, "int64": -1}
"""Value of an element that was never written, by dtype."""


@dataclass(frozen=True, slots=True)
class Extent:
    """Shape of an array, and of its chunks."""

    shape: tuple[int, ...]
    chunks: tuple[int, ...]


class Chunks(Protocol):
    """Arrays as chunks under ``<path>/c/...``; called by one thread.

    Nothing here publishes: readers see rows below the shapes of the root's metadata only. Every
    call may fail half-way with OSError and is then simply done again.
    """

    sizes: ChunkSizes
    """Chunk sizes of new arrays."""

    def write_rows(self, path: str, spec: ArraySpec, start: int, values: Array) -> None:
        """Write ``values`` as rows ``start:`` along the first axis; rows before stay.

        A block of floats in which nothing was ever measured gets no chunk: it reads as NaN anyway.
        """

    def write_whole(self, path: str, spec: ArraySpec, values: Sequence[Any]) -> None:
        """Write a whole array of one axis: text, a coordinate, a table's column."""

    def truncate(self, path: str, spec: ArraySpec, shape: tuple[int, ...]) -> None:
        """Remove everything beyond ``shape``, which is published or the whole array.

        To be called before rows are written that replace others: after the record was cut, and for
        rows that a killed writer left beyond the published ones.
        """

    def seal(self, *, tails: bool = False) -> None:
        """Give some full chunks their final form; all that was written has been published by now.

        With ``tails`` the last ones as well; these are turned back if rows follow after all.
        """

    def finish(self) -> None:
        """Give new chunks their final form from now on: few rows follow, or none."""

    def sync(self) -> None:
        """Write everything to the disk if durability requires it; then publish."""

    def close(self) -> None:
        """Close open files; safe to call twice."""


def spans(start: int, n: int, length: int) -> Iterator[tuple[int, slice, slice]]:
    """Chunk number, rows within the chunk and rows within the new values, for each chunk."""
    row = start
    # The first and the last chunk may be touched in part.
    while row < start + n:
        number, first = divmod(row, length)
        last = min(length, first + start + n - row)
        yield number, slice(first, last), slice(row - start, row - start + last - first)
        row += last - first


def is_beyond(place: str, chunks: tuple[int, ...], shape: tuple[int, ...]) -> bool:
    """Return whether the chunk at ``place``, such as ``"3/0"``, is outside ``shape``.

    Examples
    --------
    >>> [is_beyond(place, (100, 4), (200, 4)) for place in ("1/0", "2/0", "1/1")]
    [False, True, True]
    """
    numbers = place.split("/")
    if not all(map(str.isdecimal, numbers)):
        return False  # a file of another program: file managers leave theirs everywhere
    firsts = [int(n) * length for n, length in zip(numbers, chunks, strict=True)]
    return any(first >= end for first, end in zip(firsts, shape, strict=True))
