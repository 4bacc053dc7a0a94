"""Color maps of the panel: for sizes, for shares, and for values of both signs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import numpy as np
import numpy.typing as npt
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colorbar import Colorbar
from matplotlib.colors import Colormap, LinearSegmentedColormap, LogNorm, Normalize
from matplotlib.ticker import LogLocator, MaxNLocator

from notebook_probe.figures.style import plain_axes, ticks
from notebook_probe.record.views.thinning.colour_scale import ColourMap, ColourScale

__all__ = ["MAPS", "draw_bar", "masked", "norm_of"]

BLUES = ["#ffffff", "#8ec4e8", "#0072b2", "#063a63"]
"""Blues that start at the white background, for zero."""
ORANGES = ["#f3b98f", "#d55e00", "#7d3200"]

MAPS: Mapping[ColourMap, Colormap] = {
    "value": colormaps["viridis"],
    "share": LinearSegmentedColormap.from_list("share", BLUES),
    "sign": LinearSegmentedColormap.from_list("sign", [*reversed(BLUES), *ORANGES]),
}


def norm_of(scale: ColourScale) -> Normalize:
    """Return the mapping from values to positions on a map; its width is never zero."""
    if scale.low is None or scale.high is None:
        return Normalize(0.0, 1.0)
    low, high = scale.low, scale.high
    if scale.log:
        return LogNorm(low, high) if high > low else LogNorm(low / 2, high * 2)
    return Normalize(low, high) if high > low else Normalize(low - 0.5, high + 0.5)


def masked(
    values: npt.NDArray[np.float32], is_known: npt.NDArray[np.bool_], norm: Normalize
) -> np.ma.MaskedArray:
    """Mask unknown values; on a log scale, 0 gets the lowest color."""
    if isinstance(norm, LogNorm):
        values = np.maximum(values, norm.vmin or 0.0)
    return np.ma.masked_where(~is_known, values)


def draw_bar(bar: Axes, scale: ColourScale, *, across: bool = False) -> None:
    """Draw the color bar, pointed at an end beyond which there are values."""
    norm = norm_of(scale)
    Colorbar(
        bar,
        ScalarMappable(norm, MAPS[scale.colours]),
        orientation="horizontal" if across else "vertical",
        extend=_beyond(scale),
    )
    plain_axes(bar, grid=False)
    ticks(bar.xaxis if across else bar.yaxis, isinstance(norm, LogNorm))
    if across:  # numbers are next to each other
        few = LogLocator(numticks=3) if isinstance(norm, LogNorm) else MaxNLocator(2)
        bar.xaxis.set_major_locator(few)


def _beyond(scale: ColourScale) -> Literal["neither", "both", "min", "max"]:
    ends = (scale.low, scale.lowest), (scale.highest, scale.high)
    below, above = (one is not None and other is not None and one > other for one, other in ends)
    if below and above:
        return "both"
    return "min" if below else "max" if above else "neither"
