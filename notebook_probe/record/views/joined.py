"""Streams seen as xarray: joined on the step axis (data, cube), exact (tree), one column (series).

Only the step axes are read before the values are accessed. If two streams measured the same cell,
the value of the stream of greater rank (`branches`) counts; of equal rank, that of the one with
more rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
import xarray as xr

from notebook_probe.errors import UnknownNameError, near
from notebook_probe.record.format.array_specs import STEP_ATTRS
from notebook_probe.record.format.elements import read_element
from notebook_probe.record.format.missing import NOT_MEASURED, measured
from notebook_probe.record.format.schema import (
    INDEX_IN_MODULE,
    KEEP_BITS,
    MODULE_OF_ELEMENT,
    module_label,
)
from notebook_probe.record.format.source import Floats, Steps, StreamView, Variable, VectorView
from notebook_probe.record.views.dataset import Dataset
from notebook_probe.record.views.lazy import Index, lazy_variable
from notebook_probe.record.views.own_widths import Widths, width_of
from notebook_probe.record.views.parts import (
    JoinedStream,
    columns_of,
    labels_along,
    parts_of,
    steps_of,
    variables_of,
    whole_parts_of,
)

__all__ = ["join", "join_parts", "series", "stack", "tree", "variable_attrs"]


def join(
    streams: Iterable[StreamView],
    modules: Sequence[str],
    vectors: Iterable[VectorView] = (),
    ragged: Iterable[StreamView] = (),
) -> xr.Dataset:
    """Dataset with dims (module, step): every quantity, on the union of the streams' steps.

    Parameters
    ----------
    modules : sequence of str
        Definition order; what is recorded and not in it (parameters, logged scalars) follows.
    vectors : iterable of VectorView
        Their quantities have their axis as a third dimension.
    ragged : iterable of StreamView
        Vectors of every module's own length: dims (element, step).
    """
    return join_parts(parts_of(streams, vectors, ragged), modules)


def join_parts(parts: Sequence[JoinedStream], modules: Sequence[str]) -> xr.Dataset:
    """Join parts; see `join`."""
    labels, steps = columns_of(parts, modules), steps_of(parts)
    variables = {}
    for name, variable in variables_of(parts).items():
        matching = [part for part in parts if name in part.variables]
        # The uppermost stream first: its measured cells are not overwritten by others.
        matching.sort(key=lambda part: part.rank, reverse=True)
        variables[name] = lazy_variable(
            (matching[0].columns, "step", *matching[0].cell_dims),
            (len(labels[matching[0].columns]), len(steps), *matching[0].cell),
            partial(_read_joined, matching, name, labels[matching[0].columns], steps),
            variable_attrs(variable),
        )
    coords = {**_modules(labels["module"]), **_steps(parts, steps), **_along(parts)}
    return Dataset(variables, coords=coords | _elements(labels["element"]))


def stack(data: xr.Dataset) -> xr.DataArray:
    """Return the numbers of ``data`` stacked: dims (..., module, quantity, step), unread."""
    above = [dim for dim in data.dims if dim == "rank"]
    data = data.drop_dims(set(data.dims) - {*above, "module", "step"})  # and with them all vectors
    names = list(data.data_vars)
    dims = (*map(str, above), "module", "quantity", "step")

    def read(*places: Index) -> Floats:
        place = dict(zip(dims, places, strict=True))
        quantities = place.pop("quantity")
        picked = [data[names[i]].isel(place).to_numpy() for i in quantities]
        empty = np.empty((*map(len, places[:-2]), 0, len(places[-1])), np.float32)
        return np.stack(picked, axis=-2) if picked else empty

    sizes = {**data.sizes, "quantity": len(names)}
    coords = {
        **data.coords,
        "quantity": np.array(names, object),
        "units": ("quantity", np.array([data[name].attrs["units"] for name in names], object)),
    }
    variable = lazy_variable(dims, tuple(sizes[dim] for dim in dims), read)
    return xr.DataArray(variable, coords=coords, name="value")


def tree(
    streams: Iterable[StreamView],
    vectors: Iterable[VectorView] = (),
    ragged: Iterable[StreamView] = (),
    named: Iterable[StreamView] = (),
) -> xr.DataTree:
    """Return one node per stream with its own step axis; dims (step, module, ...) as on disk.

    Streams of vectors are below their group: ``tree["hist/every_1"]``; so are scalars that share an
    array: ``tree["names/logged"]``.
    """
    nodes = {part.path: part for part in whole_parts_of(streams, vectors, ragged, named)}
    return xr.DataTree.from_dict({path: _exact(part) for path, part in nodes.items()})


def series(
    streams: Iterable[StreamView],
    modules: Sequence[str],
    module: str,
    quantity: str,
    vectors: Iterable[VectorView] = (),
) -> xr.DataArray:
    """Return one quantity at one module over its measured steps.

    Dims (step,), for a vector (step, its axis). Bins of varying width have it as a coordinate.

    Raises
    ------
    UnknownNameError
        For a quantity or a module of which nothing is recorded.
    """
    label = module_label(module)
    parts = parts_of(streams, vectors)
    variables = variables_of(parts)
    if quantity not in variables:
        if module in variables and any(module_label(quantity) in part.modules for part in parts):
            raise UnknownNameError(
                f"series({module!r}, {quantity!r}): {module!r} is a quantity and {quantity!r} a "
                f"module; the module comes first: series({quantity!r}, {module!r})"
            )
        raise UnknownNameError(f"no quantity {quantity!r} is recorded; {near(quantity, variables)}")
    matching = [part for part in parts if quantity in part.variables]
    if not any(label in part.modules for part in matching):
        known = labels_along(matching, modules)
        raise UnknownNameError(
            f"no {quantity} of module {label!r} is recorded; {near(label, known)}"
        )
    # Loaded once, as the mask below and the result read the same values.
    column = join_parts(matching, modules)[quantity].sel(module=label).load()
    along = tuple(range(1, column.ndim))  # of a vector
    column = column[measured(column.to_numpy()).any(axis=along)]
    telling = [part for part in parts if isinstance(part.stream, Widths)]
    telling = [part for part in telling if width_of(quantity) in part.variables]
    return _with_widths(column, join_parts(telling, modules)) if telling else column


def _with_widths(column: xr.DataArray, widths: xr.Dataset) -> xr.DataArray:
    width = widths[width_of(str(column.name))].sel(module=column.module.item(), step=column.step)
    return column.assign_coords({width_of(str(column.dims[-1])): ("step", width.to_numpy())})


def variable_attrs(variable: Variable) -> dict[str, str | int]:
    """Return the attributes of a quantity."""
    long_name = variable.long_name or variable.name
    rounding = {} if variable.keep_bits is None else {KEEP_BITS: variable.keep_bits}
    return {**variable.attrs, "units": variable.units, "long_name": long_name, **rounding}


def _modules(labels: Sequence[str]) -> dict[str, xr.Variable]:
    return {"module": xr.Variable("module", np.array([*labels, None], object)[:-1])}


def _names(labels: Sequence[str]) -> dict[str, xr.Variable]:
    return {"name": xr.Variable("name", np.array([*labels, None], object)[:-1])}


def _steps(parts: Sequence[JoinedStream], steps: Steps) -> dict[str, xr.Variable]:
    read, about = partial(_read_times, parts, steps), {"long_name": "wall time"}
    return {
        "step": xr.Variable("step", steps, STEP_ATTRS),
        "time": lazy_variable(("step",), steps.shape, read, about, "datetime64[ms]"),
    }


def _elements(labels: Sequence[str]) -> dict[str, xr.Variable]:
    """Coordinates of the columns of vectors of every module's own length."""
    if not labels:
        return {}
    elements = [read_element(label) for label in labels]
    modules = np.array([*(module for module, _, _ in elements), None], object)[:-1]
    indices = np.array([index for _, index, _ in elements])
    return {
        MODULE_OF_ELEMENT: xr.Variable("element", modules),
        INDEX_IN_MODULE: xr.Variable("element", indices),
    }


def _along(parts: Iterable[JoinedStream]) -> dict[str, xr.Variable]:
    """Coordinates along the axes of vectors."""
    axes = [part.axis for part in parts if part.axis is not None]
    return {
        name: xr.Variable(axis.name, np.array(values))
        for axis in axes
        for name, values in axis.coords.items()
    }


def _exact(part: JoinedStream) -> xr.Dataset:
    shape = (len(part.steps), len(part.modules), *part.cell)
    dims = ("step", part.columns, *part.cell_dims)

    def read(name: str, rows: Index, columns: Index, *bins: Index) -> Floats:
        return _picked(_cells(part, name, rows, [part.modules[i] for i in columns]), bins)

    variables = {
        name: lazy_variable(dims, shape, partial(read, name), variable_attrs(variable))
        for name, variable in part.variables.items()
    }
    columns = {"module": _modules, "element": _elements, "name": _names}[part.columns]
    coords = {**columns(part.modules), **_steps([part], part.steps), **_along([part])}
    return xr.Dataset(variables, coords=coords)


def _read_joined(
    parts: Sequence[JoinedStream],
    name: str,
    labels: Sequence[str],
    steps: Steps,
    modules: Index,
    places: Index,
    *bins: Index,
) -> Floats:
    """Cells (module, step, ...) of a joined variable, from the uppermost stream first."""
    out = np.full((len(modules), len(places), *parts[0].cell), NOT_MEASURED, np.float32)
    for part in parts:
        rows, found = _matching_rows(part.steps, steps, places)
        own = frozenset(part.modules)
        here = np.flatnonzero([labels[module] in own for module in modules])
        if len(found) and len(here):
            names = [labels[module] for module in modules[here]]
            # Without fancy indexing the usual case, one stream with all cells, needs no extra copy.
            whole = len(found) == len(places) and len(here) == len(modules)
            cells = slice(None) if whole else np.ix_(here, found)
            above, new = out[cells], _cells(part, name, rows[found], names).swapaxes(0, 1)
            out[cells] = np.where(measured(above), above, new)
    return _picked(out, bins)


def _read_times(parts: Sequence[JoinedStream], steps: Steps, places: Index) -> npt.NDArray[Any]:
    """Read the wall times from the first stream that has the step."""
    out = np.full(len(places), -1, np.int64)
    # In reverse, so that the first part has the last word.
    for part in reversed(parts):
        rows, found = _matching_rows(part.steps, steps, places)
        if len(found):
            first, last = int(rows[found].min()), int(rows[found].max())
            out[found] = part.stream.times(first, last + 1)[rows[found] - first]
    return out.astype("datetime64[ms]")


def _matching_rows(own: Steps, steps: Steps, places: Index) -> tuple[Index, Index]:
    """Return a stream's row for each of ``places`` on the joined axis, and the valid places."""
    if len(own) == len(steps):  # the joined axis has every step of every stream
        return places, np.arange(len(places))
    wanted = steps[places]
    rows = np.searchsorted(own, wanted).clip(max=max(0, len(own) - 1))
    return rows, np.flatnonzero(own[rows] == wanted) if len(own) else rows[:0]


def _picked(cells: Floats, bins: tuple[Index, ...]) -> Floats:
    """Return the wanted elements of each vector."""
    return cells[..., bins[0]] if bins else cells


def _cells(part: JoinedStream, name: str, rows: Index, modules: Sequence[str]) -> Floats:
    """Values (row, module, ...) at scattered rows: one read of the range that spans them."""
    if not len(rows):
        return np.empty((0, len(modules), *part.cell), np.float32)
    # A chunk is decoded as a whole anyway, and wanted rows are mostly close together.
    first, last = int(rows.min()), int(rows.max())
    span = part.stream.values(name, first, last + 1, modules)
    is_span = len(rows) == len(span) and (rows[0], rows[-1]) == (first, last)
    return span if is_span and (np.diff(rows) == 1).all() else span[rows - first]
