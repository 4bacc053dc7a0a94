"""A histogram of any tensor, as two rows: the edges of its bins, and their contents."""

from __future__ import annotations

import torch
from torch import Tensor

from notebook_probe.quantities.catalogue.equal_bins import BINS, extremes

__all__ = ["binned"]


def binned(values: Tensor) -> Tensor:
    """Edges and counts of equal bins between the extremes of the finite elements, shape (2, 91).

    Bins are those of `param_histogram`; what is beyond the last is NaN.

    Examples
    --------
    >>> rows = binned(torch.tensor([0.0, 1.0, 3.0, 4.0]))
    >>> rows[0, :3], rows[1, :2]
    (tensor([0., 2., 4.], dtype=torch.float64), tensor([2., 2.], dtype=torch.float64))
    """
    found = extremes(values, wanted=frozenset({BINS}))
    counts = found.bins
    assert counts is not None
    n_bins = counts.isfinite().sum()
    # As np.histogram does, a constant gets a bin of width 1 around it.
    half = torch.where(found.low == found.high, 0.5, 0.0)
    low, high = found.low - half, found.high + half
    places = torch.arange(len(counts) + 1, device=counts.device)
    # The edges are computed where the tensor is: the number of bins is known to the device only.
    edges = low + places * (high - low) / n_bins
    edges = edges.masked_fill((places > n_bins) | (n_bins == 0), torch.nan)
    return torch.stack([edges, torch.cat([counts, counts.new_full((1,), torch.nan)])])
