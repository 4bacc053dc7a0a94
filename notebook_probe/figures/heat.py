"""The module x step heat map as a static picture."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colorbar import Colorbar
from matplotlib.colors import LogNorm, Normalize
from matplotlib.figure import Figure

from notebook_probe.errors import UnknownNameError, near
from notebook_probe.figures.cells import N_COLUMNS, draw_map, heat_inches, row_names
from notebook_probe.figures.style import (
    HEADING,
    SOFT,
    Picture,
    drawing,
    plain_axes,
    text_inches,
    ticks,
)
from notebook_probe.record.format.source import Source
from notebook_probe.record.views.thinning.heat_grid import (
    MEASURED,
    Cells,
    Grid,
    HeatGrid,
)

__all__ = ["draw_heat", "heat", "read_grid"]


def heat(
    source: Source,
    quantity: str,
    *,
    window: tuple[float, float] | None = None,
    log: bool = True,
    cells: Cells = "max",
) -> Figure:
    """Heat map of one quantity: a row per module, steps to the right.

    Hatched cells were not measured; NaN and infinity have a colour of their own. Columns are equal
    numbers of steps.

    Parameters
    ----------
    source : Source
        A run or an opened record.
    quantity : str
    window : (float, float), optional
        First and last step shown.
    log : bool
        Logarithmic colours; linear ones are used where no value is positive.
    cells : {"max", "mean"}
        What a cell of several steps shows: the largest value, which keeps a spike, or their mean.

    Raises
    ------
    UnknownNameError
        When no value of ``quantity`` is recorded in the window.

    Examples
    --------
    >>> heat(run, "grad_norm").savefig("grad_norm.png")  # doctest: +SKIP
    """
    quantity = source.recorded_name(quantity)
    grid = read_grid(source, quantity, window)
    if grid is None:
        known = sorted({one.name for stream in source.streams.values() for one in stream.variables})
        raise UnknownNameError(f"no value of {quantity!r} is recorded; {near(quantity, known)}")
    names = row_names(grid)
    left = 0.25 + max(map(text_inches, names))
    width, height = 9.0, 0.75 + heat_inches(grid)
    with drawing:
        figure = Picture(figsize=(width, height))
        bottom, tall = 0.3 / height, 1 - 0.75 / height
        wide = 1 - (left + 1.0) / width
        axes = figure.add_axes((left / width, bottom, wide, tall))
        bar = figure.add_axes((left / width + wide + 0.15 / width, bottom, 0.13 / width, tall))
        draw_heat(axes, bar, grid, names, log, cells)
        axes.set_title(quantity, loc="left", color=SOFT, pad=8, fontproperties=HEADING)
    return figure


def read_grid(
    source: Source, quantity: str, window: tuple[float, float] | None = None
) -> Grid | None:
    """The cells of the picture; None when nothing is recorded."""
    reduced = HeatGrid(quantity, N_COLUMNS, window)
    reduced.read_new(source)
    return reduced.grid([row.name for row in source.modules])


def draw_heat(axes: Axes, bar: Axes, grid: Grid, names: list[str], log: bool, cells: Cells) -> None:
    """Draw the cells, their names, the colour bar and what the other cells mean."""
    norm = _norm(grid, log, cells)
    values = np.maximum(grid.values(cells), norm.vmin or 0.0)
    shown = np.ma.masked_where(grid.state != MEASURED, values)
    draw_map(axes, grid, shown, names, cmap="viridis", norm=norm)
    _draw_bar(bar, norm)


def _norm(grid: Grid, log: bool, cells: Cells) -> Normalize:
    limits = grid.limits(log, cells)
    log = log and limits is not None
    low, high = limits or grid.limits(False, cells) or (0.0, 1.0)
    if log:
        return LogNorm(low, high) if high > low else LogNorm(low / 2, high * 2)
    return Normalize(low, high) if high > low else Normalize(low - 0.5, high + 0.5)


def _draw_bar(bar: Axes, norm: Normalize) -> None:
    Colorbar(bar, ScalarMappable(norm, "viridis"))
    plain_axes(bar, grid=False)
    ticks(bar.yaxis, isinstance(norm, LogNorm))
