"""A table of numbers as colors, next to a color bar."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colorbar import Colorbar
from matplotlib.colors import ListedColormap, LogNorm, Normalize

from notebook_probe.figures.style import HEADING, LOST_COLOUR, SOFT, Picture, plain_axes, ticks

__all__ = ["coloured", "framed"]

Floats = npt.NDArray[np.float64]

WIDE_RATIO = 30.0
"""Ratio of the largest to the smallest positive value above which colors are logarithmic."""


def framed(size: tuple[float, float], title: str, left: float) -> tuple[Picture, Axes, Axes]:
    """Return a picture, axes that start ``left`` inches from its edge, and axes for the bar."""
    figure = Picture(figsize=size)
    wide = size[0] - left - 0.85
    axes = figure.add_axes((left / size[0], 0.16, wide / size[0], 0.72))
    bar = figure.add_axes(((left + wide + 0.12) / size[0], 0.16, 0.13 / size[0], 0.72))
    axes.set_title(title, loc="left", color=SOFT, pad=8, fontproperties=HEADING)
    return figure, axes, bar


def coloured(axes: Axes, bar: Axes, values: Floats, **options: Any) -> None:
    """Draw a table of numbers, with infinities in a separate color, and its color bar."""
    norm = _norm(values[np.isfinite(values)])
    is_log = isinstance(norm, LogNorm)
    shown = np.ma.masked_where(~np.isfinite(values) | (is_log & (values == 0)), values)
    common = {"aspect": "auto", "interpolation": "none", "origin": "lower", **options}
    axes.imshow(shown, cmap="viridis", norm=norm, **common)
    # A second image, as a map of colors has one color for all that is masked.
    lost = np.ma.masked_where(~np.isinf(values), np.ones(values.shape))
    axes.imshow(lost, cmap=ListedColormap([LOST_COLOUR]), **common)
    Colorbar(bar, ScalarMappable(norm, "viridis"))
    plain_axes(axes, grid=False)
    plain_axes(bar, grid=False)
    ticks(bar.yaxis, is_log)


def _norm(finite: Floats) -> Normalize:
    """Logarithmic where nothing is negative and numbers are of several magnitudes."""
    positive = finite[finite > 0]
    low, high = float(finite.min()), float(finite.max())
    if low >= 0 and positive.size and high > WIDE_RATIO * float(positive.min()):
        return LogNorm(float(positive.min()), high)
    return Normalize(low, high) if high > low else Normalize(low - 0.5, high + 0.5)
