"""The numbers behind a panel as files: tidy CSV and netCDF."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np
import xarray as xr

from notebook_probe.compare import Alignment
from notebook_probe.compare.tables import Doubles
from notebook_probe.errors import ProbeError
from notebook_probe.explorer.messages.selection import PanelSelection, Series
from notebook_probe.explorer.others.drawn_lines import window_there
from notebook_probe.explorer.save.others import OtherRun, Others
from notebook_probe.record.format.missing import measured
from notebook_probe.record.format.source import Steps, StreamView
from notebook_probe.record.formulas import is_formula, with_formulas
from notebook_probe.record.views.joined import join
from notebook_probe.record.views.xarray_views import RunSource

__all__ = ["ExportError", "csv", "netcdf"]

COLUMNS = "module,quantity,step,time,value"
MOST_VALUES = 2_000_000
"""More does not go through a browser in a bearable time."""


_At: TypeAlias = Callable[[Steps], Doubles]


class ExportError(ProbeError, ValueError):
    """An export without content, with too much, or without a library for the format."""


@dataclass(frozen=True, slots=True)
class _SeriesPiece:
    """Rows ``start:stop`` of one series in one stream."""

    stream: StreamView
    series: Series
    start: int
    stop: int


def csv(source: RunSource, selection: PanelSelection, others: Others) -> bytes:
    """Tidy text: a row per measured value in the panel.

    Columns: module, quantity, step, time (UTC), value. With other runs the first column is the run,
    and, unless runs are aligned by step, the last one is the position on their axis: ``by_time`` in
    seconds, ``by_samples``, ``by_epochs``, or ``by_loss`` as a step of this run.
    """
    pieces = list(_pieces(source, selection))
    if not selection.others:
        _check(source, pieces)
        return "".join([f"{COLUMNS}\n", *_rows(pieces)]).encode(errors="backslashreplace")
    return _of_all(source, selection, pieces, others).encode(errors="backslashreplace")


def _of_all(
    source: RunSource, selection: PanelSelection, own: list[_SeriesPiece], others: Others
) -> str:
    """Return the table of this run and of the overlaid runs."""

    def read(run: OtherRun) -> tuple[str, list[_SeriesPiece], _At]:
        window = window_there(selection.window, run.alignment)
        home = selection.home if run.location in selection.divided_by else ""
        asked = replace(selection, window=window, home=home)
        return run.name, list(_pieces(run.record, asked)), run.alignment.x_of_other

    places = Alignment(source, source, selection.aligned).x_of_this
    tables = [(source.name, own, places), *others.each(read)]
    _check(source, [piece for _, pieces, _ in tables for piece in pieces])
    by_step = selection.aligned == "step"
    parts = [f"run,{COLUMNS}" + ("\n" if by_step else f",by_{selection.aligned}\n")]
    for name, pieces, at in tables:
        parts += _rows(pieces, f"{_quoted(name)},", None if by_step else at)
    return "".join(parts)


def _rows(pieces: list[_SeriesPiece], before: str = "", at: _At | None = None) -> Iterator[str]:
    """Lines of text; ``at`` returns the positions of steps on an axis."""
    for piece in pieces:
        (module, quantity), stream = piece.series, piece.stream
        values = stream.values(quantity, piece.start, piece.stop, [module])[:, 0]
        kept = measured(values)
        steps = stream.steps(piece.start, piece.stop)[kept]
        times = stream.times(piece.start, piece.stop)[kept].astype("datetime64[ms]")
        head = f"{before}{_quoted(module)},{_quoted(quantity)}"
        places = [""] * len(steps) if at is None else map(_cell, at(steps))
        for step, time, value, place in zip(steps, times, values[kept], places, strict=True):
            yield f"{head},{step},{time}Z,{value}{place}\n"


def _cell(place: float) -> str:
    """Return a cell of a table, empty for a step without position."""
    return f",{place}" if place == place else ","


def netcdf(source: RunSource, selection: PanelSelection) -> bytes:
    """Return a dataset: dims (module, step), a variable per quantity, NaN = not measured."""
    recorded = [one for one in selection.series if not is_formula(one[1])]
    pieces = list(_pieces(source, selection.looking_at("series", recorded)))
    _check(source, pieces)
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
    """Return netCDF format 3, which has no 64-bit integers: large steps become doubles."""
    if data.sizes["step"] and int(data.step[-1]) > np.iinfo(np.int32).max:
        data = data.assign_coords(step=data.step.astype(np.float64))
    data.time.encoding = {"units": "seconds since 1970-01-01", "dtype": "float64"}
    try:
        return bytes(data.to_netcdf(engine="scipy"))
    except (ImportError, ValueError) as error:
        raise ExportError(
            f"netCDF needs scipy (pip install scipy), or open the record itself: {error}"
        ) from error


def _check(source: RunSource, pieces: Sequence[_SeriesPiece]) -> None:
    """Check that there is something to export, and not too much for a download.

    Raises
    ------
    ExportError
        Nothing is recorded, or too much.
    """
    n_values = sum(piece.stop - piece.start for piece in pieces)
    if not n_values:
        raise ExportError("nothing is recorded in this view yet")
    if n_values > MOST_VALUES:
        raise ExportError(
            f"{n_values:,} values are more than a download takes ({MOST_VALUES:,}); zoom in, or "
            f"open {source.location} with xarray: Code shows how"
        )


def _pieces(source: RunSource, selection: PanelSelection) -> Iterator[_SeriesPiece]:
    """Yield the series on the screen, and every module of the heat map."""
    low, high = selection.window or (-np.inf, np.inf)
    for stream in with_formulas(source.streams, selection.series).values():
        steps = stream.steps()
        start, stop = np.searchsorted(steps, low), np.searchsorted(steps, high, "right")
        quantities = {variable.name for variable in stream.variables}
        home = [(module, selection.home) for module in stream.modules]
        for series in dict.fromkeys([*selection.series, *home]):
            if series[0] in stream.modules and series[1] in quantities and start < stop:
                yield _SeriesPiece(stream, series, int(start), int(stop))


def _quoted(text: str) -> str:
    return '"' + text.replace('"', '""') + '"' if set(text) & set(',"\n') else text
