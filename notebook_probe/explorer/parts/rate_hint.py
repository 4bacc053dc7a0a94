"""Hint for the learning rate: size of the updates against the weights, and what is usual."""

from __future__ import annotations

import math
from typing import TypedDict

import numpy as np

from notebook_probe.record.format.source import StreamView
from notebook_probe.record.views.xarray_views import RunSource

__all__ = ["RateHint", "rate_hint"]

QUANTITY = "update_ratio"
WORTH_SAYING = 3.0
N_ROWS = 10


class RateHint(TypedDict):
    """The usual ratio among the layers, and the factor of the rate that brings it to `common`."""

    ratio: float
    common: float
    factor: float


def rate_hint(source: RunSource, after: int) -> RateHint | None:
    """Return the hint; None if the ratio is not measured, or within a factor 3 of the usual one.

    Parameters
    ----------
    source : RunSource
    after : int
        The step of the last change: what was recorded up to there was done with another rate.
    """
    ratio, common = _ratio_now(source, after), _common(source)
    # The logarithm treats a third and threefold alike.
    if not ratio or not common or abs(math.log(ratio / common)) < math.log(WORTH_SAYING):
        return None
    # Rounded first, so that the factor that is offered agrees with the ratio that is shown.
    rounded = float(f"{ratio:.2g}")
    return {"ratio": rounded, "common": common, "factor": common / rounded}


def _common(source: RunSource) -> float | None:
    """Return the usual value of the quantity."""
    variables = (one for stream in source.streams.values() for one in stream.variables)
    return next((one.usual for one in variables if one.name == QUANTITY), None)


def _ratio_now(source: RunSource, after: int) -> float | None:
    """Return the median over the layers of their last few ratios."""
    # Medians twice: neither one odd layer nor one odd step decides.
    found = [
        last
        for stream in source.streams.values()
        if any(one.name == QUANTITY for one in stream.variables)
        for last in _last(stream, after)
    ]
    return float(np.median(found)) if found else None


def _last(stream: StreamView, after: int) -> list[float]:
    """Return the median of the last rows of each layer."""
    start = max(0, stream.n_rows - N_ROWS)
    rows = stream.steps(start) > after
    values = stream.values(QUANTITY, start)[rows]
    # A ratio of 0 belongs to a layer without updates, which no rate would change.
    columns = [column[np.isfinite(column) & (column > 0)] for column in values.T]
    return [float(np.median(column)) for column in columns if column.size]
