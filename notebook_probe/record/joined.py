"""Streams seen as xarray: joined on the step axis (data, cube), exact (tree), one column (series).

Nothing but the step axes is read before it is looked at. Where two streams measured the same cell,
the one with more rows is taken.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial, reduce

import numpy as np
import xarray as xr

from notebook_probe.errors import UnknownNameError, near
from notebook_probe.record.lazy import Index, lazy_variable
from notebook_probe.record.missing import NOT_MEASURED, measured
from notebook_probe.record.schema import module_label
from notebook_probe.record.source import Floats, Steps, StreamView, Variable

__all__ = ["join", "series", "stack", "tree"]


@dataclass(frozen=True, slots=True)
class _Part:
    """A stream as long as it was when the join was made."""

    stream: StreamView
    variables: Mapping[str, Variable]
    modules: tuple[str, ...]
    steps: Steps
    times: Steps


def join(streams: Iterable[StreamView], modules: Sequence[str]) -> xr.Dataset:
    """Dataset with dims (module, step): every quantity, on the union of the streams' steps.

    Parameters
    ----------
    modules : sequence of str
        Definition order; what is recorded and not in it (parameters, logged scalars) follows.
    """
    return _joined(_parts(streams), modules)


def _joined(parts: Sequence[_Part], modules: Sequence[str]) -> xr.Dataset:
    labels = _labels(parts, modules)
    every = [part.steps for part in parts] or [np.empty(0, np.int64)]
    steps = reduce(np.union1d, every)
    times = np.full(len(steps), -1, np.int64)
    for part in reversed(parts):
        times[np.searchsorted(steps, part.steps)] = part.times
    variables = {
        name: lazy_variable(
            ("module", "step"),
            (len(labels), len(steps)),
            partial(_read_joined, [p for p in parts if name in p.variables], name, labels, steps),
            _attrs(variable),
        )
        for name, variable in _variables(parts).items()
    }
    return xr.Dataset(variables, coords=_coords(labels, steps, times))


def stack(data: xr.Dataset) -> xr.DataArray:
    """``data`` with its variables stacked: dims (module, quantity, step), still unread."""
    names = list(data.data_vars)

    def read(modules: Index, quantities: Index, steps: Index) -> Floats:
        place = {"module": modules, "step": steps}
        picked = [data[names[i]].isel(place).to_numpy() for i in quantities]
        shape = (len(modules), len(steps))
        return np.stack(picked, axis=1) if picked else np.empty((shape[0], 0, shape[1]), np.float32)

    shape = (data.sizes["module"], len(names), data.sizes["step"])
    coords = {
        **data.coords,
        "quantity": np.array(names, object),
        "units": ("quantity", np.array([data[name].attrs["units"] for name in names], object)),
    }
    variable = lazy_variable(("module", "quantity", "step"), shape, read)
    return xr.DataArray(variable, coords=coords, name="value")


def tree(streams: Iterable[StreamView]) -> xr.DataTree:
    """One node per stream with its own step axis; dims (step, module) as on disk."""
    nodes = {part.stream.name: _exact(part) for part in _parts(streams)}
    return xr.DataTree.from_dict(nodes)


def series(
    streams: Iterable[StreamView], modules: Sequence[str], module: str, quantity: str
) -> xr.DataArray:
    """One quantity at one module over the steps at which it was measured, dims (step,).

    Raises
    ------
    UnknownNameError
        For a quantity or a module of which nothing is recorded.
    """
    label = module_label(module)
    parts = _parts(streams)
    variables = _variables(parts)
    if quantity not in variables:
        raise UnknownNameError(f"no quantity {quantity!r} is recorded; {near(quantity, variables)}")
    having = [part for part in parts if quantity in part.variables]
    if not any(label in part.modules for part in having):
        known = _labels(having, modules)
        raise UnknownNameError(
            f"no {quantity} of module {label!r} is recorded; {near(label, known)}"
        )
    column = _joined(having, modules)[quantity].sel(module=label).load()
    return column[measured(column.to_numpy())]


def _parts(streams: Iterable[StreamView]) -> list[_Part]:
    parts = []
    for stream in streams:
        n = stream.n_rows
        variables = {variable.name: variable for variable in stream.variables}
        steps, times = stream.steps(0, n), stream.times(0, n)
        parts.append(_Part(stream, variables, stream.modules, steps, times))
    return sorted(parts, key=lambda part: -len(part.steps))


def _labels(parts: Iterable[_Part], modules: Sequence[str]) -> list[str]:
    recorded = dict.fromkeys(label for part in parts for label in part.modules)
    return [*(m for m in modules if m in recorded), *(r for r in recorded if r not in set(modules))]


def _variables(parts: Iterable[_Part]) -> dict[str, Variable]:
    found: dict[str, Variable] = {}
    for part in parts:
        for name, variable in part.variables.items():
            found.setdefault(name, variable)
    return found


def _attrs(variable: Variable) -> dict[str, str]:
    long_name = variable.long_name or variable.name
    return {**variable.attrs, "units": variable.units, "long_name": long_name}


def _coords(labels: Sequence[str], steps: Steps, times: Steps) -> dict[str, xr.Variable]:
    return {
        "module": xr.Variable("module", np.array([*labels, None], object)[:-1]),
        "step": xr.Variable("step", steps, {"units": "1", "long_name": "optimizer step"}),
        "time": xr.Variable("step", times.astype("datetime64[ms]"), {"long_name": "wall time"}),
    }


def _exact(part: _Part) -> xr.Dataset:
    shape = (len(part.steps), len(part.modules))

    def read(name: str, rows: Index, columns: Index) -> Floats:
        return _cells(part, name, rows, [part.modules[i] for i in columns])

    variables = {
        name: lazy_variable(("step", "module"), shape, partial(read, name), _attrs(variable))
        for name, variable in part.variables.items()
    }
    return xr.Dataset(variables, coords=_coords(part.modules, part.steps, part.times))


def _read_joined(
    parts: Sequence[_Part],
    name: str,
    labels: Sequence[str],
    steps: Steps,
    modules: Index,
    places: Index,
) -> Floats:
    """Cells (module, step) of a joined variable, from the stream with most rows first."""
    out = np.full((len(modules), len(places)), NOT_MEASURED, np.float32)
    wanted = steps[places]
    for part in parts:
        rows = np.searchsorted(part.steps, wanted).clip(max=max(0, len(part.steps) - 1))
        found = np.flatnonzero(part.steps[rows] == wanted) if len(part.steps) else rows[:0]
        here = np.flatnonzero([labels[module] in part.modules for module in modules])
        if len(found) and len(here):
            names = [labels[module] for module in modules[here]]
            cells = np.ix_(here, found)
            kept, new = out[cells], _cells(part, name, rows[found], names).T
            out[cells] = np.where(measured(kept), kept, new)
    return out


def _cells(part: _Part, name: str, rows: Index, modules: Sequence[str]) -> Floats:
    """Values (row, module) at scattered rows: one read of the range that spans them."""
    if not len(rows):
        return np.empty((0, len(modules)), np.float32)
    first = int(rows.min())
    span = part.stream.values(name, first, int(rows.max()) + 1, modules)
    return span[rows - first]
