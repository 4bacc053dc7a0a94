"""Evenly spaced rows among those that a `KeepN` schedule has measured."""

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
    """Return the streams with a quantity of a module; in ``ragged`` columns are elements."""
    named = [(stream, set(stream.modules)) for stream in streams]
    named += [(one, {read_element(label)[0] for label in one.modules}) for one in ragged]
    return [
        stream
        for stream, modules in named
        if module in modules and any(one.name == quantity for one in stream.variables)
    ]


def kept_rows(column: xr.DataArray, streams: Sequence[StreamView]) -> xr.DataArray:
    """Return the retained rows of a series in each stream; all rows of other schedules.

    Parameters
    ----------
    column : DataArray
        Has a dimension ``step``.
    streams : sequence of StreamView
        Streams with the series; none for arrays, which have no schedule.
    """
    if not streams:
        return column
    steps = np.concatenate([np.empty(0, np.int64), *map(_kept_steps, streams)])
    return column.isel(step=np.flatnonzero(np.isin(column["step"], steps)))


def _kept_steps(stream: StreamView) -> Steps:
    steps = stream.steps()
    # Evaluations have the same schedule, under a prefixed name.
    schedule = KeepN.of_stream(stream.name.removeprefix(EVALUATION))
    if schedule is None or not len(steps):
        return steps
    return steps[(steps - schedule.offset) % schedule.stride(int(steps[-1])) == 0]
