"""A loss landscape as a static picture: contours, or a surface, and the way of the training."""

from __future__ import annotations

from functools import partial
from typing import Any, Literal, get_args

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.colorbar import Colorbar
from matplotlib.colors import ListedColormap, LogNorm
from matplotlib.figure import Figure

from notebook_probe.errors import near
from notebook_probe.figures.landscape.levels import ContourLevels
from notebook_probe.figures.landscape.surface import draw_surface
from notebook_probe.figures.landscape.tones import DARK, LIGHT, Tones
from notebook_probe.figures.style import (
    HEADING,
    LOST_COLOUR,
    MOST_DIGITS,
    Picture,
    digits_apart,
    drawing,
    number,
    text_inches,
    ticks,
)

__all__ = ["landscape"]

Kind = Literal["contour", "surface"]

SIZE = (6.2, 4.8)
PLOT, BAR, BESIDE_BAR = 0.735, 0.875, 0.04
"""Shares of the width: the plot, the start of the color bar, and the bar without numbers."""
MOST_NUMBERS = 12
"""Maximum numbers at a path's points; with more points, evenly chosen ones."""


def landscape(dataset: xr.Dataset, kind: Kind = "contour", dark: bool = False) -> Figure:
    """Picture of a loss landscape, with the path of the training and its end.

    Colors and lines are geometric if losses span decades, else equally spaced. A star marks the
    origin, with its loss. Where a loss is NaN, or was not evaluated, it is gray; where it is
    infinite, red.

    Parameters
    ----------
    dataset : xr.Dataset
        Result of ``nbp.landscape``.
    kind : "contour" or "surface"
    dark : bool
        For dark pages.

    Raises
    ------
    ValueError
        For another kind, a dataset of something else, or one without a finite loss.

    Examples
    --------
    >>> landscape(nbp.landscape("summary")).savefig("landscape.png")  # doctest: +SKIP
    """
    if kind not in get_args(Kind):
        raise ValueError(f"landscape(kind={kind!r}); {near(kind, get_args(Kind))}")
    if "loss" not in dataset or set(dataset.loss.dims) != {"x", "y"}:
        raise ValueError(
            f"what nbp.landscape returns is expected, with loss (y, x): {dataset.sizes}"
        )
    dataset = dataset.assign(loss=dataset.loss.transpose("y", "x").load())
    levels = ContourLevels.of(dataset.loss.values)
    tones = DARK if dark else LIGHT
    with drawing:
        figure = Picture(figsize=SIZE, facecolor=tones.ground)
        figure.ground = tones.ground
        if kind == "contour":
            _draw_contours(figure, dataset, levels, tones)
        else:
            draw_surface(figure, dataset, levels, tones)
        figure.text(0.045, 0.955, _title(dataset), color=tones.ink, fontproperties=HEADING)
        return figure


def _title(dataset: xr.Dataset) -> str:
    known = dataset.attrs
    unit, network = known.get("unit", "step"), known.get("network", "the model")
    where = f"after {unit} {known['origin']}" if "origin" in known else "here"
    if "number" in dataset.coords:
        first, last = dataset.number.values[[0, -1]]
        where = f"on its way, {unit}s {first} to {last}"
    return f"loss of {network} {where}; {number(float(known['loss_at_origin']))} at the star"


def _draw_contours(
    figure: Picture, dataset: xr.Dataset, levels: ContourLevels, tones: Tones
) -> None:
    axes = figure.add_axes((0.115, 0.125, PLOT, 0.79), facecolor=tones.lost)
    bar = figure.add_axes((BAR, 0.125, 0.022, 0.79))
    x, y, losses = (dataset[name].values for name in ("x", "y", "loss"))
    _draw_infinite(axes, x, y, losses)
    shown = levels.shown(losses)
    filled = axes.contourf(x, y, shown, levels.filled, norm=levels.norm, cmap="viridis")
    lines = axes.contour(
        x, y, shown, levels.lines, colors="white", linewidths=0.6, alpha=0.75, linestyles="solid"
    )
    fmt = partial(number, digits=digits_apart(levels.lines))
    axes.clabel(lines, fmt=fmt, fontsize=7, inline_spacing=3)
    _draw_path(axes, dataset, tones)
    axes.plot(
        0, 0, "*", ms=15, mfc=tones.star, mec=tones.path_edge, mew=0.9, zorder=6, clip_on=False
    )
    Colorbar(bar, filled)
    for own in (axes, bar):
        tones.plain(own)
    ticks(axes.xaxis, log=False)
    ticks(axes.yaxis, log=False)
    ticks(bar.yaxis, isinstance(levels.norm, LogNorm), longest=MOST_DIGITS)
    _make_room(axes, bar)
    for axis, name in ((axes.xaxis, _direction(dataset, 0)), (axes.yaxis, _direction(dataset, 1))):
        axis.set_label_text(name, color=tones.soft, fontproperties=HEADING)


def _make_room(axes: Axes, bar: Axes) -> None:
    """Move the bar from the edge until its longest number fits."""
    texts = bar.yaxis.get_major_formatter().format_ticks([*bar.get_yticks()])
    wanted = max(map(text_inches, texts), default=0.0) / SIZE[0] + BESIDE_BAR
    missing = max(0.0, BAR + wanted - 1.0)
    for own, left, width in ((axes, 0.115, PLOT - missing), (bar, BAR - missing, 0.022)):
        own.set_position((left, 0.125, width, 0.79))


def _draw_infinite(axes: Axes, x: Any, y: Any, losses: Any) -> None:
    infinite = np.ma.masked_where(~np.isinf(losses), np.ones(losses.shape))
    axes.pcolormesh(x, y, infinite, cmap=ListedColormap([LOST_COLOUR]), shading="nearest")
    axes.set_xlim(x[0], x[-1])
    axes.set_ylim(y[0], y[-1])


def _draw_path(axes: Axes, dataset: xr.Dataset, tones: Tones) -> None:
    if "path_x" not in dataset:
        return
    x, y, names = (dataset[name].values for name in ("path_x", "path_y", "number"))
    axes.plot(x, y, color=tones.path_edge, lw=3.2, zorder=4, solid_capstyle="round")
    axes.plot(x, y, color=tones.path, lw=1.6, zorder=4, solid_capstyle="round")
    axes.plot(x[:-1], y[:-1], "o", ms=5, mfc=tones.path, mec=tones.path_edge, mew=0.9, zorder=5)
    every = -(-len(names) // MOST_NUMBERS)
    numbered = {*range(0, len(names), every), len(names) - 1}
    for place in sorted(numbered):
        right, up = _outside_of_bend(x, y, place, dataset)
        axes.annotate(
            str(names[place]),
            (x[place], y[place]),
            (9 * right, 9 * up),
            textcoords="offset points",
            ha="center",
            va="center",
            zorder=7,
            color=tones.path,
            fontproperties=HEADING,
            path_effects=tones.outlined,
        )


def _outside_of_bend(x: Any, y: Any, place: int, dataset: xr.Dataset) -> tuple[float, float]:
    """Return the direction across the path, to the outer side of its bend."""
    size = np.array([np.ptp(dataset.x.values), np.ptp(dataset.y.values)])
    at = np.stack([x, y], axis=1) / size
    before, here, after = at[max(place - 1, 0)], at[place], at[min(place + 1, len(at) - 1)]
    bend = 2 * here - before - after
    along = after - before
    across = np.array([-along[1], along[0]])
    side = across if across @ bend >= 0 else -across
    length = float(np.hypot(*side))
    return (float(side[0] / length), float(side[1] / length)) if length else (0.0, 1.0)


def _direction(dataset: xr.Dataset, place: int) -> str:
    name = ("first", "second")[place]
    if "shares" not in dataset.attrs:
        return f"{name} random direction"
    share = float(np.atleast_1d(dataset.attrs["shares"])[place])
    return f"{name} direction of the path, {100 * share:.3g} %"
