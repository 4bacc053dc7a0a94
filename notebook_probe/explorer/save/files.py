"""The numbers behind a panel as files: tidy CSV and netCDF."""

from __future__ import annotations

import io
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import xarray as xr

from notebook_probe.errors import ProbeError
from notebook_probe.explorer.messages.selection import PanelSelection, Series
from notebook_probe.record.format.missing import measured
from notebook_probe.record.format.source import Source, StreamView
from notebook_probe.record.views.joined import join

__all__ = ["ExportError", "csv", "netcdf"]

MOST_VALUES = 2_000_000
"""More does not go through a browser in a bearable time."""


class ExportError(ProbeError, ValueError):
    """There is nothing to export, or too much of it, or no library for the format."""


@dataclass(frozen=True, slots=True)
class _Piece:
    """Rows ``start:stop`` of one series in one stream."""

    stream: StreamView
    series: Series
    start: int
    stop: int


def csv(source: Source, selection: PanelSelection) -> bytes:
    """Tidy text: a row per measured value of what the panel shows.

    Columns: module, quantity, step, time (UTC), value.
    """
    text = io.StringIO()
    text.write("module,quantity,step,time,value\n")
    for piece in _checked(source, selection):
        (module, quantity), stream = piece.series, piece.stream
        values = stream.values(quantity, piece.start, piece.stop, [module])[:, 0]
        kept = measured(values)
        steps = stream.steps(piece.start, piece.stop)[kept]
        times = stream.times(piece.start, piece.stop)[kept].astype("datetime64[ms]")
        head = f"{_quoted(module)},{_quoted(quantity)}"
        rows = zip(steps, times, values[kept], strict=True)
        text.writelines(f"{head},{step},{time}Z,{value}\n" for step, time, value in rows)
    return text.getvalue().encode()


def netcdf(source: Source, selection: PanelSelection) -> bytes:
    """The same as a dataset: dims (module, step), a variable per quantity, NaN = not measured."""
    pieces = _checked(source, selection)
    order = [row.name for row in source.modules]
    shown = {piece.series for piece in pieces}
    joined = join(source.streams.values(), order)
    modules = [name for name in joined.module.values if name in {module for module, _ in shown}]
    data = joined[sorted({quantity for _, quantity in shown})].sel(module=modules)
    if selection.window is not None:
        data = data.sel(step=slice(*selection.window))
    data = data.load().dropna("step", how="all")
    for quantity in data.data_vars:
        drawn = np.array([(name, quantity) in shown for name in modules])
        data[quantity] = data[quantity].where(xr.DataArray(drawn, dims="module"))
    return _netcdf_bytes(data.assign_coords(module=np.array(modules, dtype=str)))


def _netcdf_bytes(data: xr.Dataset) -> bytes:
    """In format 3, which holds no 64-bit integers: steps beyond 32 bits become doubles."""
    if data.sizes["step"] and int(data.step[-1]) > np.iinfo(np.int32).max:
        data = data.assign_coords(step=data.step.astype(np.float64))
    data.time.encoding = {"units": "seconds since 1970-01-01", "dtype": "float64"}
    try:
        return bytes(data.to_netcdf(engine="scipy"))
    except (ImportError, ValueError) as error:
        raise ExportError(
            f"netCDF needs scipy (pip install scipy), or open the record itself: {error}"
        ) from error


def _checked(source: Source, selection: PanelSelection) -> list[_Piece]:
    """Every piece of what is shown.

    Raises
    ------
    ExportError
        When there is nothing, or too much for a download.
    """
    pieces = list(_pieces(source, selection))
    n_values = sum(piece.stop - piece.start for piece in pieces)
    if not n_values:
        raise ExportError("nothing is recorded in this view yet")
    if n_values > MOST_VALUES:
        raise ExportError(
            f"{n_values:,} values are more than a download takes ({MOST_VALUES:,}); zoom in, or "
            f"open {source.location} with xarray: Code shows how"
        )
    return pieces


def _pieces(source: Source, selection: PanelSelection) -> Iterator[_Piece]:
    """The series on the screen, and every module of the heat map."""
    low, high = selection.window or (-np.inf, np.inf)
    for stream in source.streams.values():
        steps = stream.steps()
        start, stop = np.searchsorted(steps, low), np.searchsorted(steps, high, "right")
        quantities = {variable.name for variable in stream.variables}
        home = [(module, selection.home) for module in stream.modules]
        for series in dict.fromkeys([*selection.series, *home]):
            if series[0] in stream.modules and series[1] in quantities and start < stop:
                yield _Piece(stream, series, int(start), int(stop))


def _quoted(text: str) -> str:
    return '"' + text.replace('"', '""') + '"' if set(text) & set(',"\n') else text
