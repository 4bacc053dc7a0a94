"""The module x step heat map as a static picture."""

from __future__ import annotations

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from notebook_probe.checks import step_window
from notebook_probe.errors import UnknownNameError, near
from notebook_probe.figures.cells import N_COLUMNS, draw_map, heat_inches, row_names
from notebook_probe.figures.colour_maps import MAPS, draw_bar, masked, norm_of
from notebook_probe.figures.labels import MARGIN, extra_inches, title_lines
from notebook_probe.figures.style import HEADING, SOFT, Picture, drawing, text_inches
from notebook_probe.record.format.ranges import is_share
from notebook_probe.record.format.source import Source, check_opened
from notebook_probe.record.views.thinning.colour_scale import ColourScale, colour_scale
from notebook_probe.record.views.thinning.heat_grid import (
    MEASURED,
    Cells,
    Grid,
    HeatGrid,
)

__all__ = ["draw_heat", "heat", "read_grid", "scale_of"]


def heat(
    source: Source,
    quantity: str,
    *,
    window: tuple[float, float] | None = None,
    log: bool | None = None,
    cells: Cells = "max",
) -> Figure:
    """Heat map of one quantity: a row per module, steps to the right.

    A value stands until its module is measured again, is detached, or has no value although one
    was due; all other cells are hatched. NaN and infinity have a separate color. Columns are equal
    numbers of steps. Shares go from white to blue, values of both signs from blue to orange. A few
    outliers do not stretch the colors: the bar is pointed where there are values beyond it.

    Parameters
    ----------
    source : Source
        A run or an opened record.
    quantity : str
    window : (float, float), optional
        First and last step shown.
    log : bool, optional
        Logarithmic colors, or linear ones; by default logarithmic except for shares and for values
        of both signs. Linear ones are used if no value is positive.
    cells : {"max", "mean"}
        Value of a cell with several steps: the largest, which keeps a spike, or their mean.

    Raises
    ------
    UnknownNameError
        No value of ``quantity`` is recorded in the window.
    ValueError
        A window whose first step is above the last, or another value of cells.

    Examples
    --------
    >>> heat(run, "grad_norm").savefig("grad_norm.png")  # doctest: +SKIP
    """
    step_window(window)
    check_opened(source)
    quantity = source.recorded_name(quantity)
    grid = read_grid(source, quantity, window)
    if grid is None:
        raise UnknownNameError(_why_empty(source, quantity, window))
    names = row_names(grid)
    left = 0.25 + max(map(text_inches, names))
    width = 9.0
    title = title_lines(quantity, width - left - MARGIN)
    above = 0.45 + extra_inches(title)
    height = above + 0.3 + heat_inches(grid)
    with drawing:
        figure = Picture(figsize=(width, height))
        bottom, tall = 0.3 / height, 1 - (above + 0.3) / height
        wide = 1 - (left + 1.0) / width
        axes = figure.add_axes((left / width, bottom, wide, tall))
        bar = figure.add_axes((left / width + wide + 0.15 / width, bottom, 0.13 / width, tall))
        draw_heat(axes, bar, grid, names, scale_of(source, quantity, grid, log, cells), cells)
        axes.set_title("\n".join(title), loc="left", color=SOFT, pad=8, fontproperties=HEADING)
    return figure


def _why_empty(source: Source, quantity: str, window: tuple[float, float] | None) -> str:
    """Return why there is nothing to draw: no such name, no row of it, or vectors."""
    numbers = {one.name for stream in source.streams.values() for one in stream.variables}
    vectors = {one.name for stream in source.elements.values() for one in stream.variables}
    if quantity in vectors:
        return f"{quantity!r} is a quantity of vectors; figures.vectors(run, {quantity!r})"
    why = f"no value of {quantity!r} is recorded"
    if quantity not in numbers:
        return f"{why}; {near(quantity, sorted(numbers))}"
    return f"{why} from step {window[0]:g} to {window[1]:g}" if window else f"{why} yet"


def read_grid(
    source: Source, quantity: str, window: tuple[float, float] | None = None
) -> Grid | None:
    """Return the cells of the picture; None when nothing is recorded."""
    reduced = HeatGrid(quantity, N_COLUMNS, window)
    reduced.read_new(source)
    return reduced.grid([row.name for row in source.modules])


def scale_of(
    source: Source, quantity: str, grid: Grid, log: bool | None, cells: Cells
) -> ColourScale:
    """Return the colors of a map: linear if no value has a logarithm."""
    variables = (one for stream in source.streams.values() for one in stream.variables)
    share = any(is_share(one) for one in variables if one.name == quantity)
    values = grid.values(cells)
    scale = colour_scale(grid.mean, values, share=share, log=log)
    if scale.low is None and scale.log:
        return colour_scale(grid.mean, values, share=share, log=False)
    return scale


def draw_heat(
    axes: Axes, bar: Axes, grid: Grid, names: list[str], scale: ColourScale, cells: Cells
) -> None:
    """Draw the cells, their names, the color bar and the legend of the other cells."""
    norm = norm_of(scale)
    shown = masked(grid.values(cells), grid.state == MEASURED, norm)
    draw_map(axes, grid, shown, names, cmap=MAPS[scale.colours], norm=norm)
    draw_bar(bar, scale)
