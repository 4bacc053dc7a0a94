"""Lines of other runs, overlaid on those of one: lighter, and with a dash per run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes

from notebook_probe.figures.labels import Label
from notebook_probe.figures.style import RUN_DASHES, colour, lighter, number, shortened

__all__ = ["OverlaidSeries", "draw_beside"]

LONGEST_NAME = 22

Float64s = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class OverlaidSeries:
    """One series of another run, or the mean of several runs."""

    series: tuple[str, str]
    """Module and quantity."""
    x: Float64s
    y: Float64s
    name: str
    colour: int
    """Color index of the series, the same in each run."""
    dash: int = 0
    """Dash index of the run, the same for each of its series."""
    band: tuple[Float64s, Float64s] | None = None
    """Smallest and largest values of several runs."""

    @property
    def label(self) -> str:
        """Name and last value."""
        known = self.y[np.isfinite(self.y)]
        last = number(float(known[-1])) if len(known) else ""
        return f"{shortened(self.name, LONGEST_NAME)} {last}"


def draw_beside(axes: Axes, lines: Sequence[OverlaidSeries]) -> list[Label]:
    """Draw each line, with the label at its end."""
    labels = []
    for one in lines:
        shown = np.isfinite(one.y) & ((one.y > 0) | (axes.get_yscale() != "log"))
        if not shown.any():
            continue
        shade, x, y = lighter(colour(one.colour)), one.x[shown], one.y[shown]
        if one.band is not None:
            low, high = one.band
            axes.fill_between(x, low[shown], high[shown], color=shade, alpha=0.25, linewidth=0)
        pattern = RUN_DASHES[one.dash % len(RUN_DASHES)]
        axes.plot(x, y, color=shade, linestyle=pattern, linewidth=1.6)
        labels.append(Label(float(y[-1]), one.label, shade))
    return labels
