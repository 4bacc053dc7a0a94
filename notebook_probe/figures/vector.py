"""A vector over the steps as a static picture: histograms, spectra, channels, loss landscapes."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import xarray as xr
from matplotlib.figure import Figure

from notebook_probe.figures.colours import coloured, framed
from notebook_probe.figures.densities import densities, has_own_widths
from notebook_probe.figures.image import image, is_image
from notebook_probe.figures.style import (
    HEADING,
    SOFT,
    drawing,
    named_places,
    number,
    text_inches,
    ticks,
)

__all__ = ["vector"]

Floats = npt.NDArray[np.float64]

MOST_COLUMNS = 1400
SIZE = (8.0, 3.6)
SQUARE = (4.8, 3.8)


def vector(series: xr.DataArray) -> Figure:
    """Picture of a series of vectors: a column per step, an element per row.

    White is a missing element, and an empty bin of a histogram; infinities have a separate color.
    Bins that are always empty are left out, and elements at both ends that are always zero or
    missing. Histograms in equal bins are drawn as densities over their values: the share of finite
    elements per unit, whether or not the width of the bins changes. Steps are drawn side by side in
    the measured order; of more than 1,400 some are shown, evenly spaced. A plane, such as one of
    ``loss_landscape_2d``, is drawn at its last step, and so is an image; `image` draws it at
    another.

    Parameters
    ----------
    series : xr.DataArray
        Result of ``run.series(module, quantity)`` for a vector; dims (step, element).

    Raises
    ------
    ValueError
        For a series of numbers, or one without any finite value.

    Examples
    --------
    >>> vector(run.series("fc1", "output_histogram")).savefig("fc1.png")  # doctest: +SKIP
    """
    if is_image(series):
        return image(series)
    along = [str(dim) for dim in series.dims if dim != "step"]
    if "step" not in series.dims or len(along) != 1:
        raise ValueError(f"a series of vectors is expected, with dims (step, ...): {series.dims}")
    table = series.transpose("step", along[0]).load()
    values = np.asarray(table.values, float)
    measured = np.flatnonzero(np.isfinite(values).any(axis=1))
    if not measured.size:
        raise ValueError(f"nothing finite is recorded of {series.name} there")
    table, values = table[measured], values[measured]
    with drawing:
        if {f"{along[0]}_x", f"{along[0]}_y"} <= set(table.coords):
            return _plane(table[-1], along[0])
        if has_own_widths(table, along[0]):
            return _densities(table, along[0])
        return _steps(table, values, along[0])


def _steps(table: xr.DataArray, values: Floats, along: str) -> Figure:
    if has_bins := f"{along}_lo" in table.coords:
        values = np.where(values == 0, np.nan, values)
    every = -(-len(values) // MOST_COLUMNS)
    telling = np.flatnonzero((np.isfinite(values) & (values != 0)).any(axis=0))
    if telling.size and not has_bins:
        telling = np.arange(telling[0], telling[-1] + 1)
    rows = telling if telling.size else np.arange(values.shape[1])
    steps = table.step.values[::every]
    names = [number(value) for value in np.asarray(table[along].values, float)[rows]]
    left = 0.45 + max(map(text_inches, names))
    figure, axes, bar = framed(SIZE, f"{table.name} at {table.module.item()}", left)
    extent = (-0.5, len(steps) - 0.5, -0.5, len(names) - 0.5)
    coloured(axes, bar, values[::every, rows].T, extent=extent)
    named_places(axes.xaxis, [number(step) for step in steps])
    named_places(axes.yaxis, names)
    axes.set_xlabel("step", color=SOFT, fontproperties=HEADING)
    axes.set_ylabel(along, color=SOFT, fontproperties=HEADING)
    return figure


def _densities(table: xr.DataArray, along: str) -> Figure:
    table = table[:: -(-table.sizes["step"] // MOST_COLUMNS)]
    shown = densities(table, along)
    title = f"{table.name} at {table.module.item()}: share per unit"
    if shown.n_not_finite:
        title += f"; {number(shown.n_not_finite)} not finite"
    left = 0.45 + max(map(text_inches, map(number, (shown.low, shown.high))))
    figure, axes, bar = framed(SIZE, title, left)
    extent = (-0.5, table.sizes["step"] - 0.5, shown.low, shown.high)
    coloured(axes, bar, shown.values, extent=extent)
    named_places(axes.xaxis, [number(step) for step in table.step.values])
    ticks(axes.yaxis, log=False)
    axes.set_xlabel("step", color=SOFT, fontproperties=HEADING)
    axes.set_ylabel("value", color=SOFT, fontproperties=HEADING)
    return figure


def _plane(table: xr.DataArray, along: str) -> Figure:
    across, up = (np.asarray(table[f"{along}_{axis}"].values, float) for axis in "xy")
    xs, ys = np.unique(across), np.unique(up)
    values = np.full((len(ys), len(xs)), np.nan)
    values[np.searchsorted(ys, up), np.searchsorted(xs, across)] = table.values
    step = number(int(table.step))
    figure, axes, bar = framed(SQUARE, f"{table.name} at {table.module.item()}, step {step}", 0.8)
    coloured(axes, bar, values, extent=(*_ends(xs), *_ends(ys)))
    for axis, name in ((axes.xaxis, "x"), (axes.yaxis, "y")):
        ticks(axis, log=False)
        axis.set_label_text(name, color=SOFT, fontproperties=HEADING)
    return figure


def _ends(places: Floats) -> tuple[float, float]:
    """Return the outer borders of cells around equally spaced positions."""
    # A single position has no neighbor to tell its size.
    half = (places[-1] - places[0]) / max(len(places) - 1, 1) / 2 or 0.5
    return float(places[0] - half), float(places[-1] + half)
