"""Arrays of every module's own shape, seen as xarray."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import partial

import xarray as xr

from notebook_probe.errors import UnknownNameError, near
from notebook_probe.record.format.source import ArrayView, Floats
from notebook_probe.record.views import joined
from notebook_probe.record.views.branches.branches import Branches
from notebook_probe.record.views.lazy import Index, lazy_variable

__all__ = ["by_quantity", "one"]


class _Arrays(Mapping[str, xr.DataArray]):
    """Arrays of one quantity by module, each made on access.

    A damaged array raises an error only on access.
    """

    def __init__(self, views: Iterable[ArrayView]) -> None:
        self._views = {view.modules[0]: view for view in views}

    def __getitem__(self, module: str) -> xr.DataArray:
        return _array(self._views[module])

    def __iter__(self) -> Iterator[str]:
        return iter(self._views)

    def __len__(self) -> int:
        return len(self._views)

    def __repr__(self) -> str:
        return f"<arrays of {', '.join(self._views)}>"


def by_quantity(
    views: Iterable[ArrayView], branches: Branches
) -> dict[str, Mapping[str, xr.DataArray]]:
    """Return one array per quantity and module, for one history."""
    quantities: dict[str, list[ArrayView]] = {}
    for view in views:
        quantities.setdefault(view.variables[0].name, []).append(view)
    return {quantity: _Arrays(branches.history(same)) for quantity, same in quantities.items()}


def one(
    arrays: Mapping[str, Mapping[str, xr.DataArray]], module: str, quantity: str
) -> xr.DataArray:
    """Raise UnknownNameError if it does not exist."""
    if module not in arrays[quantity]:
        close = near(module, arrays[quantity])
        raise UnknownNameError(f"no {quantity} of module {module!r} is recorded; {close}")
    return arrays[quantity][module]


def _array(view: ArrayView) -> xr.DataArray:
    n_rows, variable = view.n_rows, view.variables[0]
    dims = ("step", *(f"dim_{place}" for place in range(len(view.cell))))
    shape, read = (n_rows, *view.cell), partial(_read, view, variable.name)
    lazy = lazy_variable(dims, shape, read, joined.variable_attrs(variable))
    coords = {
        "step": xr.Variable("step", view.steps(0, n_rows)),
        "time": xr.Variable("step", view.times(0, n_rows).astype("datetime64[ms]")),
        "module": view.modules[0],
    }
    return xr.DataArray(lazy, coords=coords, name=variable.name)


def _read(view: ArrayView, quantity: str, rows: Index, *places: Index) -> Floats:
    """Read the rows that span the wanted ones at once."""
    # Rows share chunks, so reading the whole range is faster than reading row by row.
    first = int(rows.min()) if len(rows) else 0
    stop = int(rows.max()) + 1 if len(rows) else 0
    cells = view.values(quantity, first, stop)[:, 0][rows - first]
    for axis, wanted in enumerate(places, start=1):
        cells = cells.take(wanted, axis)
    return cells
