"""A record as tidy tables: one row per measurement."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np
import pandas as pd
import xarray as xr

from notebook_probe.record.missing import measured
from notebook_probe.record.selection import Selection

__all__ = ["frames"]

WINDOW_VALUES = 2**21
"""Cells that are looked at together."""
COLUMNS = ("step", "time", "module", "quantity", "value")


def frames(data: xr.Dataset, selection: Selection) -> Iterator[pd.DataFrame]:
    """Tables of what was measured at some steps each, in the order of step, module, quantity.

    Columns are step, time, module, quantity, value and, where there are vectors, the coordinate
    along each of their axes, NaN for numbers. At least one table comes, if only an empty one.
    """
    modules = [module for module in data["module"].to_numpy() if module in selection.modules]
    names = [str(name) for name in data.data_vars if name in selection.quantities]
    if not names:
        yield pd.DataFrame(columns=list(COLUMNS))
        return
    kinds: dict[tuple[str, ...], list[str]] = {}
    for name in names:
        kinds.setdefault(tuple(map(str, data[name].dims[2:])), []).append(name)
    picked = data[names].sel(module=modules)
    cells = sum(math.prod(picked[name].shape[2:]) for name in names) * len(modules)
    rows = selection.rows(picked["step"].to_numpy())
    window = max(1, WINDOW_VALUES // max(1, cells))
    for first in range(rows.start, max(rows.stop, rows.start + 1), window):
        part = picked.isel(step=slice(first, min(rows.stop, first + window)))
        tables = [_tidy(part, along, of_kind, names) for along, of_kind in kinds.items()]
        yield _stacked(tables, [dim for along in kinds for dim in along])


def _tidy(
    part: xr.Dataset, along: tuple[str, ...], of_kind: Sequence[str], names: Sequence[str]
) -> pd.DataFrame:
    """The measured cells of quantities that share their axes."""
    stacked = np.stack([part[name].to_numpy() for name in of_kind], axis=-1)
    values = np.moveaxis(np.moveaxis(stacked, 1, 0), -1, 2)  # (step, module, quantity, *along)
    step, module, quantity, *elements = places = np.nonzero(measured(values))
    codes = np.array([names.index(name) for name in of_kind], np.intp)
    return pd.DataFrame(
        {
            "step": part["step"].to_numpy()[step],
            "time": part["time"].to_numpy()[step],
            "module": pd.Categorical.from_codes(module, part["module"].to_numpy()),
            "quantity": pd.Categorical.from_codes(codes[quantity], list(names)),
            "value": values[places],
            **{
                dim: part[dim].to_numpy()[place] for dim, place in zip(along, elements, strict=True)
            },
        }
    )


def _stacked(tables: Sequence[pd.DataFrame], along: Sequence[str]) -> pd.DataFrame:
    """One table of several, sorted by step."""
    wide = [table.reindex(columns=[*COLUMNS, *along]) for table in tables]
    if len(wide) == 1:
        return wide[0]
    table = pd.concat(wide, ignore_index=True)
    return table.sort_values("step", kind="stable", ignore_index=True)
