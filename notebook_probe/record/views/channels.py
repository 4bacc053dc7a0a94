"""Vectors of every module's own length, one module's seen as xarray."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import xarray as xr

from notebook_probe.errors import UnknownNameError, near
from notebook_probe.record.format.elements import read_element
from notebook_probe.record.format.missing import NOT_MEASURED, measured
from notebook_probe.record.format.schema import INDEX_IN_MODULE, MODULE_OF_ELEMENT
from notebook_probe.record.format.source import StreamView
from notebook_probe.record.views import joined

__all__ = ["series"]


def series(ragged: Sequence[StreamView], module: str, quantity: str) -> xr.DataArray:
    """Return one quantity at one module over its measured steps, dims (step, index).

    Raises
    ------
    UnknownNameError
        For a module of which nothing is recorded.
    """
    matching = [
        stream for stream in ragged if any(one.name == quantity for one in stream.variables)
    ]
    owners = [read_element(label)[0] for stream in matching for label in stream.modules]
    if module not in owners:
        close = near(module, dict.fromkeys(owners))
        raise UnknownNameError(f"no {quantity} of module {module!r} is recorded; {close}")
    column = joined.join((), (), (), matching)[quantity]
    places = np.flatnonzero(column[MODULE_OF_ELEMENT] == module)
    indices = column[INDEX_IN_MODULE].values[places]
    cells = column.isel(element=places).to_numpy()
    out = np.full((column.sizes["step"], indices.max() + 1), NOT_MEASURED, np.float32)
    for index, values in zip(indices, cells, strict=True):  # twice where it came in two lengths
        # Where both lengths have a column, the measured one counts.
        out[:, index] = np.where(measured(values), values, out[:, index])
    is_measured = measured(out).any(axis=1)
    return xr.DataArray(
        out[is_measured],
        dims=("step", "index"),
        coords={
            "step": column.step[is_measured],
            "time": column.time[is_measured],
            "index": np.arange(out.shape[1]),
            "module": module,
        },
        name=quantity,
        attrs=column.attrs,
    )
