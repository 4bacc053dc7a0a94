"""Layout on disk of format version 2: groups, names and attributes; `array_specs` has the arrays.

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

from notebook_probe.axis import Axis
from notebook_probe.errors import QuantityError, ScheduleError
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
    "STOPPED",
    "UNWRITTEN_OF",
    "VALUE",
    "VECTORS",
    "check_axis",
    "check_quantity",
    "check_scalar",
    "check_stream",
    "is_of_loop",
    "is_variable",
    "level_name",
    "module_label",
    "width",
]

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
"""Attribute of the root: why its writer took no further rows, as text."""
NOT_READ = "not_read"
"""Attribute of the root of another tool's run: sentences on parts of its files, as a list."""

KEEP_BITS = "keep_bits"
"""Attribute of a quantity: the number of mantissa bits to which its values were rounded."""

LONGEST_NAME = 200
"""A name becomes a folder; file systems stop at 255 bytes."""
RESERVED = ("step", "time", "module")
MARKS = "marks"
"""Group of the marks that readers add to a run."""
GROUPS = (SCALARS, NAMES, PYRAMID, VECTORS, BLOBS, "modules", "events", MARKS)
"""Groups whose layout differs from that of vectors."""


def level_name(size: int) -> str:
    """Return the group of a pyramid's level with ``size`` rows per block."""
    return f"by{size}"


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
