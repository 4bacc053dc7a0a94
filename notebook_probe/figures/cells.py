"""The cells of a map of modules over steps: rows, names, and what has no value."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.colors import ListedColormap
from matplotlib.patches import Patch, Rectangle

from notebook_probe.figures.style import (
    EDGE,
    HEADING,
    LOST_COLOUR,
    SOFT,
    plain_axes,
    short_path,
    ticks,
)
from notebook_probe.record.views.thinning.heat_grid import LOST, UNMEASURED

__all__ = ["N_COLUMNS", "Map", "draw_map", "heat_inches", "row_names"]

# About the pixels that the map has across, at the 110 dots per inch of `encoded`.
N_COLUMNS = 700
MOST_NAMES = 40
LONGEST_NAME = 26
HATCH = "////"
IMAGE: dict[str, Any] = {"aspect": "auto", "interpolation": "none"}


class Map(Protocol):
    """Cells of (module, column), each in one of three states."""

    @property
    def modules(self) -> tuple[str, ...]: ...
    @property
    def first(self) -> int:
        """First step of the first column."""

    @property
    def last(self) -> int:
        """Last step of the last column."""

    @property
    def end(self) -> int:
        """Last step that the run has in the last column."""

    @property
    def state(self) -> npt.NDArray[np.uint8]: ...


def heat_inches(shown: Map) -> float:
    """Height of the map: rows one can tell apart while there are few."""
    return min(4.2, max(1.2, 0.24 * len(shown.modules)))


def row_names(shown: Map) -> list[str]:
    """Return a label per row; some are empty if there are too many."""
    every = -(-len(shown.modules) // MOST_NAMES)
    return [
        short_path(name, LONGEST_NAME) if row % every == 0 else ""
        for row, name in enumerate(shown.modules)
    ]


def draw_map(
    axes: Axes, shown: Map, values: npt.NDArray[Any], names: Sequence[str], **colours: Any
) -> None:
    """Draw the values that are not masked, the names, and what the other cells mean."""
    n_rows = len(shown.modules)
    extent = (shown.first, shown.last + 1, n_rows, 0)
    hatched: dict[str, Any] = {"hatch": HATCH, "fill": False, "edgecolor": EDGE, "linewidth": 0}
    width = shown.end + 1 - shown.first
    # Below all cells: it shows through where the image is masked.
    axes.add_patch(Rectangle((shown.first, 0), width, n_rows, zorder=-1, **hatched))
    axes.imshow(values, extent=extent, **colours, **IMAGE)
    lost = np.ma.masked_where(shown.state != LOST, np.ones(shown.state.shape))
    # A second image, as a map of colors has one color for all masked cells.
    axes.imshow(lost, cmap=ListedColormap([LOST_COLOUR]), extent=extent, **IMAGE)
    if n_rows <= MOST_NAMES:
        axes.hlines(np.arange(1, n_rows), *extent[:2], color="white", linewidth=1.5)
    axes.set_xlim(shown.first, shown.end + 1)
    plain_axes(axes, grid=False)
    ticks(axes.xaxis, log=False)
    named = [row for row, name in enumerate(names) if name]  # a tick takes matplotlib long
    axes.set_yticks([row + 0.5 for row in named], [names[row] for row in named])
    _draw_legend(axes, shown)


def _draw_legend(axes: Axes, shown: Map) -> None:
    """Words for the cells that have no value, only where there are such cells."""
    keys = [
        Patch(facecolor="white", edgecolor=EDGE, hatch=HATCH, label="not measured"),
        Patch(facecolor=LOST_COLOUR, label="NaN or infinite"),
    ]
    drawn = [
        key
        for key, state in zip(keys, (UNMEASURED, LOST), strict=True)
        if (shown.state == state).any()
    ]
    if drawn:
        axes.legend(
            handles=drawn,
            loc="lower right",
            bbox_to_anchor=(1.0, 1.0),
            handlelength=1.4,
            ncols=2,
            frameon=False,
            labelcolor=SOFT,
            prop=HEADING,
            borderaxespad=0.2,
        )
