"""One array of a record as it lies in the store; whatever is wrong with it is one clear error."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import islice
from typing import Any

import numpy as np
import numpy.typing as npt
import zarr
from zarr.abc.store import Store
from zarr.codecs import BloscCodec
from zarr.core.metadata import ArrayV3Metadata
from zarr.core.sync import sync
from zarr.storage import StorePath

from notebook_probe.errors import RecordFormatError
from notebook_probe.record.read.checked_blosc import CheckedBlosc

__all__ = ["StoredArray"]

CHUNK = re.compile(r"/c/(\d{1,9}(?:/\d{1,9})*)")
MOST_TRIED = 1024
"""Chunks that are looked at to find the damaged one."""


@dataclass(frozen=True)
class StoredArray:
    """An array described by the commit record; its chunks are read where it is indexed."""

    place: str
    """Where it is, for messages: ``runs/first.zarr/scalars/every_1/step``."""
    shape: tuple[int, ...]
    chunks: tuple[int, ...]
    dims: tuple[str, ...]
    dtype: str
    attrs: Mapping[str, Any]
    _document: Mapping[str, Any] = field(repr=False)
    _at: StorePath = field(repr=False)

    @property
    def name(self) -> str:
        return self.place.rpartition("/")[2]

    @classmethod
    def parse(cls, store: Store, path: str, place: str, document: Mapping[str, Any]) -> StoredArray:
        """Take the array's metadata.

        Raises
        ------
        RecordFormatError
            When they are not those of a regular zarr array with named dimensions.
        """
        try:
            shape = tuple(document["shape"])
            chunks = tuple(document["chunk_grid"]["configuration"]["chunk_shape"])
            dims = tuple(document["dimension_names"])
            attrs = dict(document.get("attributes", {}))
        except (KeyError, TypeError, ValueError) as error:
            raise RecordFormatError(f"{place} has incomplete metadata: {error!r}") from error
        regular = len(shape) == len(chunks) == len(dims)
        if not (regular and all(map(_is_size, shape)) and all(map(_is_size, chunks))):
            raise RecordFormatError(
                f"{place} has shape {shape}, chunks {chunks} and dimensions {dims}; sizes, as many "
                f"of each, are needed"
            )
        at = StorePath(store, path)
        dtype = str(document.get("data_type"))
        return cls(place, shape, chunks, dims, dtype, attrs, document, at)

    def expect(self, dtype: str, dims: tuple[str, ...], shape: tuple[int | None, ...]) -> None:
        """Check what is needed of it; None is any length.

        Raises
        ------
        RecordFormatError
            For an array that is another.
        """
        lengths = zip(self.shape, shape, strict=False)
        same = all(wanted is None or length == wanted for length, wanted in lengths)
        if (self.dtype, self.dims, same) != (dtype, dims, True):
            wanted = ", ".join(
                name if length is None else f"{name}: {length}"
                for name, length in zip(dims, shape, strict=True)
            )
            raise RecordFormatError(
                f"{self.place} is {self.dtype} of shape {self.shape} along {self.dims}; "
                f"{dtype} along ({wanted}) is needed"
            )

    def __getitem__(self, key: Any) -> npt.NDArray[Any]:
        """The values at slices or integers, as in numpy."""
        return self._read(lambda array: array[key])

    def outer(self, *key: Any) -> npt.NDArray[Any]:
        """The values at the outer product of slices and integer arrays."""
        return self._read(lambda array: array.oindex[key])

    def _read(self, read: Any) -> npt.NDArray[Any]:
        try:
            return np.asarray(read(self._array))
        except OSError:  # the store's own trouble: a permission, a network
            raise
        except Exception as error:  # whatever a codec makes of bytes that are not its own
            file = self._damaged_chunk()
            raise RecordFormatError(f"cannot read {self.place}{file}: {error}") from error

    def _damaged_chunk(self) -> str:
        """``/c/0/0`` of the first chunk that cannot be read; empty when it is not to be found."""
        for place in islice(filter(None, map(CHUNK.fullmatch, self._keys())), MOST_TRIED):
            try:
                self._array.get_block_selection(tuple(map(int, place[1].split("/"))))
            except Exception:
                return place[0]
        return ""

    def _keys(self) -> list[str]:
        """What lies below the array, as far as the store can tell."""

        async def found() -> list[str]:
            keys = [key async for key in self._at.store.list_prefix(f"{self._at.path}/")]
            return sorted(key.removeprefix(self._at.path) for key in keys)

        try:
            return sync(found())
        except Exception:  # it is about the message of another error
            return []

    @cached_property
    def _array(self) -> zarr.Array[Any]:
        document: Any = self._document
        metadata = ArrayV3Metadata.from_dict(document)
        own = (CheckedBlosc.of(c) if type(c) is BloscCodec else c for c in metadata.codecs)
        return zarr.Array(zarr.AsyncArray(replace(metadata, codecs=tuple(own)), self._at))


def _is_size(number: object) -> bool:
    return isinstance(number, int) and not isinstance(number, bool) and 0 <= number < 2**62
