"""Elements counted in equal bins between their extremes, each exactly where the edges say."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from notebook_probe.quantities.reduce.arrays import readable
from notebook_probe.quantities.reduce.quiet import quiet
from notebook_probe.quantities.reduce.reductions import reduction

__all__ = ["BINS", "MOST_BINS", "Extremes", "extremes"]

Floats = npt.NDArray[np.floating]
Singles = npt.NDArray[np.float32]
Counts = npt.NDArray[np.int64]

BINS = "equal_bins"
"""Name of the part of `Extremes` that is counted only on request."""

MOST_BINS = 90
FEW = ((0, 0), (5, 2), (10, 3))
"""Numbers of bins for few elements: (most elements, bins)."""
MANY = 4096
"""Above so many elements, which have as many bins as there can be, passes take more than calls."""
MARGIN = 1e-4
"""Share of a bin near an edge where a float32 quotient, which errs by 2e-5, may be wrong."""
TINY, HUGE = 1e-30, 1e30
"""Range of bin widths that, like their reciprocals, are exact in float32."""

PIECE = 1 << 16
"""Elements counted at a time, in passes that find them in the cache."""


@dataclass(slots=True)
class Extremes:
    """Smallest, largest and sum of the finite elements, and what else there is."""

    low: Tensor
    high: Tensor
    total: Tensor
    counts: Tensor
    """Numbers of NaN, of infinity and of minus infinity."""
    bins: Tensor | None = None
    """Number of elements in each bin, if requested; NaN beyond the last."""

    def merge(self, other: Extremes) -> Extremes:
        """Combine both; the bins are those of the last tensor, as others have other edges."""
        return Extremes(
            torch.minimum(self.low, other.low),
            torch.maximum(self.high, other.high),
            self.total + other.total,
            self.counts + other.counts,
            other.bins,
        )


@reduction("extremes", BINS, of_copies=(BINS,))
def extremes(
    tensor: Tensor, module: nn.Module | None = None, wanted: frozenset[str] = frozenset()
) -> Extremes:
    """Measure the finite elements of a tensor, and count the others.

    Examples
    --------
    >>> extremes(torch.tensor([1.0, 5.0, torch.inf])).high
    tensor(5., dtype=torch.float64)
    >>> extremes(torch.tensor([1.0, 2.0, 5.0]), wanted=frozenset({"equal_bins"})).bins[:3]
    tensor([2., 1., nan], dtype=torch.float64)
    """
    values = readable(tensor).reshape(-1)
    found = _all_finite(values) or _some_finite(values)
    if BINS in wanted:
        found.bins = _bins_here(values, found) if values.is_cpu else _bins_there(values, found)
    return found


def _all_finite(values: Tensor) -> Extremes | None:
    """The fast path: where the extremes are finite all between them are."""
    if not (values.is_cpu and len(values)):
        return None
    low, high = values.aminmax()
    if not (math.isfinite(low) and math.isfinite(high)):
        return None
    # numpy's: torch's own converts element by element, which takes twice as long
    total = torch.tensor(values.numpy().sum(dtype=np.float64))
    return Extremes(low.double(), high.double(), total, torch.zeros(3, dtype=torch.int64))


def _some_finite(values: Tensor) -> Extremes:
    """The slow path, which never waits for a device; the extremes of nothing are infinite."""
    finite = values.isfinite()
    low = values.where(finite, math.inf).amin() if len(values) else values.new_tensor(math.inf)
    high = values.where(finite, -math.inf).amax() if len(values) else -low
    total = values.where(finite, 0.0).sum(dtype=torch.float64)
    others = (values.isnan(), values == math.inf, values == -math.inf)
    counts = torch.stack([other.sum() for other in others])
    return Extremes(low.double(), high.double(), total, counts)


# ---------------------------------------------------------------- on the host


def _bins_here(values: Tensor, found: Extremes) -> Tensor:
    kept: Floats = values.numpy()
    n = len(kept) - int(found.counts.sum())
    if n < len(kept):
        kept = kept[np.isfinite(kept)]
    low, high = float(found.low), float(found.high)
    counts, n_bins = np.full(MOST_BINS, np.nan), _n_bins_of(n)
    is_single = kept.dtype == np.float32 and n > MANY
    if is_single and TINY < (high - low) / MOST_BINS < HUGE:
        counts[:] = quiet.run(_by_quotients, kept, low, high)
    else:
        # A constant gets a range of width 1 around it, as np.histogram does.
        ends = (low - 0.5, high + 0.5) if low == high else (low, high)
        counts[:n_bins] = _by_edges(kept.astype(np.float64, copy=False), *ends, n_bins)
    return torch.from_numpy(counts)


def _by_edges(values: Floats, low: float, high: float, n_bins: int) -> Counts:
    """Counts of finite values, each compared with the edges themselves."""
    inner = low + np.arange(1, n_bins) * ((high - low) / max(n_bins, 1))
    return np.bincount(np.searchsorted(inner, values, side="right"), minlength=n_bins)


def _by_quotients(values: Singles, low: float, high: float) -> Counts:
    """Count by the quotient, and by the edges where the quotient may mislead."""
    scale, size = MOST_BINS / (high - low), min(PIECE, len(values))
    quotient, nearest = np.empty((2, size), np.float32)
    place, is_near = np.empty(size, np.uint8), np.empty(size, np.bool_)
    counts, close = np.zeros(MOST_BINS, np.int64), []
    for start in range(0, len(values), size):
        piece = values[start : start + size]
        q, r, p, near = (one[: len(piece)] for one in (quotient, nearest, place, is_near))
        np.multiply(np.subtract(piece, low, out=q), scale, out=q)
        # The quotient is not negative, so that the cast rounds down.
        np.copyto(p, q, casting="unsafe")
        np.less(np.abs(np.subtract(q, np.rint(q, out=r), out=r), out=r), MARGIN, out=near)
        found = np.flatnonzero(near)
        # Elements near an edge go to an extra bin, and are counted once more by the edges below.
        p[found] = MOST_BINS
        counts += torch.bincount(torch.from_numpy(p), minlength=MOST_BINS + 1).numpy()[:-1]
        close.append(piece[found])
    return counts + _by_edges(np.concatenate(close).astype(np.float64), low, high, MOST_BINS)


def _n_bins_of(n: int) -> int:
    """Return the number of bins for ``n`` elements by the rule of MindInsight; 0 for none."""
    return next((few for most, few in FEW if n <= most), min(n // 10 + 1, MOST_BINS))


# ---------------------------------------------------------------- on a device


def _bins_there(values: Tensor, found: Extremes) -> Tensor:
    """The same without ever waiting for the device."""
    low, high = (
        torch.where(found.low == found.high, end + shift, end)
        for end, shift in ((found.low, -0.5), (found.high, 0.5))
    )
    n_bins = _n_bins(values.numel() - found.counts.sum())
    counts = torch.zeros(MOST_BINS + 1, dtype=torch.float64, device=values.device)
    # In pieces, as the float64 intermediates are several times the size of the tensor.
    for piece in values.split(PIECE):
        places = _places(piece.double(), low, (high - low) / n_bins, n_bins)
        counts.index_add_(0, places, torch.ones_like(places, dtype=torch.float64))
    unused = torch.arange(MOST_BINS, device=values.device) >= n_bins
    return counts[:-1].masked_fill(unused, torch.nan)


def _places(values: Tensor, low: Tensor, width: Tensor, n_bins: Tensor) -> Tensor:
    """Return the bin of each value by the edges, not by the quotient; `MOST_BINS` for no bin."""
    finite = values.isfinite()
    place = ((values - low) / width).nan_to_num(0, 0, 0).floor()
    place = place - (values < low + place * width).double()
    place = place + (values >= low + (place + 1) * width).double()
    place = place.clamp(min=0).minimum(n_bins - 1)
    return place.where(finite, MOST_BINS).long()


def _n_bins(n: Tensor) -> Tensor:
    """The same rule of a number that the host does not know."""
    bins = (n // 10 + 1).clamp(max=MOST_BINS)
    for most, few in reversed(FEW):
        bins = torch.where(n <= most, few, bins)
    return bins
