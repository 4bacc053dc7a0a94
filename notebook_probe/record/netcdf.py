"""A record as one netCDF-4 file: a group per stream, as in its tree.

Values are copied a few megabytes at a time, whatever the length of the run.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from notebook_probe.axis import Axis
from notebook_probe.record.destination import needed
from notebook_probe.record.missing import NOT_MEASURED
from notebook_probe.record.schema import TIME_ATTRS
from notebook_probe.record.selection import Selection
from notebook_probe.record.source import Event, ModuleRow, StreamView
from notebook_probe.record.tables import event_columns, module_columns

__all__ = ["write_netcdf"]

SLAB_VALUES = 2**20
CHUNK_WIDTH = 16
"""Modules of a chunk: a series of one module is read without all others."""
PACKED = {"compression": "gzip", "compression_opts": 1, "shuffle": True}
RESERVED = frozenset({"CLASS", "NAME", "DIMENSION_LIST", "REFERENCE_LIST", "_FillValue"})
"""Attributes by which the format itself keeps its dimensions and gaps."""


def write_netcdf(
    path: Path,
    attrs: Mapping[str, Any],
    streams: Iterable[tuple[str, StreamView]],
    modules: Iterable[ModuleRow],
    events: Iterable[Event],
    selection: Selection,
) -> None:
    """Write the streams, by their path, and the tables of modules and events.

    Raises
    ------
    MissingExtraError
        When h5netcdf is not installed.
    """
    h5netcdf = needed("h5netcdf", "netcdf", "to_netcdf")
    with h5netcdf.File(path, "w") as file:
        _annotate(file, attrs)
        _write_table(file.create_group("modules"), "module", module_columns(tuple(modules)))
        _write_table(file.create_group("events"), "event", event_columns(tuple(events)))
        for place, stream in streams:
            _write_stream(file.create_group(place), stream, selection)


def _write_table(group: Any, dim: str, columns: Mapping[str, Any]) -> None:
    for name, (spec, values) in columns.items():
        if not group.dimensions:
            group.dimensions = {dim: len(values)}
        array = np.array(values, _dtype(spec.dtype))
        _write(group, name, (dim,), array, spec.attrs)


def _write_stream(group: Any, stream: StreamView, selection: Selection) -> None:
    axis: Axis | None = getattr(stream, "axis", None)
    steps = stream.steps()
    rows, modules = selection.rows(steps), selection.modules_of(stream)
    n_rows = rows.stop - rows.start
    cell = {} if axis is None else {axis.name: axis.size}
    group.dimensions = {"step": n_rows, "module": len(modules), **cell}
    step_attrs = {"units": "1", "long_name": "optimizer step"}
    _write(group, "step", ("step",), steps[rows], step_attrs)
    _write(group, "time", ("step",), stream.times(rows.start, rows.stop), TIME_ATTRS)
    _write(group, "module", ("module",), np.array(modules, object), {})
    coords = {} if axis is None else axis.coords
    for name, along in coords.items():
        _write(group, name, tuple(cell), np.array(along), {"long_name": name.replace("_", " ")})
    row_values = max(1, len(modules)) * math.prod(cell.values())
    slab = max(1, SLAB_VALUES // row_values)
    shape = (n_rows, len(modules), *cell.values())
    chunks = (min(slab, n_rows), min(CHUNK_WIDTH, len(modules)), *cell.values())
    packed = {**PACKED, "chunks": chunks} if all(shape) else {}
    also = " ".join(["time", *(name for name in coords if name not in cell)])
    for variable in selection.variables_of(stream):
        target = group.create_variable(
            variable.name, ("step", "module", *cell), "<f4", fillvalue=NOT_MEASURED, **packed
        )
        about = {"units": variable.units, "long_name": variable.long_name or variable.name}
        _annotate(target, {**variable.attrs, **about, "coordinates": also})
        for first, last in _spans(rows, slab) if modules else ():
            values = stream.values(variable.name, first, last, modules)
            target[first - rows.start : last - rows.start] = values


def _spans(rows: slice, length: int) -> Iterator[tuple[int, int]]:
    for first in range(rows.start, rows.stop, length):
        yield first, min(rows.stop, first + length)


def _write(
    group: Any, name: str, dims: tuple[str, ...], values: Any, attrs: Mapping[str, Any]
) -> None:
    variable = group.create_variable(name, dims, _dtype(values.dtype))
    if len(values):
        variable[:] = values
    _annotate(variable, attrs)


def _dtype(dtype: Any) -> Any:
    if dtype in ("string", np.dtype(object)):
        return needed("h5py", "netcdf", "to_netcdf").string_dtype()
    return np.dtype(dtype)


def _annotate(target: Any, attrs: Mapping[str, Any]) -> None:
    """Set attributes; what netCDF has no type for is written as JSON."""
    for name, value in attrs.items():
        plain = isinstance(value, str | int | float) and not isinstance(value, bool)
        safe = name.replace("/", "_").replace("\0", "_") or "_"
        key = f"{safe}_" if safe in RESERVED else safe
        text = value if plain else json.dumps(value)
        target.attrs[key] = text.replace("\0", "\\0") if isinstance(text, str) else text
