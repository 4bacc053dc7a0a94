"""A record as one netCDF-4 file: a group per stream, as in its tree.

Values are copied a few megabytes at a time, whatever the length of the run.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from notebook_probe.errors import RecordFormatError
from notebook_probe.record.export.netcdf_groups import Group
from notebook_probe.record.format.array_specs import STEP_ATTRS, TIME_ATTRS
from notebook_probe.record.format.missing import NOT_MEASURED
from notebook_probe.record.format.source import Event, ModuleRow
from notebook_probe.record.format.tables import event_columns, module_columns
from notebook_probe.record.store.destination import import_extra
from notebook_probe.record.views.joined import variable_attrs

__all__ = ["write_netcdf"]

SLAB_VALUES = 2**20
CHUNK_WIDTH = 16
"""Modules of a chunk: a series of one module is read without all others."""
PACKED = {"compression": "gzip", "compression_opts": 1, "shuffle": True}
MOST_ATTRIBUTES = 60_000
"""Attributes of a file; HDF5 counts those of one object in 16 bits."""
LONGEST_NAME, LONGEST_TEXT = 1_000, 60_000
"""Characters of an attribute's name, and bytes of its text; HDF5 keeps 64 kB of one at most."""
RESERVED = frozenset({"CLASS", "NAME", "DIMENSION_LIST", "REFERENCE_LIST", "_FillValue"})
"""Attributes by which the format itself keeps its dimensions and gaps."""


def write_netcdf(
    path: Path,
    attrs: Mapping[str, Any],
    groups: Iterable[Group],
    modules: Iterable[ModuleRow],
    events: Iterable[Event],
) -> None:
    """Write the groups, and the tables of modules and events.

    Raises
    ------
    MissingExtraError
        h5netcdf is not installed.
    RecordFormatError
        There are more attributes than a file can hold.
    """
    h5netcdf = import_extra("h5netcdf", "netcdf", "to_netcdf")
    if len(attrs) > MOST_ATTRIBUTES:
        raise RecordFormatError(
            f"the record has {len(attrs)} attributes; a netCDF file holds {MOST_ATTRIBUTES} at most"
        )
    with h5netcdf.File(path, "w") as file:
        _annotate(file, attrs)
        _write_table(file.create_group("modules"), "module", module_columns(tuple(modules)))
        _write_table(file.create_group("events"), "event", event_columns(tuple(events)))
        for group in groups:
            _write_group(file.create_group(group.path), group)


def _write_table(group: Any, dim: str, columns: Mapping[str, Any]) -> None:
    for name, (spec, values) in columns.items():
        if not group.dimensions:
            group.dimensions = {dim: len(values)}
        array = np.array(values, _dtype(spec.dtype))
        _write(group, name, (dim,), array, spec.attrs)


def _write_group(target: Any, group: Group) -> None:
    rows, stream = group.rows, group.stream
    target.dimensions = {"step": len(group.steps), **group.dims}
    _annotate(target, group.attrs)
    _write(target, "step", ("step",), group.steps, STEP_ATTRS)
    _write(target, "time", ("step",), stream.times(rows.start, rows.stop), TIME_ATTRS)
    for name, (dim, values) in group.coords.items():
        _write(target, name, (dim,), values, {"long_name": name.replace("_", " ")})
    slab = max(1, SLAB_VALUES // max(1, math.prod(group.dims.values())))
    also = " ".join(["time", *(name for name in group.coords if name not in group.dims)])
    for variable in group.variables:
        array = target.create_variable(
            variable.name,
            ("step", *group.dims),
            "<f4",
            fillvalue=NOT_MEASURED,
            **_chunked(group, slab),
        )
        _annotate(array, {**variable_attrs(variable), "coordinates": also})
        for first in range(rows.start, rows.stop, slab) if all(group.shape) else ():
            last = min(rows.stop, first + slab)
            values = stream.values(variable.name, first, last, group.columns)
            array[first - rows.start : last - rows.start] = values.reshape(-1, *group.shape[1:])


def _chunked(group: Group, slab: int) -> dict[str, Any]:
    """Chunks that are written once, of few columns; an empty array has none."""
    n_rows, width, *cell = group.shape
    if not all(group.shape):
        return {}
    return {**PACKED, "chunks": (min(slab, n_rows), min(CHUNK_WIDTH, width), *cell)}


def _write(
    group: Any, name: str, dims: tuple[str, ...], values: Any, attrs: Mapping[str, Any]
) -> None:
    variable = group.create_variable(name, dims, _dtype(values.dtype))
    if len(values):
        variable[:] = [*map(_text, values)] if values.dtype == object else values
    _annotate(variable, attrs)


def _dtype(dtype: Any) -> Any:
    if dtype in ("string", np.dtype(object)):
        return import_extra("h5py", "netcdf", "to_netcdf").string_dtype()
    return np.dtype(dtype)


def _annotate(target: Any, attrs: Mapping[str, Any]) -> None:
    """Set attributes; what netCDF has no type for is written as JSON."""
    for name, value in attrs.items():
        plain = isinstance(value, str | int | float) and not isinstance(value, bool)
        # netCDF has no slash in names: it is between groups.
        safe = _text(name).replace("/", "_").replace("\\0", "_")[:LONGEST_NAME] or "_"
        key = f"{safe}_" if safe in RESERVED else safe
        # The integers of netCDF have 64 bits.
        is_large = isinstance(value, int) and abs(value) >= 2**63
        text = value if plain and not is_large else json.dumps(value)
        target.attrs[key] = _short(_text(text)) if isinstance(text, str) else text


def _short(text: str) -> str:
    """Return the text, or its beginning where HDF5 has no room for more."""
    packed = text.encode()
    if len(packed) <= LONGEST_TEXT:
        return text
    return packed[:LONGEST_TEXT].decode(errors="ignore") + "…"


def _text(text: str) -> str:
    r"""Return the text, what HDF5 cannot hold spelled out: ``\0`` and unpaired surrogates."""
    return text.replace("\0", "\\0").encode(errors="backslashreplace").decode()
