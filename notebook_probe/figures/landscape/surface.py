"""A loss landscape as a surface in space, with contours below and the path on it."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import xarray as xr
from matplotlib import colormaps
from matplotlib.colors import LightSource
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, MaxNLocator

from notebook_probe.figures.landscape.levels import ContourLevels
from notebook_probe.figures.landscape.tones import Tones
from notebook_probe.figures.style import FONT, number

__all__ = ["draw_surface"]

Floats = npt.NDArray[np.float64]

ELEVATION, AZIMUTH = 32, -58
FINER = 3
"""Factor of refinement of the grid, for smooth colors."""
SHADE = 0.62
"""Brightness of a color away from the light."""
BELOW = 0.35
"""Distance of the contours below the surface, as a fraction of its height."""


def draw_surface(figure: Figure, dataset: xr.Dataset, levels: ContourLevels, tones: Tones) -> None:
    """Draw the surface into a figure; heights are logarithms if losses span decades."""
    axes: Any = figure.add_axes((-0.06, -0.05, 1.12, 1.05), projection="3d", computed_zorder=False)
    axes.set_facecolor(tones.ground)
    axes.view_init(ELEVATION, AZIMUTH)
    x, y = (np.asarray(dataset[name].values, float) for name in ("x", "y"))
    heights = _heights(levels.shown(dataset.loss.values), levels).filled(np.nan)
    low, high = (float(_heights(end, levels)) for end in levels.filled[[0, -1]])
    floor = low - BELOW * (high - low)
    axes.contourf(
        *(x, y, np.ma.masked_invalid(heights), _heights(levels.filled, levels)),
        zdir="z",
        offset=floor,
        cmap="viridis",
        antialiased=False,
        zorder=1,
    )
    between = [np.linspace(own[0], own[-1], FINER * (len(own) - 1) + 1) for own in (x, y)]
    light = _between(x, y, _light(heights), *np.meshgrid(*between))
    finer = _between(x, y, heights, *np.meshgrid(*between))
    axes.plot_surface(
        *np.meshgrid(*between),
        finer,
        facecolors=_lit((finer - low) / (high - low), light),
        rcount=len(between[1]),
        ccount=len(between[0]),
        linewidth=0,
        antialiased=False,
        shade=False,
        zorder=2,
    )
    _draw_path(axes, dataset, levels, floor, tones)
    axes.set_zlim(floor, high)
    _plain(axes, levels, tones)


def _heights(losses: Any, levels: ContourLevels) -> Any:
    return np.ma.log10(losses) if levels.is_log else losses


def _light(heights: Floats) -> Floats:
    """Return the brightness of each point, 0 to 1, with light from the side."""
    filled = np.where(np.isnan(heights), np.nanmin(heights), heights)
    size = max(filled.shape) / 2 / (np.ptp(filled) or 1.0)
    return np.asarray(LightSource(azdeg=300, altdeg=45).hillshade(filled * size), float)


def _lit(shares: Floats, light: Floats) -> Floats:
    """Return the colors of heights, darker away from the light; missing points have none."""
    is_there = np.isfinite(shares)
    colours = colormaps["viridis"](np.where(is_there, shares, 0.0))
    colours[..., :3] *= (SHADE + (1 - SHADE) * light)[..., None]
    colours[..., 3] = is_there
    return colours


def _between(x: Floats, y: Floats, values: Floats, at_x: Floats, at_y: Floats) -> Floats:
    """Values between the points of a grid, bilinear."""
    column, right = _places(x, at_x)
    row, up = _places(y, at_y)
    below = values[row, column] * (1 - right) + values[row, column + 1] * right
    above = values[row + 1, column] * (1 - right) + values[row + 1, column + 1] * right
    return np.asarray(below * (1 - up) + above * up)


def _places(axis: Floats, at: Floats) -> tuple[npt.NDArray[np.intp], Floats]:
    """Return the grid's index before each point, and the fraction of the way to the next."""
    place = np.clip(np.searchsorted(axis, at, side="right") - 1, 0, len(axis) - 2)
    return place, np.clip((at - axis[place]) / (axis[place + 1] - axis[place]), 0, 1)


def _draw_path(
    axes: Any, dataset: xr.Dataset, levels: ContourLevels, floor: float, tones: Tones
) -> None:
    """Draw the path on the surface, and its shadow on the ground."""
    at = float(_heights(_origin_loss(dataset, levels), levels))
    if "path_x" in dataset:
        grid = dataset.x.values, dataset.y.values, dataset.loss.values
        x, y = dataset.path_x.values, dataset.path_y.values
        line = (*(_finer(x), _finer(y)),)
        ends = (*levels.filled[[0, -1]],)
        upon, above = (
            _heights(np.clip(_between(*grid, *at), *ends), levels) for at in (line, (x, y))
        )
        axes.plot(*line, floor, color=tones.path_edge, lw=1.2, zorder=1.5)
        axes.plot(*line, upon, color=tones.path_edge, lw=3.2, zorder=3)
        axes.plot(*line, upon, color=tones.path, lw=1.6, zorder=4)
        axes.plot(x, y, above, "o", color=tones.path, mec=tones.path_edge, ms=4, zorder=4)
        _number(axes, dataset.number.values, x, y, above, tones)
    star = {"mfc": tones.star, "mec": tones.path_edge, "mew": 0.9, "ls": ""}
    axes.plot([0], [0], [at], "*", ms=14, zorder=5, **star)
    axes.plot([0], [0], [floor], "*", ms=7, zorder=1.6, **star)


def _finer(places: Floats) -> Floats:
    """Return more positions in between, so that a line follows the surface."""
    at = np.linspace(0, len(places) - 1, 20 * (len(places) - 1) + 1)
    return np.interp(at, np.arange(len(places)), places)


def _number(axes: Any, names: Any, x: Floats, y: Floats, z: Floats, tones: Tones) -> None:
    """Label the ends of the path; points in between are too close in space."""
    for place in (0, -1):
        axes.text(
            *(x[place], y[place], z[place], f"  {names[place]}  "),
            color=tones.path,
            fontsize=FONT["size"],
            ha="right" if place else "left",
            va="bottom",
            zorder=6,
            path_effects=tones.outlined,
        )


def _origin_loss(dataset: xr.Dataset, levels: ContourLevels) -> float:
    """Return the loss at the origin within the drawn range; at the bottom if it is NaN."""
    low, high = levels.filled[[0, -1]]
    return float(np.clip(np.nan_to_num(float(dataset.attrs["loss_at_origin"]), nan=low), low, high))


def _plain(axes: Any, levels: ContourLevels, tones: Tones) -> None:
    axes.set_box_aspect((1.15, 1.15, 0.8))
    for axis in (axes.xaxis, axes.yaxis, axes.zaxis):
        axis.set_pane_color((0, 0, 0, 0))
        axis.line.set_color(tones.lost)
        axis._axinfo["grid"].update(color=tones.lost, linewidth=0.5)
        axis._axinfo["tick"].update(inward_factor=0.0, outward_factor=0.0)
        axis.set_major_locator(MaxNLocator(4))
    if levels.is_log:
        axes.zaxis.set_major_locator(FixedLocator([*np.log10(levels.lines)]))
        axes.zaxis.set_major_formatter(FuncFormatter(lambda at, _: number(10.0**at)))
    axes.tick_params(colors=tones.soft, labelsize=FONT["size"] - 1, pad=0)
    axes.set_zlabel("loss", color=tones.soft, fontsize=FONT["size"])
