"""Kinds of streams, and their layout on disk.

To the training thread they are alike: a row is a table of quantities by columns, whose cells are
numbers or arrays of one shape.

============  ======================  =========  ==================================
kind          group                   column     array of a quantity on disk
============  ======================  =========  ==================================
`NUMBERS`     ``scalars``             module     (step, module)
`NAMED`       ``names``               name       (step, name), of one quantity: `VALUE`
`kind_of`     the axis's, say         module     (step, module, axis)
              ``hist``
`RAGGED`      ``vectors``             element    (step, element)
`blob`        ``blobs/<quantity>``    module     (step, ...), a group of each module
============  ======================  =========  ==================================
"""

from __future__ import annotations

import hashlib
import string
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from notebook_probe.axis import Axis, PerChannel
from notebook_probe.record.format.array_specs import (
    NAMES_WIDTH,
    ArraySpec,
    blob_spec,
    coordinate_spec,
    index_spec,
    module_spec,
    name_spec,
    named_spec,
    quantity_spec,
    ragged_spec,
)
from notebook_probe.record.format.axes import Axes
from notebook_probe.record.format.chunk_sizes import ChunkSizes
from notebook_probe.record.format.elements import read_element
from notebook_probe.record.format.schema import (
    BLOBS,
    INDEX_IN_MODULE,
    LOGGED_BY,
    LONGEST_NAME,
    MODULE_OF_ELEMENT,
    NAMES,
    SCALARS,
    VALUE,
    VECTORS,
    check_stream,
    width,
)
from notebook_probe.record.format.source import Floats, Variable

__all__ = ["NAMED", "NAMED_VALUE", "NUMBERS", "RAGGED", "Kind", "blob", "blob_name", "kind_of"]

_UNESCAPED = frozenset(string.ascii_lowercase + string.digits + "_-")

Column: TypeAlias = tuple[ArraySpec, Sequence[Any]]


@dataclass(frozen=True)
class Kind:
    """Layout of the streams of one group; numbers by module, unless a subclass differs."""

    group: str
    meaning: str
    """Description of its quantities, for messages about name clashes."""
    cell: tuple[int, ...] = ()
    """Shape of one value."""
    axis: Axis | None = None
    coords: tuple[str, ...] = ()
    """Names that no quantity of the group can have."""
    attrs: Mapping[str, str] = field(default_factory=dict)
    """Attributes of each stream's group."""

    @property
    def is_blob(self) -> bool:
        """A stream of it is one quantity at one module."""
        return False

    @property
    def reduced_along(self) -> str:
        """The dimension of its columns where it has a pyramid, else empty."""
        return ""

    def check(self, name: str) -> None:
        """Raise ScheduleError unless a stream can be called ``name``."""
        check_stream(name)

    def quantities(self, modules: Iterable[str], variables: Iterable[Variable]) -> list[str]:
        """Return the readers' names of the values in a stream of these columns and variables."""
        return [variable.name for variable in variables]

    def width(self, n_columns: int, sizes: ChunkSizes) -> int:
        """Columns of a chunk of a new stream."""
        return sizes.modules or width(n_columns)

    # Upper groups are needed in the metadata: zarr finds a group only if all its parents are
    # listed.
    @property
    def parents(self) -> dict[str, dict[str, str]]:
        """The groups above, with their attributes."""
        return {self.group: {}}

    def columns(self, axes: Axes) -> dict[str, Column]:
        """Return the arrays that are rewritten whenever the axes have grown."""
        return {"module": (module_spec(), axes.modules)}

    def spec(self, variable: Variable, sizes: ChunkSizes, width: int) -> ArraySpec:
        """Return the spec of a quantity's array, with ``width`` modules per chunk."""
        return quantity_spec(variable, sizes, width)

    def stored(self, values: Floats) -> Floats:
        """Values (row, column, ...) as rows of the quantity's array."""
        return values

    def shape(self, n_rows: int, n_columns: int) -> tuple[int, ...]:
        """Shape of a quantity's array."""
        return n_rows, n_columns, *self.cell


class _Numbers(Kind):
    @property
    def reduced_along(self) -> str:
        return "module"


class _Named(Kind):
    @property
    def reduced_along(self) -> str:
        return "name"

    def check(self, name: str) -> None:
        """Do nothing: `LOGGED` is the only group."""

    def quantities(self, modules: Iterable[str], variables: Iterable[Variable]) -> list[str]:
        return [*modules]

    def width(self, n_columns: int, sizes: ChunkSizes) -> int:
        return NAMES_WIDTH

    def columns(self, axes: Axes) -> dict[str, Column]:
        return {"name": (name_spec(), axes.modules)}

    def spec(self, variable: Variable, sizes: ChunkSizes, width: int) -> ArraySpec:
        return named_spec(variable, sizes)


class _Vectors(Kind):
    axis: Axis

    @property
    def parents(self) -> dict[str, dict[str, str]]:
        return {self.group: {"axis": self.axis.name}}

    def columns(self, axes: Axes) -> dict[str, Column]:
        along = {
            name: (coordinate_spec(self.axis, name), values)
            for name, values in self.axis.coords.items()
        }
        return {**super().columns(axes), **along}

    def spec(self, variable: Variable, sizes: ChunkSizes, width: int) -> ArraySpec:
        return quantity_spec(variable, sizes, width, self.axis)


class _Ragged(Kind):
    def columns(self, axes: Axes) -> dict[str, Column]:
        elements = [read_element(label) for label in axes.modules]
        return {
            MODULE_OF_ELEMENT: (module_spec("element"), [module for module, _, _ in elements]),
            INDEX_IN_MODULE: (index_spec(), [index for _, index, _ in elements]),
        }

    def spec(self, variable: Variable, sizes: ChunkSizes, width: int) -> ArraySpec:
        return ragged_spec(variable, sizes)


class _Blob(Kind):
    @property
    def is_blob(self) -> bool:
        return True

    def check(self, name: str) -> None:
        """Do nothing: `blob_name` makes a valid name."""

    @property
    def parents(self) -> dict[str, dict[str, str]]:
        return {BLOBS: {}, self.group: {}}

    def columns(self, axes: Axes) -> dict[str, Column]:
        return {}

    def spec(self, variable: Variable, sizes: ChunkSizes, width: int) -> ArraySpec:
        return blob_spec(variable, sizes, self.cell)

    def stored(self, values: Floats) -> Floats:
        return values[:, 0]

    def shape(self, n_rows: int, n_columns: int) -> tuple[int, ...]:
        return n_rows, *self.cell


NUMBERS = _Numbers(SCALARS, "a number")
NAMED = _Named(NAMES, "a number")
NAMED_VALUE = Variable(VALUE, "1", LOGGED_BY)
RAGGED = _Ragged(
    VECTORS,
    "a vector of every module's own length",
    coords=("element", MODULE_OF_ELEMENT, INDEX_IN_MODULE),
)


def kind_of(axis: Axis | PerChannel | None) -> Kind:
    """Numbers without an axis, else vectors along it."""
    if axis is None:
        return NUMBERS
    if isinstance(axis, PerChannel):
        return RAGGED
    return _Vectors(axis.group, f"a vector along {axis.name!r}", (axis.size,), axis)


def blob(quantity: str, module: str, shape: tuple[int, ...]) -> Kind:
    """Arrays of ``shape``, of one quantity at one module."""
    meaning = "an array of every module's own shape"
    return _Blob(f"{BLOBS}/{quantity}", meaning, shape, attrs={"module": module})


def blob_name(module: str) -> str:
    """Return the group of a module's arrays: its name, percent-encoded.

    Upper case is encoded too, because some file systems do not tell it from lower case, and dots,
    because they have a meaning in the names of streams.

    Examples
    --------
    >>> blob_name("layer1.conv"), blob_name("../Net"), blob_name("(root)")
    ('layer1%2Econv', '%2E%2E%2F%4Eet', '%28root%29')
    """
    encoded = "".join(
        letter
        if letter in _UNESCAPED
        else "".join(f"%{byte:02X}" for byte in letter.encode(errors="surrogatepass"))
        for letter in module
    )
    if len(encoded) <= LONGEST_NAME:
        return encoded
    digest = hashlib.sha256(module.encode(errors="surrogatepass")).hexdigest()
    return f"{encoded[: LONGEST_NAME - 33]}~{digest[:32]}"
