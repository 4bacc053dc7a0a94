"""Rows as chunks over any bytes under keys: every chunk they touch is rewritten as a whole."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from notebook_probe.record.format.array_specs import ArraySpec
from notebook_probe.record.format.chunk_sizes import SMALL
from notebook_probe.record.format.chunks import FILL, Array, is_beyond, spans
from notebook_probe.record.format.codec import decode, encode, encode_rows, encode_text
from notebook_probe.record.format.missing import measured
from notebook_probe.record.store.files import Files

__all__ = ["PlainChunks"]


class PlainChunks:
    """Chunks for stores that replace whole values only, and for systems without ``pwrite``."""

    sizes = SMALL

    def __init__(self, files: Files) -> None:
        self._files = files

    def write_rows(self, path: str, spec: ArraySpec, start: int, values: Array) -> None:
        for number, place, piece in spans(start, len(values), spec.chunks[0]):
            if values.ndim == 1:
                self._write_tile(f"{path}/c/{number}", spec, place, values[piece])
            else:
                self._write_blocks(f"{path}/c/{number}", spec, place, values[piece])

    def write_whole(self, path: str, spec: ArraySpec, values: Sequence[Any]) -> None:
        length = spec.chunks[0]
        for first in range(0, len(values), length):
            key, part = f"{path}/c/{first // length}", values[first : first + length]
            if spec.dtype == "string":
                self._files.write(key, encode_text(part, length))
            else:
                rows = np.asarray(part, spec.dtype)
                self._files.write(key, encode_rows(rows, (length,), FILL[spec.dtype]))

    def truncate(self, path: str, spec: ArraySpec, shape: tuple[int, ...]) -> None:
        """Remove whole chunks; rows above in the last one are cleared when it is next written."""
        for key in self._files.keys(f"{path}/c"):
            if is_beyond(key.removeprefix(f"{path}/c/"), spec.chunks, shape):
                self._files.delete(key)

    def seal(self, *, tails: bool = False) -> None:
        """Do nothing: a chunk is compressed whenever it is written."""

    def finish(self) -> None:
        """Do nothing: a chunk has its final form whenever it is written."""

    def sync(self) -> None:
        """Do nothing: a chunk is synced before it gets its name, if durability requires it."""

    def close(self) -> None:
        """Do nothing: no file stays open."""

    def _write_blocks(self, key: str, spec: ArraySpec, place: slice, rows: Array) -> None:
        """Write rows of one chunk number, whose columns may be in several chunks."""
        width, rest = spec.chunks[1], "/0" * (len(spec.chunks) - 2)
        for column in range(0, rows.shape[1], width):
            tile = rows[:, column : column + width]
            self._write_tile(f"{key}/{column // width}{rest}", spec, place, tile)

    def _write_tile(self, key: str, spec: ArraySpec, place: slice, tile: Array) -> None:
        chunk = self._before(key, spec, place.start)
        chunk[(place, *map(slice, tile.shape[1:]))] = tile
        if chunk.dtype != np.float32 or measured(chunk).any() or self._files.has(key):
            self._files.write(key, encode(chunk))

    def _before(self, key: str, spec: ArraySpec, row: int) -> Array:
        """Return the chunk with its rows below ``row``; rows of a killed writer are cleared."""
        frame = self._files.read(key) if row else None
        if frame is None:
            return np.full(spec.chunks, FILL[spec.dtype], spec.dtype)
        chunk = decode(frame, spec.dtype, spec.chunks)
        chunk[row:] = FILL[spec.dtype]
        return chunk
