"""Several runs as one, along one axis: mean, band and number."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from notebook_probe.checks import smoothing_weight, whole_number
from notebook_probe.compare.alignment import Alignment
from notebook_probe.compare.band import Band, band_of
from notebook_probe.compare.series import check_recorded, read_smoothed
from notebook_probe.compare.tables import Doubles
from notebook_probe.errors import ProbeError, UnknownNameError
from notebook_probe.record.format.source import check_opened
from notebook_probe.record.views.xarray_views import RunSource

__all__ = ["group"]


def group(
    runs: Sequence[RunSource],
    module: str,
    quantity: str,
    *,
    by: str = "step",
    smooth: float = 0.0,
    log: bool = False,
    like: RunSource | None = None,
    n_points: int = 700,
) -> Band:
    r"""Mean, spread and number of several runs at the same places of an axis.

    At place :math:`x`, every run that has reached it contributes its value there, :math:`\bar v(x)
    = \frac{1}{n(x)} \sum_i v_i(x)`: the mean of its rows that are nearest to the place, or an
    interpolation of the two rows around it. A run without the series, or without a series that the
    axis needs, is left out and named in `Band.left_out`.

    Parameters
    ----------
    runs : sequence of Source
        Runs to group, such as the seeds of one setting.
    module, quantity : str
        Module and quantity of the series; ``""`` is the whole model.
    by : str
        Axis on which the runs are aligned, as for `align`.
    smooth : float
        Weight of the moving average of each run before the runs are combined; 0 for none.
    log : bool
        If True, the mean is geometric, and `Band.std` is the factor by which runs differ from it.
    like : Source, optional
        If ``by`` is a scalar, positions are the steps of this run; by default of the first run.
    n_points : int
        Number of places, at equal distances.

    Returns
    -------
    Band
        Arrays (place,); ``n`` falls where runs end.

    Raises
    ------
    UnknownNameError
        No run remains; of a name that none of them has, the message lists close ones.
    ValueError
        A weight that is not from 0 to 1, or no point.

    Examples
    --------
    >>> band = group([nbp.open_run(one) for one in paths], "", "loss")  # doctest: +SKIP
    >>> axes.fill_between(band.x, band.low, band.high)  # doctest: +SKIP
    """
    smoothing_weight("smooth", smooth)
    whole_number("n_points", n_points, 1)
    if not runs:
        raise UnknownNameError("group: at least one run is expected")
    check_opened(*runs)
    curves, left_out = [], []
    for run in runs:
        try:
            steps, values = read_smoothed(run, module, quantity, smooth, log=log)
            alignment = Alignment(like or runs[0], run, by)
            x = alignment.x_of_other(steps)
        except ProbeError as error:
            left_out.append(str(error))
            continue
        rows = alignment.drawn(steps, x)
        rows = rows[np.isfinite(values[rows])]
        if len(rows):
            curves.append((x[rows], values[rows].astype(np.float64)))
    if not curves:
        check_recorded(runs, quantity, module)
        raise UnknownNameError("; ".join(left_out))
    ends = min(x[0] for x, _ in curves), max(x[-1] for x, _ in curves)
    places = np.linspace(*ends, n_points)
    band = band_of(places, [_at(places, *curve) for curve in curves], log=log)
    return replace(band, left_out=tuple(left_out))


def _at(places: Doubles, x: Doubles, values: Doubles) -> Doubles:
    """Means of the values nearest to each place; between two values where none is; NaN outside."""
    edges = (places[1:] + places[:-1]) / 2
    nearest = np.searchsorted(edges, x)
    n = np.bincount(nearest, minlength=len(places))
    sums = np.bincount(nearest, values, minlength=len(places))
    between = np.interp(places, x, values, left=np.nan, right=np.nan)
    return np.where(n > 0, sums / np.maximum(n, 1), between)
