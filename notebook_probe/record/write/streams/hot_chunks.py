"""Rows are written into the last chunk in place: appending costs what the new rows cost.

Protocol
--------
The last chunk of an array is a *stored* frame: blosc's 16 bytes of header, whose flag says that
no compression follows, then the raw values, in a sparse file that has its final size from the
start. Any reader of zarr decodes it at any time.

1. A chunk is made in a temporary file, with the header and the rows before its first one, and
   renamed to its key. If nothing was measured, it is not made: it reads as NaN.
2. Rows are written in place with ``pwrite``: as wide as the chunk, NaN beyond the axis, so that a
   column added later has NaN before it, and nothing of what a cut record once had there.
3. The root is replaced (`commit`): the rows of all arrays become visible together.
4. A full chunk is soon compressed into a temporary file and renamed to its key; when the record is
   closed the last ones are too. Rows that follow after all turn it back (1). A chunk that begins in
   the last flush is written in this form at once.

Why nothing tears
-----------------
* Shapes come from one file that is replaced atomically, and no row below them is written again.
* Under a key there is the stored or the compressed frame of the same published rows, each complete
  before it gets the name; a reader that has opened one keeps it.
* A frame has no checksum, so rows appended after the published ones do not make it invalid.
* A row's place is its number: a write that failed half-way (a short write, a full disk,
  ``kill -9``) is repeated over itself, and until then is beyond the published shape.
* Readers that use an array's own ``zarr.json`` see older shapes, never longer ones than there are
  rows for.

A stored frame differs from a compressed one by the flag in its header, never by its length: values
that cannot be compressed are stored as well, by any writer.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from notebook_probe.record.format.array_specs import ArraySpec
from notebook_probe.record.format.chunk_sizes import LARGE
from notebook_probe.record.format.chunks import FILL, Array, Chunks, is_beyond, spans
from notebook_probe.record.format.codec import (
    HEADER_BYTES,
    decode,
    encode_rows,
    is_stored,
    stored_header,
)
from notebook_probe.record.format.missing import measured
from notebook_probe.record.store.files import Files
from notebook_probe.record.write.streams.descriptors import Descriptors
from notebook_probe.record.write.streams.plain_chunks import PlainChunks

__all__ = ["HotChunks", "new_chunks"]

SEAL_PART = 16
"""All chunks of a stream are full at the same step. They are compressed a fraction at a time:
they can wait, and training should not be slowed down."""


@dataclass(slots=True)
class _Tail:
    """A chunk that is a stored frame, with the rows below ``stop``."""

    spec: ArraySpec
    stop: int

    @property
    def is_full(self) -> bool:
        return self.stop == self.spec.chunks[0]


class HotChunks:
    """Chunks in a folder of a file system that has ``pwrite``, sparse files and atomic renames."""

    sizes = LARGE

    def __init__(self, files: Files) -> None:
        self._files = files
        self._whole = PlainChunks(files)
        self._open = Descriptors(files.folder, outlives_power=files.outlives_power)
        self._tails: dict[str, _Tail] = {}
        self._full: set[str] = set()
        """Paths of tails that were full when they were written or found."""
        self._is_finishing = False

    def write_rows(self, path: str, spec: ArraySpec, start: int, values: Array) -> None:
        for number, place, piece in spans(start, len(values), spec.chunks[0]):
            for block, rows in _blocks(spec, values[piece]):
                self._write(f"{path}/c/{number}{block}", spec, place.start, rows)

    def write_whole(self, path: str, spec: ArraySpec, values: Sequence[Any]) -> None:
        self._whole.write_whole(path, spec, values)

    def truncate(self, path: str, spec: ArraySpec, shape: tuple[int, ...]) -> None:
        """Rows above in the last chunk stay until they are written over."""
        for key in self._files.keys(f"{path}/c"):
            place = key.removeprefix(f"{path}/c/")
            if is_beyond(place, spec.chunks, shape):
                self._open.drop(key)
                self._tails.pop(key, None)
                self._files.delete(key)
            elif key in self._tails or self._is_stored(key, spec):
                length = spec.chunks[0]
                stop = min(length, shape[0] - int(place.split("/")[0]) * length)
                self._tails[key] = _Tail(spec, stop)
                self._full.add(key)

    def seal(self, *, tails: bool = False) -> None:
        self._full = {key for key in self._full if key in self._tails and self._tails[key].is_full}
        # A part at a time: compressing all full chunks at once would delay the next flush.
        some = sorted(self._full)[: math.ceil(len(self._full) / SEAL_PART)]
        for key in sorted(self._tails) if tails else some:
            spec, stop = self._tails[key].spec, self._tails[key].stop
            shape, dtype = (stop, *spec.chunks[1:]), _little(spec)
            n_bytes = math.prod(shape) * dtype.itemsize
            rows = np.frombuffer(self._open.read_at(key, HEADER_BYTES, n_bytes), dtype)
            frame = encode_rows(rows.reshape(shape), spec.chunks, FILL[spec.dtype])
            self._files.write(key, frame)
            self._open.drop(key)
            del self._tails[key]

    def finish(self) -> None:
        self._is_finishing = True

    def sync(self) -> None:
        self._open.sync()

    def close(self) -> None:
        self._open.close()

    def _write(self, key: str, spec: ArraySpec, row: int, rows: Array) -> None:
        """Write rows of one chunk, from its ``row`` on."""
        if key not in self._tails:
            before = self._rows_before(key, spec, row, rows)
            if before is None:
                return
            self._open.drop(key)
            if self._is_finishing:  # a short record would write each of its chunks twice
                every = np.concatenate([before[:row], rows])
                self._files.write(key, encode_rows(every, spec.chunks, FILL[spec.dtype]))
                return
            self._make(key, spec, row, before)
        row_bytes = rows.nbytes // len(rows)
        self._open.write_at(key, HEADER_BYTES + row * row_bytes, rows.data.cast("B"))
        tail = self._tails[key]
        tail.stop = row + len(rows)
        if tail.is_full:
            self._full.add(key)
        self._files.note(key, HEADER_BYTES + tail.stop * row_bytes)

    def _rows_before(self, key: str, spec: ArraySpec, row: int, rows: Array) -> Array | None:
        """Return what a chunk has below ``row``; None if no chunk is due for ``rows``."""
        frame = self._files.read(key)
        if frame is not None:
            return _cut(decode(frame, spec.dtype, spec.chunks), row)
        # A missing chunk reads as NaN, so that none is made for a part without values.
        if rows.dtype != np.float32 or measured(rows).any():
            return np.full((row, *spec.chunks[1:]), FILL[spec.dtype], spec.dtype)
        return None

    def _make(self, key: str, spec: ArraySpec, row: int, before: Array) -> None:
        """Make the chunk a stored frame, with these rows before the one to be written."""
        header = stored_header(spec.dtype, spec.chunks)
        self._files.write_sparse(key, header + before.tobytes(), _stored_bytes(spec))
        self._tails[key] = _Tail(spec, row)

    def _is_stored(self, key: str, spec: ArraySpec) -> bool:
        if self._files.size(key) != _stored_bytes(spec):
            return False  # without opening each of a long record's files
        return is_stored(self._open.read_at(key, 0, HEADER_BYTES))


def new_chunks(files: Files) -> Chunks:
    """Return chunks for a folder: in place if the system has ``pwrite`` (not Windows)."""
    return HotChunks(files) if hasattr(os, "pwrite") else PlainChunks(files)


def _cut(chunk: Array, row: int) -> Array:
    """Return the rows below ``row``, and cleared later rows, which a reader may know."""
    fill = FILL[chunk.dtype.name]
    filled = measured(chunk) if chunk.dtype == np.float32 else chunk != fill
    rows = np.flatnonzero(filled.reshape(len(chunk), -1).any(axis=1))
    chunk[row:] = fill
    return chunk[: max([row, *(rows[-1:] + 1)])]


def _stored_bytes(spec: ArraySpec) -> int:
    return HEADER_BYTES + int(np.prod(spec.chunks)) * np.dtype(spec.dtype).itemsize


def _little(spec: ArraySpec) -> np.dtype[Any]:
    return np.dtype(spec.dtype).newbyteorder("<")


def _blocks(spec: ArraySpec, rows: Array) -> Iterator[tuple[str, Array]]:
    """Yield the neighboring chunks of ``rows``: rest of the key, and rows of full width."""
    dtype = _little(spec)
    if rows.ndim == 1:
        yield "", np.ascontiguousarray(rows, dtype)
        return
    width, rest = spec.chunks[1], "/0" * (rows.ndim - 2)
    for first in range(0, rows.shape[1], width):
        tile = rows[:, first : first + width]
        if tile.shape[1] < width:
            # zarr chunks have full width also at the edge of an array.
            tile = np.full((len(rows), *spec.chunks[1:]), FILL[spec.dtype], dtype)
            tile[:, : rows.shape[1] - first] = rows[:, first:]
        yield f"/{first // width}{rest}", np.ascontiguousarray(tile, dtype)
