"""Heat map and lines above each other on one step axis: the panel as a static picture."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias

from matplotlib.figure import Figure

from notebook_probe.checks import step_window
from notebook_probe.figures.cells import heat_inches, row_names
from notebook_probe.figures.divergence import Apart, draw_apart
from notebook_probe.figures.heat import draw_heat, read_grid, scale_of
from notebook_probe.figures.labels import LINE_INCHES, MARGIN, labels_inches, title_lines
from notebook_probe.figures.lines import (
    PLAIN_LOOK,
    LineOptions,
    Series,
    colours_of,
    draw_lines,
    label_inches,
    recorded,
)
from notebook_probe.figures.overlay import OverlaidSeries
from notebook_probe.figures.style import FONT, INK, SOFT, Picture, drawing, number, text_inches
from notebook_probe.lineage.progress import n_steps
from notebook_probe.record.format.source import Source
from notebook_probe.record.views.thinning.heat_grid import Cells, Grid

__all__ = ["overview"]

# Inches: the picture, its lines and the color bar's column; above, between and below the plots.
WIDTH, LINES, BAR = 9.6, 2.5, 0.8
TOP, BETWEEN, BELOW, BOTTOM = 0.42, 0.5, 0.4, 0.32
Chart: TypeAlias = tuple[Sequence[Series], LineOptions]
"""Series that share a value axis, and how they are drawn."""
Words: TypeAlias = tuple[float, str, bool]
"""Inches from the left of the plots, a text, and whether it is the name of the run."""
BOLD = 1.12
"""Width of a bold text, compared with a plain one."""


def overview(
    source: Source,
    quantity: str,
    series: Sequence[Series] = (),
    *,
    window: tuple[float, float] | None = None,
    log_heat: bool | None = None,
    cells: Cells = "max",
    look: LineOptions = PLAIN_LOOK,
    colours: Mapping[Series, int] | None = None,
    grid: Grid | None = None,
    beside: Sequence[OverlaidSeries] = (),
    apart: Apart | None = None,
    charts: Sequence[Chart] = (),
) -> Figure:
    """Picture of a panel: the heat map of a quantity over the lines of some series.

    Parameters
    ----------
    source : Source
        A run or an opened record.
    quantity : str
        Quantity of the heat map.
    series : sequence of (module, quantity)
        Drawn as lines; without any there is only the heat map.
    window : (float, float), optional
        First and last step shown.
    log_heat : bool, optional
        Logarithmic colors, or linear ones; see `heat`.
    cells : {"max", "mean"}
        Value of a cell with several steps; see `heat`.
    look : LineOptions, optional
        Scales and smoothing of the lines.
    colours : mapping, optional
        Color index of each series; by default their order.
    grid : Grid, optional
        The cells of the map, where they have been worked out already.
    beside : sequence of OverlaidSeries
        Lines of other runs, overlaid.
    apart : Apart, optional
        Distance of other runs from this one, drawn instead of the values of this run.
    charts : sequence of (series, LineOptions), optional
        Series that share a value axis, and how they are drawn; by default all share one.

    Raises
    ------
    ValueError
        A window whose first step is above the last, or another value of cells.

    Examples
    --------
    >>> overview(run, "grad_norm", [("fc1", "grad_norm")])  # doctest: +SKIP
    """
    step_window(window)
    quantity, series = source.recorded_name(quantity), recorded(source, series)
    values = None if apart else grid or read_grid(source, quantity, window)
    shown = apart.ratio if apart else values
    names = [] if shown is None else row_names(shown)
    left = 0.25 + max([0.45, *map(text_inches, names)])
    right = max(BAR, label_inches(series), labels_inches([one.label for one in beside]))
    tall = 0.0 if shown is None else heat_inches(shown)
    n_charts = max(1, len(charts))
    below = n_charts * LINES + (n_charts - 1) * BELOW + BETWEEN if series else 0.0
    what = "" if shown is None else f"{quantity} {apart.compared}" if apart else quantity
    heading = _heading(source, what, WIDTH - left - MARGIN)
    height = TOP + LINE_INCHES * (len(heading) - 1) + tall + below + BOTTOM
    colour_of = colours_of(source, series, colours)

    def place(bottom: float, high: float) -> tuple[float, float, float, float]:
        return left / WIDTH, bottom / height, (WIDTH - left - right) / WIDTH, high / height

    with drawing:
        figure = Picture(figsize=(WIDTH, height))
        _draw_heading(figure, heading, left, height)
        if shown is not None:
            axes = figure.add_axes(place(BOTTOM + below, tall))
            bar_left = 1 - (right - 0.12) / WIDTH
            bar = figure.add_axes(
                (bar_left, (BOTTOM + below) / height, 0.12 / WIDTH, tall / height)
            )
            if apart is not None:
                draw_apart(axes, bar, apart, names)
            elif values is not None:
                scale = scale_of(source, quantity, values, log_heat, cells)
                draw_heat(axes, bar, values, names, scale, cells)
        if series:
            limits = None
            if shown is not None and look.x_axis == "step":
                limits = shown.first, shown.end + 1
            for number, (chosen, own) in enumerate(charts or [(series, look)]):
                bottom = BOTTOM + (len(charts or [0]) - 1 - number) * (LINES + BELOW)
                part = recorded(source, chosen)
                axes = figure.add_axes(place(bottom, LINES))
                draw_lines(
                    axes=axes,
                    source=source,
                    series=part,
                    window=window,
                    look=own,
                    colours=colour_of,
                    beside=[one for one in beside if one.series in part],
                )
                if limits:
                    axes.set_xlim(*limits)
    return figure


def _heading(source: Source, quantity: str, inches: float) -> list[list[Words]]:
    """Return the lines of the heading: one, if the name of the run and the rest have room there."""
    words = "   ".join(filter(None, [quantity, f"step {number(n_steps(source))}"]))
    names = title_lines(source.name, inches / BOLD)
    name: list[list[Words]] = [[(0.0, line, True)] for line in names]
    beside = BOLD * text_inches(names[-1]) + 0.2
    if len(names) == 1 and beside + text_inches(words) <= inches:
        return [[*name[0], (beside, words, False)]]
    return [*name, *([(0.0, line, False)] for line in title_lines(words, inches))]


def _draw_heading(
    figure: Figure, heading: Sequence[Sequence[Words]], left: float, height: float
) -> None:
    """Draw the heading: the run in ink, the rest soft."""
    for row, line in enumerate(heading):
        top = 1 - (0.24 + LINE_INCHES * row) / height
        for x, text, is_name in line:
            shade, weight = (INK, "bold") if is_name else (SOFT, "normal")
            place = (left + x) / WIDTH
            figure.text(place, top, text, color=shade, va="center", weight=weight, **FONT)
