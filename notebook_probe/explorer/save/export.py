"""Export of a panel: its picture, the code that makes it, its numbers."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Literal, TypeAlias

from notebook_probe.errors import ProbeError
from notebook_probe.explorer.draw.heat_rows import folded, within
from notebook_probe.explorer.messages.axis_entries import axis_order
from notebook_probe.explorer.messages.selection import PanelSelection
from notebook_probe.explorer.messages.value_scale import LineChart, line_charts, settled
from notebook_probe.explorer.messages.wire import VERSION, Exported
from notebook_probe.explorer.save.code import code
from notebook_probe.explorer.save.files import csv, netcdf
from notebook_probe.explorer.save.others import Others
from notebook_probe.record.formulas import is_formula
from notebook_probe.record.views.thinning.heat_grid import Grid, HeatGrid
from notebook_probe.record.views.xarray_views import RunSource

if TYPE_CHECKING:
    from notebook_probe.figures import LineOptions
    from notebook_probe.figures.divergence import Apart
    from notebook_probe.figures.overlay import OverlaidSeries

__all__ = ["FileKind", "export", "look_of", "picture"]

N_COLUMNS = 700

FileKind: TypeAlias = Literal["png", "svg", "csv", "netcdf", "code"]


def picture(
    kind: Literal["png", "svg"],
    source: RunSource,
    selection: PanelSelection,
    grid: Grid | None = None,
    beside: Sequence[OverlaidSeries] = (),
    apart: Apart | None = None,
) -> bytes:
    """Return the panel as a picture: this run and overlaid lines, or its divergence."""
    from notebook_probe.figures import overview  # matplotlib, for pictures alone
    from notebook_probe.figures.style import encoded

    shown = line_charts(source, selection)
    selection = settled(source, selection)
    charts = [(one.series, look_of(one, selection)) for one in shown]
    if apart is None:
        grid = grid or _grid(source, selection)
    figure = overview(
        source,
        selection.home,
        selection.series,
        window=selection.window,
        log_heat=bool(selection.log_heat),
        cells=selection.cells,
        look=look_of(LineChart(selection.series, bool(selection.log_y)), selection),
        charts=charts,
        colours=selection.drawn_colors,
        grid=None if grid is None else folded(within(grid, selection.rows), selection.folds),
        beside=beside,
        apart=apart,
    )
    return encoded(figure, kind)


def look_of(chart: LineChart, selection: PanelSelection) -> LineOptions:
    """Return how the lines of a chart are drawn."""
    from notebook_probe.figures import LineOptions

    chosen = chart.chosen
    return LineOptions(
        log_y=chart.log_y,
        log_x=selection.log_x,
        smooth=chosen.smooth,
        x_axis=selection.x_axis,
        y_limits=chosen.y_limits,
        outliers=chosen.outliers,
    )


def _grid(source: RunSource, selection: PanelSelection) -> Grid | None:
    """Return the cells, with rows in the order of the panel."""
    reduced = HeatGrid(selection.home, N_COLUMNS, selection.window)
    reduced.read_new(source)
    return reduced.grid(axis_order(source))


def _picture(
    kind: Literal["png", "svg"], source: RunSource, selection: PanelSelection, others: Others
) -> bytes:
    chosen = settled(source, selection)
    return picture(kind, source, selection, beside=others.lines(chosen), apart=others.apart(chosen))


def _netcdf(source: RunSource, selection: PanelSelection, others: Others) -> bytes:
    if selection.others:
        others.notes.append("of this run alone")
    if any(is_formula(quantity) for _, quantity in selection.series):
        others.notes.append("without formulas, which the code has")
    return netcdf(source, selection)


def _code(source: RunSource, selection: PanelSelection, _: Others) -> bytes:
    charts = line_charts(source, selection)
    return code(source.location, settled(source, selection), charts).encode()


Make: TypeAlias = Callable[[RunSource, PanelSelection, Others], bytes]

FILES: dict[FileKind, tuple[str, str, Make]] = {
    "png": ("png", "image/png", partial(_picture, "png")),
    "svg": ("svg", "image/svg+xml", partial(_picture, "svg")),
    "csv": ("csv", "text/csv", csv),
    "netcdf": ("nc", "application/x-netcdf", _netcdf),
    "code": ("py", "text/x-python", _code),
}


def export(
    kind: FileKind, source: RunSource, selection: PanelSelection
) -> tuple[Exported, list[memoryview]]:
    """Return the message with a file, or with the reason why there is none."""
    ending, mime, make = FILES[kind]
    name = re.sub(r"[^\w.-]+", "-", source.name).strip("-.") or "run"
    message: Exported = {
        "v": VERSION,
        "type": "exported",
        "filename": f"{name}.{ending}",
        "mime": mime,
    }
    others = Others(source, selection)
    try:
        content = make(source, selection, others)
    except ProbeError as error:
        return {**message, "error": str(error)}, []
    except Exception as error:  # the click is answered, whatever a library does
        return {**message, "error": f"{type(error).__name__}: {error}"}, []
    if kind == "code":
        return {**message, "text": content.decode()}, []
    if others.notes:
        message["note"] = f"{message['filename']}, {', '.join(others.notes)},"
    return message, [memoryview(content)]
