"""One image of a recorded series, at a step."""

from __future__ import annotations

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

from notebook_probe.figures.colours import coloured, framed
from notebook_probe.figures.style import drawing, number

__all__ = ["image", "is_image"]

SIZE = (4.8, 3.8)
BYTE = 255.0
COLOURS = (3, 4)


def is_image(series: xr.DataArray) -> bool:
    """Return whether a series has tables of numbers, or color pictures."""
    _, *cell = series.sizes.values()
    return series.dims[0] == "step" and (len(cell) == 2 or (len(cell) == 3 and cell[-1] in COLOURS))


def image(series: xr.DataArray, step: int | None = None) -> Figure:
    """Picture of an image that was recorded, at a step.

    Images (height, width) are shown as colors, with a color bar; three or four channels are shown
    unchanged, from 0 to 1, or to 255 if any is above 1.

    Parameters
    ----------
    series : xr.DataArray
        Result of ``run.series(module, quantity)`` for images; dims (step, dim_0, dim_1) and, in
        color, dim_2.
    step : int, optional
        One at which it was recorded; the last by default.

    Raises
    ------
    ValueError
        For a series of something else, a step without an image, or one without a finite number.

    Examples
    --------
    >>> image(run.series("conv1", "filters"), step=100).savefig("filters.png")  # doctest: +SKIP
    """
    if not is_image(series):
        raise ValueError(
            f"a series of images is expected, (step, height, width) or (step, height, width, 3 or "
            f"4): {dict(series.sizes)}"
        )
    steps = series.step.values
    at = (int(steps[-1]) if len(steps) else -1) if step is None else step
    if at not in steps:
        known = f"; there are {steps[0]} to {steps[-1]}" if len(steps) else ""
        raise ValueError(f"{series.name} has no image at step {at}{known}")
    shown = np.asarray(series.sel(step=at).values, float)
    if not np.isfinite(shown).any():
        raise ValueError(f"nothing finite is recorded of {series.name} at step {at}")
    with drawing:
        title = f"{series.name} at {series.module.item()}, step {number(at)}"
        figure, axes, bar = framed(SIZE, title, 0.5)
        if shown.ndim == 2:
            coloured(axes, bar, shown, origin="upper", aspect="equal")
        else:
            whole = BYTE if np.nanmax(shown) > 1 else 1.0
            axes.imshow(np.clip(np.nan_to_num(shown / whole), 0, 1), interpolation="none")
            bar.remove()
        axes.set_axis_off()
        return figure
