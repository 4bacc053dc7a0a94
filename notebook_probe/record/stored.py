"""A stream as it lies in the store, read through zarr."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np
import zarr

from notebook_probe.axis import Axis
from notebook_probe.errors import UnknownNameError, near
from notebook_probe.record.chunks import Extent
from notebook_probe.record.pyramid import SIZES
from notebook_probe.record.schema import module_label
from notebook_probe.record.source import Floats, Steps, Variable
from notebook_probe.record.stored_level import StoredLevel

__all__ = ["StoredStream", "StoredVectors", "columns", "quantity_place"]


class StoredStream:
    """The published rows of one stream; a StreamView of fixed length.

    Parameters
    ----------
    group : zarr.Group
        ``scalars/<name>`` of a root opened with its consolidated metadata.
    """

    axis: Axis | None = None

    def __init__(
        self, name: str, group: zarr.Group, pyramid: Mapping[int, zarr.Group] | None = None
    ) -> None:
        self.name = name
        self._pyramid = pyramid or {}
        self._arrays: dict[str, zarr.Array[Any]] = dict(group.arrays())
        self.n_rows = self._arrays["step"].shape[0]
        self.modules = tuple(map(str, np.asarray(self._arrays["module"][:])))
        attrs: dict[str, Any] = group.attrs.asdict()
        self.long_name = str(attrs.get("long_name", name))
        names = dict.fromkeys([*attrs.get("quantities", ()), *sorted(self._arrays)])
        self.variables = tuple(
            _variable(name, self._arrays[name])
            for name in names
            if name in self._arrays and _dims(self._arrays[name]) == self._dims
        )
        self._variable_index = {variable.name: i for i, variable in enumerate(self.variables)}
        self._module_index = {label: i for i, label in enumerate(self.modules)}

    @cached_property
    def levels(self) -> Mapping[int, StoredLevel]:
        return {
            size: StoredLevel(size, dict(group.arrays())) for size, group in self._pyramid.items()
        }

    @property
    def n_blocks(self) -> list[int]:
        """Blocks of each level of the pyramid, for a writer that goes on with it."""
        levels = self.levels
        return [levels[size].n_blocks if size in levels else 0 for size in SIZES]

    @property
    def _dims(self) -> tuple[str, ...]:
        return ("step", "module") if self.axis is None else ("step", "module", self.axis.name)

    def extents(self) -> dict[str, Extent]:
        """Shape and chunks of each array, for a writer that goes on with it."""
        return {name: Extent(array.shape, array.chunks) for name, array in self._arrays.items()}

    def steps(self, start: int = 0, stop: int | None = None) -> Steps:
        return np.asarray(self._arrays["step"][start:stop])

    def times(self, start: int = 0, stop: int | None = None) -> Steps:
        return np.asarray(self._arrays["time"][start:stop])

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
            return np.asarray(array[start:stop])
        places = columns(self.name, self._module_index, modules)
        if not places:
            n_rows = len(range(self.n_rows)[start:stop])
            return np.empty((n_rows, 0, *array.shape[2:]), np.float32)
        low, high = min(places), max(places) + 1
        if high - low <= array.chunks[1]:  # a slice of one or two chunks is the fastest read
            return np.asarray(array[start:stop, low:high])[:, [p - low for p in places]]
        return np.asarray(array.oindex[start:stop, np.array(places)])


class StoredVectors(StoredStream):
    """The published rows of one stream of vectors; a VectorView of fixed length.

    Parameters
    ----------
    group : zarr.Group
        ``<axis.group>/<name>``.
    dim : str
        Name of the vectors' axis.
    """

    axis: Axis

    def __init__(self, name: str, group: zarr.Group, dim: str) -> None:
        coords = {
            key: tuple(np.asarray(array[:]).tolist())
            for key, array in group.arrays()
            if _dims(array) == (dim,)
        }
        self.axis = Axis(dim, coords, group.path.split("/")[-2])
        super().__init__(name, group)


def quantity_place(stream: str, index: Mapping[str, int], quantity: str) -> int:
    """Place of ``quantity`` in the rows of the stream called ``stream``."""
    if quantity not in index:
        close = near(quantity, index)
        raise UnknownNameError(f"no quantity {quantity!r} in stream {stream!r}; {close}")
    return index[quantity]


def columns(stream: str, index: Mapping[str, int], modules: Sequence[str]) -> list[int]:
    """Places of ``modules`` on the module axis of the stream called ``stream``."""
    labels = [module_label(module) for module in modules]
    for label in labels:
        if label not in index:
            close = near(label, index)
            raise UnknownNameError(f"no module {label!r} in stream {stream!r}; {close}")
    return [index[label] for label in labels]


def _dims(array: zarr.Array[Any]) -> tuple[str | None, ...] | None:
    metadata: Any = array.metadata  # of zarr format 3, which has dimension names
    return metadata.dimension_names


def _variable(name: str, array: zarr.Array[Any]) -> Variable:
    attrs = {key: str(value) for key, value in array.attrs.asdict().items()}
    attrs.pop("coordinates", None)
    return Variable(name, attrs.pop("units", "1"), attrs.pop("long_name", name), attrs)
