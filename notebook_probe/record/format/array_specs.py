"""Arrays of a record on disk: dtype, dimensions, chunks, codecs and attributes of each kind."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from notebook_probe.axis import Axis
from notebook_probe.record.format.chunk_sizes import SMALL, ChunkSizes
from notebook_probe.record.format.schema import INDEX_IN_MODULE, KEEP_BITS, MODULE_OF_ELEMENT
from notebook_probe.record.format.source import Variable

__all__ = [
    "NAMES_CHUNK",
    "NAMES_WIDTH",
    "STEP_ATTRS",
    "TIME_ATTRS",
    "ArraySpec",
    "blob_spec",
    "coordinate_spec",
    "index_spec",
    "module_spec",
    "name_spec",
    "named_spec",
    "quantity_spec",
    "ragged_spec",
    "reduced_spec",
    "step_spec",
    "text_spec",
    "time_spec",
]

WIDEST_REDUCED = 128
STEP_ATTRS: dict[str, Any] = {"long_name": "optimizer step"}
"""A count has no units: plots would say them of every axis."""
TIME_ATTRS = {
    "units": "milliseconds since 1970-01-01",
    "calendar": "proleptic_gregorian",
    "standard_name": "time",
    "long_name": "wall time",
}
NAMES_CHUNK = 1024
VECTOR_CHUNK_VALUES = 2**16
VECTOR_WIDTH = 16
"""Modules of a chunk of vectors."""
RAGGED_CHUNK = (1024, 256)
NAMES_WIDTH = 16
"""Scalars of a chunk: they are read one by one, unlike modules."""
MOST_BLOBS = 16
"""Arrays of a chunk, when they are small."""


@dataclass(frozen=True, slots=True)
class ArraySpec:
    """An array on disk, without its present length."""

    dtype: str
    dims: tuple[str, ...]
    chunks: tuple[int, ...]
    attrs: Mapping[str, str | int]
    keep_bits: int | None = None
    """Bits of the mantissa of every value; see `rounding`."""

    def metadata(self, shape: tuple[int, ...]) -> dict[str, Any]:
        """Return the array's ``zarr.json``."""
        fill: dict[str, float | str] = {
            "float32": "NaN",
            "float64": "NaN",
            "int64": -1,
            "string": "",
        }
        return {
            "zarr_format": 3,
            "node_type": "array",
            "shape": list(shape),
            "data_type": self.dtype,
            # Unsharded: a live reader of a shard that is being rewritten would pair its old index
            # with new bytes.
            "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": list(self.chunks)}},
            "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}},
            # Never 0: readers would take elements that were never written for values.
            "fill_value": fill[self.dtype],
            "codecs": _codecs(self.dtype),
            "dimension_names": list(self.dims),
            "attributes": dict(self.attrs),
            "storage_transformers": [],
        }


def _codecs(dtype: str) -> list[dict[str, Any]]:
    itemsize = {"float32": 4, "float64": 8, "int64": 8, "string": 1}[dtype]
    text = dtype == "string"
    blosc = {
        "typesize": itemsize,
        "cname": "zstd",
        "clevel": 1,
        "shuffle": "noshuffle" if text else "shuffle",
        "blocksize": 0,
    }
    values: dict[str, Any] = {"name": "bytes", "configuration": {"endian": "little"}}
    # Written out: zarr's default compressor makes no blosc frame, in which rows can be written in
    # place.
    return [
        {"name": "vlen-utf8", "configuration": {}} if text else values,
        {"name": "blosc", "configuration": blosc},
    ]


def step_spec(sizes: ChunkSizes) -> ArraySpec:
    """Return the step axis of a stream."""
    return ArraySpec("int64", ("step",), (sizes.index,), STEP_ATTRS)


def time_spec(sizes: ChunkSizes) -> ArraySpec:
    """Return the wall time of each row."""
    return ArraySpec("int64", ("step",), (sizes.index,), TIME_ATTRS)


def module_spec(dim: str = "module") -> ArraySpec:
    """Return the module of every column of a stream."""
    return text_spec(dim, "path of the module or parameter")


def name_spec() -> ArraySpec:
    """Return the name of every column of a stream of logged scalars."""
    return text_spec("name", "name of the scalar")


def index_spec() -> ArraySpec:
    """Return the place of every element in its module's vector."""
    attrs = {"units": "1", "long_name": "place in the module's vector"}
    return ArraySpec("int64", ("element",), (NAMES_CHUNK,), attrs)


def text_spec(dim: str, long_name: str) -> ArraySpec:
    """Return a column of text."""
    return ArraySpec("string", (dim,), (NAMES_CHUNK,), {"long_name": long_name})


def coordinate_spec(axis: Axis, name: str) -> ArraySpec:
    """Return a coordinate along the axis of vectors."""
    return ArraySpec("float64", (axis.name,), (axis.size,), {"long_name": name.replace("_", " ")})


def quantity_spec(
    variable: Variable, sizes: ChunkSizes, chunk_width: int, axis: Axis | None = None
) -> ArraySpec:
    """Return the spec of a quantity in chunks of ``chunk_width`` modules; vectors are wider."""
    if axis is None:
        length = sizes.length(max(1, sizes.values // chunk_width), chunk_width)
        return _raw_spec(variable, ("step", "module"), (length, chunk_width))
    wide = sizes.modules or VECTOR_WIDTH
    row = wide * axis.size
    length = sizes.length(max(1, VECTOR_CHUNK_VALUES // row), row)
    coords = [name for name in axis.coords if name != axis.name]
    dims = ("step", "module", axis.name)
    return _raw_spec(variable, dims, (length, wide, axis.size), coords)


def named_spec(variable: Variable, sizes: ChunkSizes) -> ArraySpec:
    """Return an array of scalars, a column for each name."""
    length = sizes.length(sizes.values // NAMES_WIDTH, NAMES_WIDTH)
    return _raw_spec(variable, ("step", "name"), (length, NAMES_WIDTH))


def ragged_spec(variable: Variable, sizes: ChunkSizes) -> ArraySpec:
    """Return the spec of per-module vectors, one after the other."""
    coords = (MODULE_OF_ELEMENT, INDEX_IN_MODULE)
    length, wide = RAGGED_CHUNK
    return _raw_spec(variable, ("step", "element"), (sizes.length(length, wide), wide), coords)


def blob_spec(variable: Variable, sizes: ChunkSizes, shape: tuple[int, ...]) -> ArraySpec:
    """Return an array of arrays of ``shape``."""
    size = math.prod(shape)
    length = sizes.length(min(MOST_BLOBS, max(1, VECTOR_CHUNK_VALUES // size)), size)
    dims = ("step", *(f"dim_{place}" for place in range(len(shape))))
    return _raw_spec(variable, dims, (length, *shape))


def _raw_spec(
    variable: Variable,
    dims: tuple[str, ...],
    chunks: tuple[int, ...],
    coords: Sequence[str] = (),
) -> ArraySpec:
    attrs = {**variable.attrs, "coordinates": " ".join(["time", *coords])}
    return _quantity_spec(variable, dims, chunks, attrs)


def reduced_spec(variable: Variable, method: str, chunk_width: int, dim: str) -> ArraySpec:
    """Return the spec of a quantity reduced over blocks along ``dim``, by CF cell ``method``.

    Its chunks are wider than those of the ``chunk_width`` modules behind it: a view reads about as
    many blocks as it has points, and nine arrays per quantity are many files.
    """
    wide = min(4 * chunk_width, WIDEST_REDUCED)
    chunks = (SMALL.values // wide, wide)
    attrs = {"cell_methods": f"step: {method}"}
    return _quantity_spec(variable, ("step", dim), chunks, attrs)


def _quantity_spec(
    variable: Variable, dims: tuple[str, ...], chunks: tuple[int, ...], attrs: Mapping[str, str]
) -> ArraySpec:
    all_attrs: dict[str, str | int] = {
        **attrs,
        "units": variable.units,
        "long_name": variable.long_name or variable.name,
    }
    if variable.keep_bits is not None:
        all_attrs[KEEP_BITS] = variable.keep_bits
    return ArraySpec("float32", dims, chunks, all_attrs, variable.keep_bits)
