"""The histograms of a parameter or a tag over the steps, between the same ends."""

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
from notebook_probe.record.views.histograms.common_range import on_common_range
from notebook_probe.record.views.histograms.recorded import recorded_histograms

__all__ = ["histograms"]

SIZE = (8.0, 3.6)


def histograms(source: Source, name: str) -> Figure:
    """Picture of the histograms of one parameter or tag: a column per step, values upwards.

    Bins move with the values; here they are brought to common ones, between the least and the
    greatest value of any step, each count split by how far its bin overlaps them.

    Parameters
    ----------
    source : Source
        A run or an opened record, such as one of a `SummaryCollector`.
    name : str
        Name of a parameter with a `param_histogram`, or ``<tag>_histogram`` from
        ``nbp.summary.histogram``.

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
    own = recorded_histograms(source, name)
    found = on_common_range(own.counts, own.lowest, own.highest)
    values = np.where(found.counts > 0, found.counts, np.nan)
    with drawing:
        left = 0.45 + max(map(text_inches, map(number, (found.edges[0], found.edges[-1]))))
        figure, axes, bar = framed(SIZE, f"histograms of {name}: elements per bin", left)
        extent = (-0.5, len(own.steps) - 0.5, float(found.edges[0]), float(found.edges[-1]))
        coloured(axes, bar, values.T, extent=extent)
        named_places(axes.xaxis, [number(step) for step in own.steps])
        ticks(axes.yaxis, log=False)
        axes.set_xlabel("step", color=SOFT, fontproperties=HEADING)
        axes.set_ylabel("value", color=SOFT, fontproperties=HEADING)
        return figure
