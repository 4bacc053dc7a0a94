"""A stream in a store, read through zarr."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cached_property
from typing import Any

import numpy as np

from notebook_probe.axis import Axis
from notebook_probe.errors import RecordFormatError
from notebook_probe.record.format.chunks import Extent
from notebook_probe.record.format.kinds import NUMBERS, Kind, kind_of
from notebook_probe.record.format.lookup import columns, quantity_place
from notebook_probe.record.format.reductions import SIZES
from notebook_probe.record.format.rounding import read_keep_bits
from notebook_probe.record.format.schema import (
    KEEP_BITS,
    PYRAMID,
    level_name,
)
from notebook_probe.record.format.source import ChunkGrid, Floats, Steps, Variable
from notebook_probe.record.read.growing_steps import check_growing
from notebook_probe.record.read.manifest import Manifest
from notebook_probe.record.read.stored_array import StoredArray
from notebook_probe.record.read.stored_level import StoredLevel

__all__ = ["StoredStream", "StoredVectors", "check_length"]


MOST_NAMES = 2**22
MOST_ELEMENTS = 2**20
"""Longest module axis and longest vector that are believed: these are read as a whole."""
UNCHECKED_ROWS = 2**13
"""Rows that are read without checking first whether they exist."""


class StoredStream:
    """The published rows of one stream; a StreamView of fixed length.

    Attributes
    ----------
    problems : list of RecordFormatError
        Errors of quantities that were left out.

    Raises
    ------
    RecordFormatError
        The axes are missing, or differ from the format.
    """

    axis: Axis | None = None
    _is_checked = False
    column_arrays: tuple[str, ...] = ("module",)
    """Arrays that label the columns, without a step axis."""

    @property
    def kind(self) -> Kind:
        """Kind of the stream, for a writer that continues it."""
        return NUMBERS

    version: tuple[object, ...] = ()

    def __init__(self, manifest: Manifest, path: str) -> None:
        self._manifest, self._path = manifest, path
        self.name = path.rpartition("/")[2]
        self.problems: list[RecordFormatError] = []
        index = {
            name: manifest.array(f"{path}/{name}") for name in ("step", "time", *self.column_arrays)
        }
        self._arrays: dict[str, StoredArray] = index
        self.n_rows = n_rows = (*index["step"].shape, 0)[0]
        index["step"].expect("int64", ("step",), (None,))
        index["time"].expect("int64", ("step",), (n_rows,))
        attrs = manifest.group_attrs(path)
        self.modules = self._labels(attrs)
        if len(set(self.modules)) < len(self.modules):
            raise RecordFormatError(
                f"{manifest.place(path)}/{self.column_arrays[0]} repeats itself"
            )
        self.long_name = str(attrs.get("long_name", self.name))
        shape = self.kind.shape(n_rows, len(self.modules))
        self.variables = tuple(self._quantities(manifest, path, attrs.get("quantities"), shape))
        self._variable_index = {variable.name: i for i, variable in enumerate(self.variables)}
        self._module_index = {label: i for i, label in enumerate(self.modules)}

    def _labels(self, attrs: Mapping[str, Any]) -> tuple[str, ...]:
        """Return the columns."""
        (dim,) = self.column_arrays
        column = self._arrays[dim]
        column.expect("string", (dim,), (None,))
        check_length(column, MOST_NAMES)
        return tuple(column[:].tolist())

    @cached_property
    def levels(self) -> Mapping[int, StoredLevel]:
        """Levels of the pyramid; unreadable ones are left out."""
        dim, found = self.kind.reduced_along, {}
        for size in SIZES if dim else ():
            place = f"{PYRAMID}/{self.name}/{level_name(size)}"
            # Levels only save time: without one, the rows themselves are read.
            with suppress(RecordFormatError):
                arrays = _level_arrays(self._manifest, place, dim)
                found[size] = StoredLevel(size, arrays, dim)
        return found

    @property
    def n_blocks(self) -> list[int]:
        """Blocks of each level of the pyramid, for a writer that continues it."""
        levels = self.levels
        return [levels[size].n_blocks if size in levels else 0 for size in SIZES]

    @property
    def _dims(self) -> tuple[str, ...]:
        return ("step", "module") if self.axis is None else ("step", "module", self.axis.name)

    def _quantities(
        self, manifest: Manifest, path: str, order: object, shape: tuple[int, ...]
    ) -> Iterator[Variable]:
        """Yield the quantities' arrays; arrays of other dimensions are ignored."""
        names = manifest.arrays(path)
        first = [name for name in order if name in names] if isinstance(order, list) else []
        for name in dict.fromkeys([*first, *sorted(names)]):
            try:
                array = manifest.array(f"{path}/{name}")
                if array.dims == self._dims:
                    array.expect("float32", self._dims, shape)
                    self._arrays[name] = array
                    yield _variable(name, array)
            except RecordFormatError as problem:
                self.problems.append(problem)

    def extents(self) -> dict[str, Extent]:
        """Return shape and chunks of each array, for a writer that continues it."""
        return {name: Extent(array.shape, array.chunks) for name, array in self._arrays.items()}

    def steps(self, start: int = 0, stop: int | None = None) -> Steps:
        self._check_rows(start, stop)
        step = self._arrays["step"]
        found = step[start:stop]
        check_growing(step.place, found)
        return found

    def times(self, start: int = 0, stop: int | None = None) -> Steps:
        self._check_rows(start, stop)
        return self._arrays["time"][start:stop]

    def _check_rows(self, start: int, stop: int | None) -> None:
        """Raise RecordFormatError for more rows than can be: steps grow from 0, in chunks."""
        n = self.n_rows
        rows = range(n)[start:stop]
        # A reader that takes piece by piece would go through all that is claimed.
        if self._is_checked or len(rows) < 2 or rows[-1] < UNCHECKED_ROWS:
            return
        step = self._arrays["step"]
        last = int(step[n - 1 : n][0])
        if last < n - 1:
            raise RecordFormatError(f"{step.place} has {n} rows, the last of step {last}")
        step.check_chunks()
        self._is_checked = True

    def values(
        self,
        quantity: str,
        start: int = 0,
        stop: int | None = None,
        modules: Sequence[str] | None = None,
    ) -> Floats:
        quantity_place(self.name, self._variable_index, quantity)
        array = self._arrays[quantity]
        if modules is None:
            return array[start:stop]
        places = columns(self.name, self._module_index, modules)
        if not places:
            n_rows = len(range(self.n_rows)[start:stop])
            return np.empty((n_rows, 0, *array.shape[2:]), np.float32)
        low, high = min(places), max(places) + 1
        if high - low <= array.chunks[1]:  # a slice of one or two chunks is the fastest read
            return array[start:stop, low:high][:, [p - low for p in places]]
        return array.outer(slice(start, stop), np.array(places))

    def chunk_grid(self, quantity: str) -> ChunkGrid:
        quantity_place(self.name, self._variable_index, quantity)
        length, *columns = self._arrays[quantity].chunks
        return ChunkGrid(tuple(range(0, self.n_rows, length)) or (0,), next(iter(columns), 1))


class StoredVectors(StoredStream):
    """The published rows of one stream of vectors; a VectorView of fixed length."""

    axis: Axis

    @property
    def kind(self) -> Kind:
        return kind_of(self.axis)

    def __init__(self, manifest: Manifest, path: str) -> None:
        group = path.rpartition("/")[0]
        dim = str(manifest.group_attrs(group)["axis"])
        arrays = [manifest.array(f"{path}/{name}") for name in manifest.arrays(path)]
        coords = {}
        for array in arrays:
            if array.dims == (dim,):
                array.expect("float64", (dim,), (None,))
                check_length(array, MOST_ELEMENTS)
                coords[array.name] = tuple(array[:].tolist())
        try:
            self.axis = Axis(dim, coords, group)
        except ValueError as error:
            raise RecordFormatError(f"{manifest.place(path)}: {error}") from error
        super().__init__(manifest, path)


def _level_arrays(manifest: Manifest, place: str, dim: str) -> dict[str, StoredArray]:
    """Return the arrays of a pyramid's level; RecordFormatError if they do not match."""
    names = {"step", dim, *manifest.arrays(place)}
    arrays = {name: manifest.array(f"{place}/{name}") for name in sorted(names)}
    step, column = arrays["step"], arrays[dim]
    step.expect("int64", ("step",), (None,))
    column.expect("string", (dim,), (None,))
    check_length(column, MOST_NAMES)
    for name in names - {"step", dim}:
        arrays[name].expect("float32", ("step", dim), (*step.shape, *column.shape))
    return arrays


def check_length(array: StoredArray, most: int) -> None:
    """Raise RecordFormatError for an axis of impossible length."""
    if array.shape[0] > most:
        raise RecordFormatError(f"{array.place} has {array.shape[0]} elements; at most {most}")


def _variable(name: str, array: StoredArray) -> Variable:
    attrs = {key: str(value) for key, value in array.attrs.items()}
    attrs.pop("coordinates", None)
    keep_bits = read_keep_bits(attrs.pop(KEEP_BITS, ""))
    units, long_name = attrs.pop("units", "1"), attrs.pop("long_name", name)
    return Variable(name, units, long_name, attrs, keep_bits)
