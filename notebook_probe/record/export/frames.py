"""A record as tidy tables: one row per measurement."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pandas as pd
import xarray as xr

from notebook_probe.record.format.missing import measured
from notebook_probe.record.format.schema import INDEX_IN_MODULE, MODULE_OF_ELEMENT
from notebook_probe.record.views.selection import Selected

__all__ = ["frames"]

WINDOW_VALUES = 2**21
"""Cells that are looked at together."""
OWNERS = {"module": "module", "element": MODULE_OF_ELEMENT}
"""The coordinate that tells the module of a column."""
COLUMNS = ("step", "time", "module", "quantity", "value")


def frames(data: xr.Dataset, selection: Selected) -> Iterator[pd.DataFrame]:
    """Yield tables of some steps each, in the order of step, module, quantity.

    Columns are step, time, module, quantity, value and, for vectors, the coordinate along each of
    their axes, NaN for others. At least one table is yielded, which may be empty.
    """
    names = [str(name) for name in data.data_vars if name in selection.quantities]
    if not names:
        yield pd.DataFrame(columns=list(COLUMNS))
        return
    picked = data[names]
    for dim, name in ((dim, name) for dim, name in OWNERS.items() if name in picked.coords):
        owners = picked[name].to_numpy()
        picked = picked.isel({dim: [owner in selection.modules for owner in owners]})
    kinds: dict[tuple[str, ...], list[str]] = {}
    for name in names:
        kinds.setdefault(tuple(map(str, picked[name].dims)), []).append(name)
    owned = [picked[OWNERS[dims[0]]].to_numpy().tolist() for dims in kinds]
    modules = list(dict.fromkeys(module for owners in owned for module in owners))
    also = [name for dims in kinds for name in _along(dims)]
    steps = picked["step"].to_numpy()
    rows = selection.rows(steps)
    cells = sum(array.size for array in picked.data_vars.values()) // max(1, len(steps))
    window = max(1, WINDOW_VALUES // max(1, cells))
    # One table at least: an empty one still tells the columns.
    for first in range(rows.start, max(rows.stop, rows.start + 1), window):
        part = picked.isel(step=slice(first, min(rows.stop, first + window)))
        tables = [_tidy(part, dims, kinds[dims], names, modules) for dims in kinds]
        yield _stacked(tables, also)


def _along(dims: tuple[str, ...]) -> list[str]:
    """Return the coordinates that distinguish the elements of a vector."""
    return [*([INDEX_IN_MODULE] if dims[0] == "element" else []), *dims[2:]]


def _tidy(
    part: xr.Dataset,
    dims: tuple[str, ...],
    of_kind: Sequence[str],
    names: Sequence[str],
    modules: Sequence[str],
) -> pd.DataFrame:
    """Return the measured cells of quantities with equal dims: column, step, maybe an axis."""
    stacked = np.stack([part[name].to_numpy() for name in of_kind], axis=-1)
    values = np.moveaxis(np.moveaxis(stacked, 1, 0), -1, 2)  # (step, column, quantity, *axis)
    step, column, quantity, *elements = places = np.nonzero(measured(values))
    numbers = {module: number for number, module in enumerate(modules)}
    owners = [numbers[module] for module in part[OWNERS[dims[0]]].to_numpy().tolist()]
    codes = [names.index(name) for name in of_kind]
    at = {"element": column, **dict(zip(dims[2:], elements, strict=True))}
    # Categories hold a small code for each row instead of a text.
    return pd.DataFrame(
        {
            "step": part["step"].to_numpy()[step],
            "time": part["time"].to_numpy()[step],
            "module": pd.Categorical.from_codes(np.array(owners, np.intp)[column], list(modules)),
            "quantity": pd.Categorical.from_codes(np.array(codes)[quantity], list(names)),
            "value": values[places],
            **{name: part[name].to_numpy()[at[str(part[name].dims[0])]] for name in _along(dims)},
        }
    )


def _stacked(tables: Sequence[pd.DataFrame], along: Sequence[str]) -> pd.DataFrame:
    """Concatenate tables, sorted by step."""
    wide = [table.reindex(columns=[*COLUMNS, *along]) for table in tables]
    if len(wide) == 1:
        return wide[0]
    table = pd.concat(wide, ignore_index=True)
    return table.sort_values("step", kind="stable", ignore_index=True)
