"""Of rows that a `KeepN` schedule has measured, those that are evenly spaced now."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import xarray as xr

from notebook_probe.record.format.elements import read_element
from notebook_probe.record.format.schema import EVALUATION
from notebook_probe.record.format.source import Steps, StreamView
from notebook_probe.schedules import KeepN

__all__ = ["kept_rows", "streams_of"]


def streams_of(
    streams: Iterable[StreamView], ragged: Iterable[StreamView], module: str, quantity: str
) -> list[StreamView]:
    """Those in which a quantity of a module may lie; in ``ragged`` their columns are elements."""
    named = [(stream, set(stream.modules)) for stream in streams]
    named += [(one, {read_element(label)[0] for label in one.modules}) for one in ragged]
    return [
        stream
        for stream, modules in named
        if module in modules and any(one.name == quantity for one in stream.variables)
    ]


def kept_rows(column: xr.DataArray, streams: Sequence[StreamView]) -> xr.DataArray:
    """The rows of a series that are kept of each of its streams; of one on another schedule, all.

    Parameters
    ----------
    column : DataArray
        With a dimension ``step``.
    streams : sequence of StreamView
        Those in which it lies; none of arrays, which are on no schedule.
    """
    if not streams:
        return column
    steps = np.concatenate([np.empty(0, np.int64), *map(_kept_steps, streams)])
    return column.isel(step=np.flatnonzero(np.isin(column["step"], steps)))


def _kept_steps(stream: StreamView) -> Steps:
    steps = stream.steps()
    schedule = KeepN.of_stream(stream.name.removeprefix(EVALUATION))
    if schedule is None or not len(steps):
        return steps
    return steps[(steps - schedule.offset) % schedule.stride(int(steps[-1])) == 0]
