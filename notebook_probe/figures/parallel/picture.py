"""Runs as lines across an axis for each of their columns: parallel coordinates."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.collections import LineCollection
from matplotlib.colorbar import Colorbar
from matplotlib.colors import ListedColormap, Normalize
from matplotlib.figure import Figure

from notebook_probe.errors import UnknownNameError, near
from notebook_probe.figures.parallel.axis import NOWHERE, ParallelAxis, axis_of
from notebook_probe.figures.style import (
    EDGE,
    FONT,
    INK,
    SOFT,
    Picture,
    drawing,
    plain_axes,
    shortened,
)

__all__ = ["parallel"]

BETWEEN, LEFT, RIGHT, TOP, BOTTOM, TALL = 1.25, 0.85, 1.35, 0.62, 0.3, 2.9
"""Inches."""
LONGEST_NAME = 15
COLOURS = ListedColormap(colormaps["viridis"](np.linspace(0.0, 0.88, 256)))
"""Colors without yellow, which is invisible on white."""
NO_VALUE = "#8c959f"


def parallel(columns: Mapping[str, Sequence[Any]], colour: str = "") -> Figure:
    """Parallel coordinates: a line for each run, over an axis for each column.

    Numbers over more than a decade have a logarithmic axis, anything but numbers has categories;
    runs without a finite value pass below the axis. Lines with a higher value of ``colour`` are
    above the others.

    Parameters
    ----------
    columns : mapping of str to values
        One value per run, None for a missing one.
    colour : str
        The column for the color of the lines; without it all have one color.

    Raises
    ------
    ValueError
        For fewer than two columns, no runs, or columns of different lengths.
    UnknownNameError
        For a color by what is no column.

    Examples
    --------
    >>> parallel({"lr": [1e-3, 1e-1], "accuracy": [0.91, 0.95]}, "accuracy")  # doctest: +SKIP
    """
    if len(columns) < 2:
        raise ValueError(f"parallel({[*columns]}): at least two columns are expected")
    n_values = {name: len(values) for name, values in columns.items()}
    if len({*n_values.values()}) > 1:
        raise ValueError(f"values per column: {n_values}; one per run is expected in each")
    if not any(n_values.values()):
        raise ValueError("there are no runs to draw: every column is empty")
    if colour and colour not in columns:
        raise UnknownNameError(f"colour={colour!r} is no column; {near(colour, columns)}")
    axes_of = {name: axis_of(values) for name, values in columns.items()}
    width = LEFT + BETWEEN * (len(columns) - 1) + RIGHT
    height = TOP + TALL + BOTTOM
    with drawing:
        figure = Picture(figsize=(width, height))
        place = (LEFT / width, BOTTOM / height, 1 - (LEFT + RIGHT) / width, TALL / height)
        axes = figure.add_axes(place)
        axes.set(xlim=(0, len(columns) - 1), ylim=(NOWHERE - 0.03, 1.0))
        axes.axis("off")
        for x, (name, one) in enumerate(axes_of.items()):
            _draw_axis(axes, x, name, one)
        _draw_runs(axes, [one.heights for one in axes_of.values()], axes_of.get(colour))
        if colour in axes_of and axes_of[colour].is_number:
            left, below = 1 - (RIGHT - 0.45) / width, place[3] * -NOWHERE / (1 - NOWHERE)
            bar = figure.add_axes((left, place[1] + below, 0.12 / width, place[3] - below))
            _draw_bar(bar, colour, axes_of[colour])
    return figure


def _draw_axis(axes: Axes, x: int, name: str, one: ParallelAxis) -> None:
    axes.plot([x, x], [0, 1], color=EDGE, linewidth=1.2, zorder=1, clip_on=False)
    around = {"facecolor": "white", "edgecolor": "none", "alpha": 0.75, "pad": 0.6}
    for height, text in one.ticks:
        axes.plot([x - 0.02, x], [height] * 2, color=SOFT, linewidth=0.8, clip_on=False, zorder=3)
        axes.text(
            x - 0.035, height, text, ha="right", va="center", color=SOFT, zorder=4, bbox=around,
            parse_math=False, **FONT,
        )  # fmt: skip
    if (one.heights == NOWHERE).any():
        axes.text(
            x - 0.035, NOWHERE, "none", ha="right", va="center", color=SOFT, zorder=4, bbox=around,
            style="italic", **FONT,
        )  # fmt: skip
    above, _, last = name.rpartition(".")
    scale = "log" if one.is_log else ""
    heading = shortened(last, LONGEST_NAME)
    axes.text(x, 1.045, heading, ha="center", color=INK, weight="bold", parse_math=False, **FONT)
    small = {**FONT, "size": FONT["size"] - 1.5}
    told = shortened(" · ".join(filter(None, [above, scale])), LONGEST_NAME + 3)
    axes.text(x, 1.125, told, ha="center", color=SOFT, parse_math=False, **small)


def _draw_runs(
    axes: Axes, heights: Sequence[npt.NDArray[np.float64]], by: ParallelAxis | None
) -> None:
    """Draw the lines: broad ones for few runs, thin and transparent ones for many."""
    table = np.stack(heights, axis=1)
    n_runs, n_columns = table.shape
    at = np.full(n_runs, 0.35) if by is None else by.heights
    order = np.argsort(at, kind="stable")
    shades = [NO_VALUE if at[i] == NOWHERE else COLOURS(at[i]) for i in order]
    x = np.arange(n_columns)
    lines = LineCollection(
        [np.column_stack([x, table[i]]) for i in order],
        colors=shades,
        linewidths=float(np.clip(9 / np.sqrt(max(n_runs, 1)), 0.9, 2.0)),
        alpha=float(np.clip(6 / np.sqrt(max(n_runs, 1)), 0.5, 0.95)),
        capstyle="round",
        zorder=2,
        clip_on=False,
    )
    axes.add_collection(lines)


def _draw_bar(bar: Axes, name: str, one: ParallelAxis) -> None:
    """Draw the colors next to the heights of their axis."""
    Colorbar(bar, ScalarMappable(Normalize(0, 1), COLOURS))
    bar.set_yticks([height for height, _ in one.ticks], [text for _, text in one.ticks])
    plain_axes(bar, grid=False)
    title = shortened(name.rpartition(".")[2], LONGEST_NAME)
    under: dict[str, Any] = {
        "ha": "center",
        "va": "top",
        "parse_math": False,
        "transform": bar.transAxes,
    }
    bar.text(0.5, -0.05, title, color=SOFT, **under, **FONT)
