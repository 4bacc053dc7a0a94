"""Rows of one stream as chunk files: every chunk they touch is written anew, as a whole."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from notebook_probe.record.codec import decode, encode, encode_text
from notebook_probe.record.files import Files
from notebook_probe.record.missing import NOT_MEASURED, measured
from notebook_probe.record.schema import ArraySpec

__all__ = ["write_coordinate", "write_index", "write_text", "write_values"]


def write_index(
    files: Files, path: str, spec: ArraySpec, start: int, values: npt.NDArray[np.int64]
) -> None:
    """Write ``values`` as rows ``start:`` of an int64 array; rows before stay."""
    for number, place, piece in _spans(start, len(values), spec.chunks[0]):
        key = f"{path}/c/{number}"
        chunk = _before(files, key, spec, place.start, -1)
        chunk[place] = values[piece]
        files.write(key, encode(chunk))


def write_values(
    files: Files, path: str, spec: ArraySpec, start: int, values: npt.NDArray[np.float32]
) -> None:
    """Write ``values`` (row, module, ...) as rows ``start:`` of a quantity; rows before stay.

    A block in which nothing was measured gets no file: it reads as NaN anyway.
    """
    width, rest = spec.chunks[1], "/0" * (len(spec.chunks) - 2)
    for number, place, piece in _spans(start, len(values), spec.chunks[0]):
        for column in range(0, values.shape[1], width):
            key = f"{path}/c/{number}/{column // width}{rest}"
            tile = values[piece, column : column + width]
            chunk = _before(files, key, spec, place.start, NOT_MEASURED)
            chunk[place, : tile.shape[1]] = tile
            if measured(chunk).any() or files.has(key):
                files.write(key, encode(chunk))


def write_coordinate(files: Files, path: str, values: Sequence[float]) -> None:
    """Write a whole coordinate, in its one chunk."""
    files.write(f"{path}/c/0", encode(np.array(values, np.float64)))


def write_text(files: Files, path: str, spec: ArraySpec, texts: Sequence[str]) -> None:
    """Write a whole column of text."""
    length = spec.chunks[0]
    for first in range(0, len(texts), length):
        files.write(
            f"{path}/c/{first // length}", encode_text(texts[first : first + length], length)
        )


def _before(files: Files, key: str, spec: ArraySpec, row: int, fill: Any) -> npt.NDArray[Any]:
    """The chunk with its rows below ``row``; what a killed writer left above is cleared."""
    frame = files.read(key) if row else None
    if frame is None:
        return np.full(spec.chunks, fill, spec.dtype)
    chunk = decode(frame, spec.dtype, spec.chunks)
    chunk[row:] = fill
    return chunk


def _spans(start: int, n: int, length: int) -> Iterator[tuple[int, slice, slice]]:
    """Chunk number, rows within the chunk and rows within the new values, for each chunk."""
    row = start
    while row < start + n:
        number, first = divmod(row, length)
        last = min(length, first + start + n - row)
        yield number, slice(first, last), slice(row - start, row - start + last - first)
        row += last - first
