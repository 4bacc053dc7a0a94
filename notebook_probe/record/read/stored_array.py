"""One array of a stored record; every problem with it raises one clear error."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
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

from notebook_probe.checks import is_whole
from notebook_probe.errors import LONGEST, RecordFormatError
from notebook_probe.record.read.at_exit import program_ends, read_here
from notebook_probe.record.read.checked_blosc import CheckedBlosc
from notebook_probe.record.read.direct import DirectReader

__all__ = ["StoredArray"]

CHUNK = re.compile(r"/c/(\d{1,9}(?:/\d{1,9})*)")
MOST_TRIED = 1024
"""Chunks that are looked at to find the damaged one."""
UNCHECKED_CELLS = 2**25
"""Values that are read at once without checking whether they can exist."""
SPARSE = 64
"""An array is believed to be so much larger than its chunks."""
CODECS = frozenset({"bytes", "vlen-utf8", "blosc"})
"""The codecs of the format. A chunk of a few bytes could become gigabytes through any other."""


@dataclass(frozen=True)
class StoredArray:
    """An array described by the commit record; its chunks are read where it is indexed."""

    place: str
    """Location for messages: ``runs/first.zarr/scalars/every_1/step``."""
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
            They do not describe a regular zarr array with named dimensions.
        """
        try:
            shape = tuple(document["shape"])
            chunks = tuple(document["chunk_grid"]["configuration"]["chunk_shape"])
            dims = tuple(document["dimension_names"])
            attrs = dict(document.get("attributes", {}))
        except (KeyError, TypeError, ValueError) as error:
            raise RecordFormatError(f"{place} has incomplete metadata: {error!r}") from error
        regular = len(shape) == len(chunks) == len(dims)
        if not (regular and all(map(_is_size, [*shape, *chunks])) and 0 not in chunks):
            raise RecordFormatError(
                f"{place} has shape {shape}, chunks {chunks} and dimensions {dims}; sizes, as many "
                f"of each, are needed, and no chunk is empty"
            )
        at = StorePath(store, path)
        dtype = str(document.get("data_type"))
        return cls(
            place=place,
            shape=shape,
            chunks=chunks,
            dims=dims,
            dtype=dtype,
            attrs=attrs,
            _document=document,
            _at=at,
        )

    def expect(self, dtype: str, dims: tuple[str, ...], shape: tuple[int | None, ...]) -> None:
        """Check dtype, dims and shape; None is any length.

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
        """Return the values at slices or integers, as in numpy."""
        found = self._read_directly(key)
        if found is not None:
            return found
        if program_ends():
            # zarr's own event loop needs a thread, and none can be started while the interpreter
            # ends.
            return self._read(key, lambda array: read_here(array._async_array.getitem(key)))
        return self._read(key, lambda array: array[key])

    def _read_directly(self, key: Any) -> npt.NDArray[Any] | None:
        """Return the values if no event loop is needed for them; None to leave them to zarr."""
        try:
            return None if self._direct is None else self._direct.read(key)
        except Exception:  # zarr finds it, too, and its error is reported in one sentence
            return None

    def outer(self, *key: Any) -> npt.NDArray[Any]:
        """Return the values at the outer product of slices and integer arrays."""
        within = _covering(key)
        found = self._read_directly(within)
        if found is not None:
            return _outer_of(found, key, within)
        if program_ends():
            return _outer_of(self[within], key, within)
        return self._read(key, lambda array: array.oindex[key])

    def _read(self, key: Any, read: Any) -> npt.NDArray[Any]:
        try:
            self._check_cells(key)
            return np.asarray(read(self._array))
        except OSError:  # the store's own trouble: a permission, a network
            raise
        except Exception as error:  # whatever a codec makes of bytes that are not its own
            file = "" if program_ends() else self._damaged_chunk()
            raise RecordFormatError(
                f"cannot read {self.place}{file}: {f'{error}'[:LONGEST]}"
            ) from error

    def _damaged_chunk(self) -> str:
        """``/c/0/0`` of the first chunk that cannot be read; empty when it is not to be found."""
        for place in islice(filter(None, map(CHUNK.fullmatch, self._listed() or ())), MOST_TRIED):
            try:
                self._array.get_block_selection(tuple(map(int, place[1].split("/"))))
            except Exception:  # whatever damaged bytes make a decoder raise
                return place[0]
        return ""

    def check_chunks(self) -> None:
        """Raise RecordFormatError unless each of its chunks is there."""
        wanted = math.prod(
            -(-n // length) for n, length in zip(self.shape, self.chunks, strict=True)
        )
        # Listing a store may take a request; a single chunk is noticed as it is read.
        found = self._n_chunks() if wanted > 1 else None
        if found is not None and found < wanted:
            raise RecordFormatError(f"{self.place} has {found} of its {wanted} chunks")

    def _n_chunks(self) -> int | None:
        """Count the existing chunks; None if they cannot be listed now."""
        keys = None if program_ends() else self._listed()
        return None if keys is None else sum(CHUNK.fullmatch(key) is not None for key in keys)

    def _check_cells(self, key: Any) -> None:
        """Raise ValueError for more cells than its chunks could fill, missing ones allowed for.

        A chunk without measured values is not stored, and most chunks of an array can be missing.
        """
        keys = key if isinstance(key, tuple) else (key,)
        sizes = map(_n_selected, self.shape, (*keys, *[slice(None)] * len(self.shape)))
        n_cells = math.prod(sizes)
        if n_cells <= UNCHECKED_CELLS:
            return
        found = self._n_chunks()
        room = n_cells if found is None else SPARSE * found * math.prod(self.chunks)
        if n_cells > room:
            raise ValueError(f"{n_cells} values are declared, and its chunks have room for {room}")

    def _listed(self) -> list[str] | None:
        """Return the keys below the array; None where the store cannot tell."""

        async def found() -> list[str]:
            keys = [key async for key in self._at.store.list_prefix(f"{self._at.path}/")]
            return sorted(key.removeprefix(self._at.path) for key in keys)

        if not self._at.store.supports_listing:
            return None
        try:
            return sync(found())
        except Exception:  # no reason to refuse what can be read
            return None

    @cached_property
    def _direct(self) -> DirectReader | None:
        return DirectReader.of(self._at, self.shape, self.chunks, self._document)

    @cached_property
    def _array(self) -> zarr.Array[Any]:
        document: Any = self._document
        _check_codecs(document.get("codecs"))
        metadata = ArrayV3Metadata.from_dict(document)
        # blosc trusts the sizes in a chunk's header, which may be damaged.
        own = (CheckedBlosc.of(c) if type(c) is BloscCodec else c for c in metadata.codecs)
        return zarr.Array(zarr.AsyncArray(replace(metadata, codecs=tuple(own)), self._at))


def _covering(key: Sequence[Any]) -> tuple[slice, ...]:
    """Return slices with everything between the integers of a key as well."""
    return tuple(
        one if isinstance(one, slice) else slice(int(np.min(one)), int(np.max(one)) + 1)
        for one in key
    )


def _outer_of(
    found: npt.NDArray[Any], key: Sequence[Any], within: Sequence[slice]
) -> npt.NDArray[Any]:
    """Return what a key selects of the values in the slices that cover it."""
    for axis, (one, covering) in enumerate(zip(key, within, strict=True)):
        if not isinstance(one, slice):
            found = np.take(found, np.asarray(one) - covering.start, axis)
    return found


def _n_selected(length: int, key: Any) -> int:
    """Return the number of elements of an axis that a slice, integer or array selects."""
    return len(range(length)[key]) if isinstance(key, slice) else int(np.size(key))


def _check_codecs(codecs: Any) -> None:
    """Raise ValueError unless each codec is one of the format, given plainly."""
    names = [one.get("name") if isinstance(one, dict) else one for one in codecs or ()]
    wrong = [name for name in names if name not in CODECS]
    if wrong or not names:
        allowed = ", ".join(sorted(CODECS))
        raise ValueError(f"it has the codecs {str(names)[:200]}; {allowed} are allowed")


def _is_size(number: object) -> bool:
    return is_whole(number) and 0 <= number < 2**62
