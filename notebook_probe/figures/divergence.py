"""Map of the divergence of runs, orange above and blue below, with a flag where they separate."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colorbar import Colorbar
from matplotlib.colors import Normalize
from matplotlib.ticker import FixedLocator, FuncFormatter

from notebook_probe.compare.partings import Partings
from notebook_probe.compare.ratio_grid import Ratio
from notebook_probe.figures.cells import draw_map
from notebook_probe.figures.colour_maps import MAPS
from notebook_probe.figures.style import INK, plain_axes
from notebook_probe.record.views.thinning.heat_grid import MEASURED

__all__ = ["Apart", "draw_apart"]

# The keys are logarithms to base 10; 0.5 is a factor of 3.16.
TIMES = {1.0: "×10", 0.5: "×3", 0.0: "same", -0.5: "÷3", -1.0: "÷10"}
FLAG = 0.3
"""Height of a flag, as a fraction of a row."""


@dataclass(frozen=True, slots=True)
class Apart:
    """Distance of a run from others at every module and step, and where they separate."""

    ratio: Ratio
    parted: Partings

    @property
    def whom(self) -> str:
        """Name of the other run, or of the mean of several."""
        others = self.parted.others
        return others[0] if len(others) == 1 else f"the mean of {len(others)} runs"

    @property
    def compared(self) -> str:
        """Kind of comparison, and the name of the other run."""
        return f"− {self.whom}, in spreads" if self.parted.is_signed else f"÷ {self.whom}"


def draw_apart(axes: Axes, bar: Axes, shown: Apart, names: Sequence[str]) -> None:
    """Draw the map, its colors and its flags."""
    found = shown.ratio
    norm = Normalize(-found.limit, found.limit)
    values = np.ma.masked_where(found.state != MEASURED, found.apart)
    draw_map(axes, found, values, names, cmap=MAPS["sign"], norm=norm)
    Colorbar(bar, ScalarMappable(norm, MAPS["sign"]))
    plain_axes(bar, grid=False)
    if not found.is_signed:
        bar.yaxis.set_major_locator(FixedLocator([*TIMES]))
        bar.yaxis.set_major_formatter(FuncFormatter(lambda value, _: TIMES.get(value, "")))
    _draw_flags(axes, found, shown.parted)


def _draw_flags(axes: Axes, found: Ratio, parted: Partings) -> None:
    """Draw a line down each row from its divergence on, with a flag at its top."""
    row_of = {module: row for row, module in enumerate(found.modules)}
    flag = 0.008 * (found.last + 1 - found.first)
    for one in parted:
        row = row_of.get(one.module)
        if row is not None and found.first <= one.step <= found.last:
            axes.plot([one.step] * 2, [row, row + 1], color=INK, linewidth=1.6, gid="flag")
            corners = [(one.step, row), (one.step + flag, row), (one.step, row + FLAG)]
            axes.fill(*zip(*corners, strict=True), color=INK, linewidth=0)
