"""Chunks of a record on a local disk, read on the calling thread.

zarr passes each file to an event loop and each chunk to a pool of threads, on which an array of a
few hundred bytes takes half a millisecond. To open a record takes a dozen of those. All that is out
of the ordinary is left to zarr: another store or codec, many chunks, damage.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
import numpy.typing as npt
from zarr.storage import StorePath

from notebook_probe.record.format.codec import decoded_rows, decoded_text
from notebook_probe.record.read.checked_store import CheckedStore
from notebook_probe.record.store.plain_files import MOST_BYTES, PlainFiles

__all__ = ["DirectReader"]

MOST_CHUNKS = 16
"""More are decoded by zarr, on several threads at once."""
MOST_CELLS = 2**22
"""Values that are read at once: of more, zarr's overhead is no matter."""
TEXT = "string"
NUMBERS = frozenset({"float32", "float64", "int64"})
"""Data types of the format, but for text."""
PLAIN = {
    "zarr_format": 3,
    "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}},
    "storage_transformers": [],
}
"""Metadata of every array of the format."""
SPECIAL = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}
"""Numbers that JSON cannot write."""


@dataclass(frozen=True, slots=True)
class DirectReader:
    """Reader of one array in a folder of plain files.

    Attributes
    ----------
    files : PlainFiles
    path : str
        Path of the array in the record.
    dtype : str
        Data type in the metadata; ``"string"`` for text.
    fill : float or str
        Value of a missing chunk.
    """

    files: PlainFiles
    path: str
    shape: tuple[int, ...]
    chunks: tuple[int, ...]
    dtype: str
    fill: float | str

    @classmethod
    def of(
        cls,
        at: StorePath,
        shape: tuple[int, ...],
        chunks: tuple[int, ...],
        document: Mapping[str, Any],
    ) -> DirectReader | None:
        """Return a reader of an ordinary array in a local folder; None for any other."""
        files = at.store._store if isinstance(at.store, CheckedStore) else at.store
        dtype, fill = str(document.get("data_type")), _fill(document.get("fill_value"))
        is_plain = all(document.get(name) == value for name, value in PLAIN.items())
        if not (isinstance(files, PlainFiles) and is_plain and shape and all(chunks)):
            return None
        if not _are_ordinary(document.get("codecs"), dtype) or isinstance(fill, str) != (
            dtype == TEXT
        ):
            return None
        return None if fill is None else cls(files, at.path, shape, chunks, dtype, fill)

    def read(self, key: Any) -> npt.NDArray[Any] | None:
        """Return the values at slices or integers, as in numpy; None to leave it to zarr.

        Raises
        ------
        Exception
            For damaged chunks, which zarr finds as well.
        """
        wanted = _ranges(key, self.shape)
        if wanted is None or math.prod(map(len, wanted)) > MOST_CELLS:
            return None
        touched = [_touched(one, length) for one, length in zip(wanted, self.chunks, strict=True)]
        if math.prod(map(len, touched)) > MOST_CHUNKS:
            return None
        out = np.empty([len(one) for one in wanted], _native(self.dtype))
        for place in product(*touched):
            there, here = zip(*map(_overlap, place, self.chunks, wanted), strict=True)
            chunk = self._chunk(place, here[0].stop)
            out[there] = self.fill if chunk is None else chunk[here]
        kept = (0 if isinstance(one, int) else slice(None) for one in _keys(key))
        return out[(*kept, ...)]  # with an ellipsis the result is an array, never a string

    def _chunk(self, place: tuple[int, ...], n_rows: int) -> npt.NDArray[Any] | None:
        """Return a chunk's first rows, and maybe others; None if it is missing."""
        frame = self.files.bytes_of(f"{self.path}/c/{'/'.join(map(str, place))}")
        if frame is None:
            return None
        if self.dtype == TEXT:
            return decoded_text(frame, self.chunks, MOST_BYTES)
        return decoded_rows(frame, self.dtype, self.chunks, n_rows, MOST_BYTES)


def _native(dtype: str) -> np.dtype[Any]:
    """Return the type in memory, as zarr has it."""
    return np.dtypes.StringDType() if dtype == TEXT else np.dtype(dtype)


def _fill(value: object) -> float | str | None:
    """Return the fill value in the metadata; None for one that no array of the format has."""
    if isinstance(value, str):
        return SPECIAL.get(value, "" if value == "" else None)
    if isinstance(value, int | float) and not isinstance(value, bool):
        return value
    return None


def _are_ordinary(codecs: object, dtype: str) -> bool:
    """Return whether values are written as the format does: in little endian, by blosc."""
    if not (isinstance(codecs, list) and all(isinstance(one, dict) for one in codecs)):
        return False
    names = [one.get("name") for one in codecs]
    if dtype == TEXT:
        return names == ["vlen-utf8", "blosc"]
    is_little = codecs[:1] == [{"name": "bytes", "configuration": {"endian": "little"}}]
    return dtype in NUMBERS and is_little and names == ["bytes", "blosc"]


def _keys(key: Any) -> tuple[Any, ...]:
    return key if isinstance(key, tuple) else (key,)


def _ranges(key: Any, shape: tuple[int, ...]) -> list[range] | None:
    """Return the selected range of each axis; None for keys but slices and integers."""
    keys = _keys(key)
    if len(keys) > len(shape):
        return None
    found = list[range]()
    for one, length in zip((*keys, *[slice(None)] * len(shape)), shape, strict=False):
        if isinstance(one, slice) and one.step in (None, 1):
            found.append(range(length)[one])
        elif type(one) is int and 0 <= one < length:
            found.append(range(one, one + 1))
        else:
            return None
    return found


def _touched(wanted: range, length: int) -> range:
    """Return the numbers of the chunks of this length that have a part of a range."""
    return range(wanted.start // length, -(-wanted.stop // length)) if wanted else range(0)


def _overlap(number: int, length: int, wanted: range) -> tuple[slice, slice]:
    """Return what a chunk has of a range: its place in the result, and in the chunk."""
    first = number * length
    start, stop = max(wanted.start, first), min(wanted.stop, first + length)
    return (
        slice(start - wanted.start, stop - wanted.start),
        slice(start - first, stop - first),
    )
