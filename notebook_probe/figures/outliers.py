"""Scale of lines without single values far beyond all others, as in the panel."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from notebook_probe.figures.style import number

__all__ = ["InnerRange", "inner_range"]

FEW = 30
"""Values among which none is called an outlier."""
SHARE = 0.02
"""Share of the values at each end that may be outliers."""
FAR = 10
"""Ranges of the others that an outlier is away from them."""
WORTH = 3
"""Factor by which outliers widen the scale, at least."""

Float64s = npt.NDArray[np.float64]


class InnerRange(NamedTuple):
    """Ends of a value axis, and the values that are outside."""

    low: float
    high: float
    n_beyond: int
    farthest: float

    @property
    def text(self) -> str:
        """Values outside in words, as above the chart in the panel."""
        count = "1 value" if self.n_beyond == 1 else f"{number(self.n_beyond)} values"
        return f"{count} beyond the scale, to {number(self.farthest)}"


def inner_range(series: Sequence[npt.ArrayLike], log: bool) -> InnerRange | None:
    """Return the scale without outliers; None where every value belongs on it.

    Examples
    --------
    >>> spiked = [1.0] * 50 + [2.0] * 50 + [4e6]
    >>> inner_range([spiked], log=False)
    InnerRange(low=1.0, high=2.0, n_beyond=1, farthest=4000000.0)
    >>> inner_range([spiked[:-1]], log=False)
    """
    placed = [one for values in series if len(one := _placed(values, log))]
    if not placed:
        return None
    ends = [_inner_ends(values) for values in placed]
    low, high = min(one for one, _ in ends), max(one for _, one in ends)
    least, most = min(values[0] for values in placed), max(values[-1] for values in placed)
    if not high > low or most - least < WORTH * (high - low):
        return None
    together = np.concatenate(placed)
    outside = together[(together < low) | (together > high)]
    if not len(outside):
        return None
    farthest = float(outside[np.argmax(np.abs(outside - (low + high) / 2))])
    shown = [10**one if log else one for one in (low, high, farthest)]
    return InnerRange(float(shown[0]), float(shown[1]), len(outside), float(shown[2]))


def _placed(values: npt.ArrayLike, log: bool) -> Float64s:
    """Return the finite values in the plotted scale, sorted."""
    finite = np.asarray(values, np.float64)
    finite = finite[np.isfinite(finite) & ((finite > 0) | (not log))]
    return np.sort(np.log10(finite) if log else finite)


def _inner_ends(ordered: Float64s) -> tuple[float, float]:
    """Return the least and the greatest of sorted values that are near all but a few."""
    last = len(ordered) - 1
    low, high = ordered[int(np.ceil(last * SHARE))], ordered[int(np.floor(last * (1 - SHARE)))]
    far = FAR * (high - low)
    if len(ordered) < FEW or not far:
        return float(ordered[0]), float(ordered[last])
    near = ordered[(ordered >= low - far) & (ordered <= high + far)]
    return float(near[0]), float(near[-1])
