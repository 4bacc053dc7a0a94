"""Layout on disk: names, dtypes, chunks, codecs and attributes of format version 2.

::

    run.zarr/
      zarr.json            root group with consolidated metadata: the commit record
      .lock                locked by the writer
      scalars/<stream>/    step, time (step) int64; module (module) string;
                           <quantity> (step, module) float32, NaN where not measured
      names/logged/        scalars that the loop logged, one under the other: name (name) string;
                           value (step, name) float32. The first few have arrays in scalars/
      hist/<stream>/       the same with <quantity> (step, module, bin) float32; bin and its edges
                           (bin) float64. Vectors along another axis have a separate group
      pyramid/<stream>/by64, by1024, by16384/
                           step (step), of the first row of each block of so many rows; module;
                           <quantity>_min, _max, _mean (step, module) float32, whole blocks only
      vectors/<stream>/    vectors of every module's own length, one module after the other:
                           <quantity> (step, element) float32; module_of_element, index_in_module
                           (element)
      blobs/<quantity>/<module>/   arrays of every module's own shape: <quantity> (step, ...)
                           float32; the module's name is percent-encoded, and an attribute
      modules/             one row per module, in definition order
      events/              what happened at which step
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from notebook_probe.axis import Axis
from notebook_probe.errors import QuantityError, ScheduleError
from notebook_probe.record.format.chunk_sizes import SMALL, ChunkSizes
from notebook_probe.record.format.source import ROOT, Variable

__all__ = [
    "BLOBS",
    "CONVENTIONS",
    "DROPPED_ROWS",
    "EVALUATION",
    "FORMAT_VERSION",
    "FROM_BACKWARD",
    "GROUPS",
    "INDEX_IN_MODULE",
    "KEEP_BITS",
    "LOGGED",
    "LOGGED_BY",
    "LOGGED_OF_STATES",
    "LONGEST_NAME",
    "MARKS",
    "MODULE_OF_ELEMENT",
    "NAMES",
    "NOT_READ",
    "PHASE",
    "PYRAMID",
    "RESERVED",
    "SCALARS",
    "SHARDS",
    "STEP_ATTRS",
    "STOPPED",
    "TIME_ATTRS",
    "UNWRITTEN_OF",
    "VALUE",
    "VECTORS",
    "ArraySpec",
    "blob_spec",
    "check_axis",
    "check_quantity",
    "check_scalar",
    "check_stream",
    "coordinate_spec",
    "index_spec",
    "is_of_loop",
    "is_variable",
    "level_name",
    "module_label",
    "module_spec",
    "name_spec",
    "named_spec",
    "quantity_spec",
    "ragged_spec",
    "reduced_spec",
    "step_spec",
    "text_spec",
    "time_spec",
    "width",
]

WIDEST_REDUCED = 128
FORMAT_VERSION = 2
CONVENTIONS = "CF-1.11"
SCALARS = "scalars"
PYRAMID = "pyramid"
VECTORS = "vectors"
BLOBS = "blobs"
NAMES = "names"
LOGGED, VALUE = "logged", "value"
"""The stream of scalars by name, and its one array."""
LOGGED_BY = "logged by the training loop"
"""Long name of a logged scalar."""
FROM_BACKWARD = "the tensor that backward() was called on, summed over an update's passes"
"""Long name of the loss if the loop logs none."""
MODULE_OF_ELEMENT, INDEX_IN_MODULE = "module_of_element", "index_in_module"
EVALUATION = "eval_"
"""Prefix of streams of evaluations, whose rows are about the state at a step."""

LOGGED_OF_STATES = "eval_logged"
"""Stream of numbers that the loop logs of a state, such as the loss of a validation."""
PHASE = "phase"
"""Attribute of a quantity that is measured of states: ``"evaluation"``."""

DROPPED_ROWS = "dropped_rows"
"""Attribute of the root: rows that its writers were given and did not write, counted."""
SHARDS = "shards"
"""Attribute of a rank's record: the copies of each shard in the job by module, as a JSON text."""

UNWRITTEN_OF = "unwritten_of"
"""Attribute of the root of a record of rows that another one could not take: which one."""
STOPPED = "recording_stopped"
"""Attribute of the root: why its writer took no further rows, in words."""
NOT_READ = "not_read"
"""Attribute of the root of another tool's run: sentences on parts of its files, as a list."""

KEEP_BITS = "keep_bits"
"""Attribute of a quantity whose values were rounded to so many bits of mantissa."""

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
LONGEST_NAME = 200
"""A name becomes a folder; file systems stop at 255 bytes."""
RESERVED = ("step", "time", "module")
MARKS = "marks"
"""Group of the marks that readers add to a run."""
GROUPS = (SCALARS, NAMES, PYRAMID, VECTORS, BLOBS, "modules", "events", MARKS)
"""Groups whose layout differs from that of vectors."""


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


def level_name(size: int) -> str:
    """Return the group of a pyramid's level with ``size`` rows per block."""
    return f"by{size}"


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


def width(n_modules: int) -> int:
    """Modules per chunk: the next power of two of ``n_modules / 16``, from 4 to 64.

    Examples
    --------
    >>> [width(n) for n in (1, 100, 10_000)]
    [4, 8, 64]
    """
    wanted = -(-n_modules // 16)
    return min(64, max(4, 1 << max(0, wanted - 1).bit_length()))


def module_label(name: str) -> str:
    """``name`` as module axes spell it: the root's ``""`` would collide with the fill value.

    Raises TypeError unless it is text.
    """
    if not isinstance(name, str):
        raise TypeError(f"module {name!r}; its path as text is expected, such as 'fc1'")
    return name or ROOT


def check_quantity(name: str) -> None:
    """Raise QuantityError unless ``name`` can be a variable of a dataset and a folder."""
    if name in RESERVED:
        raise QuantityError(f"a quantity cannot be called {name!r}; it is a coordinate's name")
    if not _is_plain(name):
        raise QuantityError(
            f"quantity name {name[:80]!r}: letters, digits and _ only (ASCII), "
            f"not starting with a digit, at most {LONGEST_NAME} characters"
        )


def is_variable(name: str) -> bool:
    """Return whether ``name`` can be both a variable of a dataset and a folder."""
    return _is_plain(name) and name not in RESERVED


def check_scalar(name: object) -> None:
    """Raise QuantityError unless ``name`` is valid for a logged scalar."""
    if not isinstance(name, str) or not name or not name.isprintable() or len(name) > LONGEST_NAME:
        raise QuantityError(
            f"a scalar called {name!r}"[:120] + f"; text of 1 to {LONGEST_NAME} characters that "
            f"can be printed is expected, such as 'train/loss'"
        )
    if name in RESERVED:
        check_quantity(name)


def check_axis(axis: Axis) -> None:
    """Raise QuantityError unless ``axis`` can be a dimension, and its group a folder."""
    for name in axis.coords:
        check_quantity(name)
    if axis.group in GROUPS or not _is_plain(axis.group):
        raise QuantityError(
            f"axis {axis.name!r}: group {axis.group[:80]!r} must be a plain name, "
            f"and none of {', '.join(GROUPS)}"
        )


def is_of_loop(variable: Variable) -> bool:
    """Return whether a variable belongs to the training as a whole, not to a module.

    >>> is_of_loop(Variable("lr", "1", LOGGED_BY)), is_of_loop(Variable("rank"))
    (True, False)
    """
    return variable.long_name in (LOGGED_BY, FROM_BACKWARD)


def check_stream(name: str) -> None:
    """Raise ScheduleError unless ``name`` can be the name of a schedule's group."""
    if name == LOGGED:
        raise ScheduleError(f"a stream cannot be called {name!r}; logged scalars are in it")
    if not _is_plain(name):
        raise ScheduleError(
            f"stream name {name[:80]!r}: letters, digits and _ only (ASCII), "
            f"not starting with a digit, at most {LONGEST_NAME} characters"
        )


def _is_plain(name: str) -> bool:
    return name.isascii() and name.isidentifier() and len(name) <= LONGEST_NAME
