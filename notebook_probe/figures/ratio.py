"""Divergence of runs at every module and step, with the steps of separation, as a picture."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.figure import Figure

from notebook_probe.checks import step_window
from notebook_probe.compare.parting import parting
from notebook_probe.compare.ratio_grid import ratio as read_ratio
from notebook_probe.compare.ratio_grid import runs_of
from notebook_probe.errors import UnknownNameError
from notebook_probe.figures.cells import N_COLUMNS, heat_inches, row_names
from notebook_probe.figures.divergence import Apart, draw_apart
from notebook_probe.figures.labels import LINE_INCHES, MARGIN, extra_inches, title_lines
from notebook_probe.figures.style import (
    HEADING,
    INK,
    SOFT,
    Picture,
    drawing,
    text_inches,
)
from notebook_probe.record.views.xarray_views import RunSource

__all__ = ["ratio"]


def ratio(
    source: RunSource,
    others: RunSource | Sequence[RunSource],
    quantity: str,
    *,
    by: str = "step",
    window: tuple[float, float] | None = None,
    factor: float = 2.0,
    rows: int | None = None,
) -> Figure:
    """Heat map of a run divided by another, orange above, blue below, flags where they part.

    Cut at ×10. For a quantity that is signed or often zero it is the difference in units of its
    spread, cut at 3, and the title says so. Hatched cells are not measured in both.

    Parameters
    ----------
    source : Source
        A run or an opened record.
    others : Source or sequence of Source
        Another, or the seeds of a group, whose geometric mean is compared with.
    quantity : str
        A name or an alias.
    by : str
        Alignment of steps: ``"step"``, ``"time"``, ``"samples"``, ``"epochs"`` or a scalar.
    window : (float, float), optional
        First and last step shown.
    factor, rows
        Definition of divergence; see `notebook_probe.compare.parting`.

    Raises
    ------
    UnknownNameError
        No value of ``quantity`` is recorded in this run, or a series that the axis needs is
        missing; several others without it are named below.
    ValueError
        A window whose first step is above the last.

    Examples
    --------
    >>> ratio(run, nbp.open_run("runs/other.zarr"), "grad_norm")  # doctest: +SKIP
    """
    step_window(window)
    runs = runs_of(others)
    found = read_ratio(source, runs, quantity, by=by, n_columns=N_COLUMNS, window=window)
    if found is None:
        raise UnknownNameError(f"no value of {quantity!r} is recorded in {source.name} there")
    parted = parting(source, runs, quantity, factor=factor, rows=rows, by=by)
    names = row_names(found)
    left = 0.25 + max(map(text_inches, names))
    left_out = dict.fromkeys(parted.left_out + found.left_out)
    words = [parted.text + (f", by {by}" if by != "step" else ""), *left_out]
    below = 0.35 + LINE_INCHES * len(words)
    width = 9.0
    shown = Apart(found, parted)
    heading = f"{parted.quantity}: {parted.this} {shown.compared}"
    title = title_lines(heading, width - left - MARGIN)
    height = 0.45 + extra_inches(title) + heat_inches(found) + below
    with drawing:
        figure = Picture(figsize=(width, height))
        bottom, tall, wide = below / height, heat_inches(found) / height, 1 - (left + 1.1) / width
        axes = figure.add_axes((left / width, bottom, wide, tall))
        bar = figure.add_axes((left / width + wide + 0.15 / width, bottom, 0.13 / width, tall))
        draw_apart(axes, bar, shown, names)
        axes.set_title("\n".join(title), loc="left", color=SOFT, pad=8, fontproperties=HEADING)
        for row, text in enumerate(words):
            y, shade = (below - 0.4 - LINE_INCHES * row) / height, SOFT if row else INK
            figure.text(left / width, y, text, color=shade, va="center", fontproperties=HEADING)
    return figure
