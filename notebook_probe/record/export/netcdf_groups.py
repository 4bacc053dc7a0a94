"""The groups of a netCDF file: what of each kind of stream goes into one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from notebook_probe.record.format.elements import read_element
from notebook_probe.record.format.schema import (
    BLOBS,
    INDEX_IN_MODULE,
    MODULE_OF_ELEMENT,
    NAMES,
    VECTORS,
)
from notebook_probe.record.format.source import (
    ROOT,
    ArrayView,
    Steps,
    StreamView,
    Variable,
    VectorView,
)
from notebook_probe.record.views.selection import Selected

__all__ = ["Group", "of_arrays", "of_elements", "of_names", "of_numbers", "of_vectors"]


@dataclass(frozen=True, slots=True)
class Group:
    """The selected part of a stream."""

    path: str
    stream: StreamView
    rows: slice
    steps: Steps
    columns: Sequence[str]
    """Selected columns of the stream."""
    variables: Sequence[Variable]
    dims: Mapping[str, int]
    """Dimensions after the step; arrays have none for their only column."""
    coords: Mapping[str, tuple[str, npt.NDArray[Any]]]
    """Dimension and values, by name."""
    attrs: Mapping[str, str] = field(default_factory=dict)

    @property
    def shape(self) -> tuple[int, ...]:
        return len(self.steps), *self.dims.values()


def of_numbers(stream: StreamView, selection: Selected) -> Group:
    """Variables (step, module)."""
    modules = selection.modules_of(stream)
    coords = {"module": ("module", _texts(modules))}
    return _group(stream.name, stream, selection, modules, {"module": len(modules)}, coords)


def of_names(stream: StreamView, selection: Selected) -> Group:
    """Return one variable (step, name) of the scalars selected by name."""
    names = [name for name in stream.modules if name in selection.quantities]
    names = names if ROOT in selection.modules else []
    coords = {"name": ("name", _texts(names))}
    path, dims = f"{NAMES}/{stream.name}", {"name": len(names)}
    steps = stream.steps()
    rows = selection.rows(steps)
    return Group(
        path=path,
        stream=stream,
        rows=rows,
        steps=steps[rows],
        columns=names,
        variables=stream.variables,
        dims=dims,
        coords=coords,
    )


def of_vectors(stream: VectorView, selection: Selected) -> Group:
    """Variables (step, module, axis)."""
    axis, modules = stream.axis, selection.modules_of(stream)
    along = {name: (axis.name, np.array(values)) for name, values in axis.coords.items()}
    coords = {"module": ("module", _texts(modules)), **along}
    dims = {"module": len(modules), axis.name: axis.size}
    return _group(f"{axis.group}/{stream.name}", stream, selection, modules, dims, coords)


def of_elements(stream: StreamView, selection: Selected) -> Group:
    """Variables (step, element), module after module."""
    labels = selection.elements_of(stream)
    read = [read_element(label) for label in labels]
    coords = {
        MODULE_OF_ELEMENT: ("element", _texts([module for module, _, _ in read])),
        INDEX_IN_MODULE: ("element", np.array([index for _, index, _ in read], np.int64)),
    }
    dims = {"element": len(labels)}
    return _group(f"{VECTORS}/{stream.name}", stream, selection, labels, dims, coords)


def of_arrays(view: ArrayView, selection: Selected) -> Group:
    """Return one variable (step, ...) of one module, which is an attribute."""
    (module,) = view.modules
    dims = {f"dim_{place}": size for place, size in enumerate(view.cell)}
    path = f"{BLOBS}/{view.variables[0].name}/{view.name}"
    return _group(
        path=path,
        stream=view,
        selection=selection,
        columns=[module],
        dims=dims,
        coords={},
        attrs={"module": module},
    )


def _group(
    path: str,
    stream: StreamView,
    selection: Selected,
    columns: Sequence[str],
    dims: Mapping[str, int],
    coords: Mapping[str, tuple[str, npt.NDArray[Any]]],
    attrs: Mapping[str, str] | None = None,
) -> Group:
    steps = stream.steps()
    rows, variables = selection.rows(steps), selection.variables_of(stream)
    return Group(
        path=path,
        stream=stream,
        rows=rows,
        steps=steps[rows],
        columns=columns,
        variables=variables,
        dims=dims,
        coords=coords,
        attrs=attrs or {},
    )


def _texts(names: Sequence[str]) -> npt.NDArray[Any]:
    return np.array([*names, None], object)[:-1]
