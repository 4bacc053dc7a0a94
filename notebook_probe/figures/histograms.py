"""The histograms of a parameter over the steps, between the same ends."""

from __future__ import annotations

import numpy as np
from matplotlib.figure import Figure

from notebook_probe.figures.colours import coloured, framed
from notebook_probe.figures.style import (
    HEADING,
    SOFT,
    drawing,
    named_places,
    number,
    text_inches,
    ticks,
)
from notebook_probe.record.format.source import Source
from notebook_probe.record.views.common_range import on_common_range

__all__ = ["histograms"]

SIZE = (8.0, 3.6)
COUNTS, LOW, HIGH = "param_histogram", "weight_min", "weight_max"


def histograms(source: Source, parameter: str) -> Figure:
    """Picture of `param_histogram` of one parameter: a column per step, values upwards.

    Bins move with the weights; here they are brought to common ones, between the least and the
    greatest value of any step, each count split by how far its bin overlaps them.

    Parameters
    ----------
    source : Source
        A run or an opened record, such as one of a `SummaryCollector`.
    parameter : str

    Raises
    ------
    UnknownNameError
        Nothing is recorded there.
    ValueError
        Nothing finite is.

    Examples
    --------
    >>> histograms(run, "fc.weight").savefig("fc.png")  # doctest: +SKIP
    """
    table = source.series(parameter, COUNTS).load()
    lows, highs = (source.series(parameter, end).load() for end in (LOW, HIGH))
    at = table.step.values
    low, high = (end.reindex(step=at).values for end in (lows, highs))
    found = on_common_range(table.values, low, high)
    values = np.where(found.counts > 0, found.counts, np.nan)
    with drawing:
        left = 0.45 + max(map(text_inches, map(number, (found.edges[0], found.edges[-1]))))
        figure, axes, bar = framed(SIZE, f"{COUNTS} at {parameter}: elements per bin", left)
        extent = (-0.5, len(at) - 0.5, float(found.edges[0]), float(found.edges[-1]))
        coloured(axes, bar, values.T, extent=extent)
        named_places(axes.xaxis, [number(step) for step in at])
        ticks(axes.yaxis, log=False)
        axes.set_xlabel("step", color=SOFT, fontproperties=HEADING)
        axes.set_ylabel("value", color=SOFT, fontproperties=HEADING)
        return figure
