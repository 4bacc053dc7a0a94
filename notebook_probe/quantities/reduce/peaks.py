"""Extremes of each channel of a tensor, over all samples and positions of a step."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from notebook_probe.errors import QuantityError
from notebook_probe.quantities.reduce.reductions import Traced, reduction
from notebook_probe.quantities.reduce.samples import (
    channelled,
    extremes,
    traced_channels,
    widest_type,
)

__all__ = ["Peaks", "peaks", "traced_extremes"]


@dataclass(slots=True)
class Peaks:
    """Extremes of each channel; float64 (channel,)."""

    n_rows: int
    largest: Tensor
    smallest: Tensor

    def merge(self, other: Peaks) -> Peaks:
        """Return the extremes over the rows of both."""
        if not self.n_rows or not other.n_rows:
            return self if self.n_rows else other
        if self.largest.shape != other.largest.shape:
            raise QuantityError(
                f"calls with {len(self.largest)} and with {len(other.largest)} channels in one "
                f"step have no common channels"
            )
        largest = torch.maximum(self.largest, other.largest)
        smallest = torch.minimum(self.smallest, other.smallest)
        return Peaks(self.n_rows + other.n_rows, largest, smallest)

    @property
    def abs_max(self) -> Tensor:
        """Largest magnitude of each channel."""
        return torch.maximum(self.largest.abs(), self.smallest.abs())


def traced_extremes(
    tensor: Tensor, module: nn.Module | None, wanted: frozenset[str] = frozenset()
) -> Tensor:
    """Return the largest and the smallest number of each channel, (2, channel), in a graph.

    Examples
    --------
    >>> traced_extremes(torch.tensor([[0.0, -1.0], [2.0, -3.0]]), nn.Linear(2, 2))
    tensor([[ 2., -1.],
            [ 0., -3.]], dtype=torch.float64)
    """
    values, axes = traced_channels(tensor, module)
    return torch.stack([values.amax(axes), values.amin(axes)]).double()


def _peaks_of(sums: Tensor, n: int, wanted: frozenset[str]) -> Peaks:
    largest, smallest = sums.view(2, -1)
    return Peaks(n // len(largest), largest, smallest)


@reduction("peaks", first_only=True, traced=Traced(traced_extremes, _peaks_of))
def peaks(
    tensor: Tensor, module: nn.Module | None = None, wanted: frozenset[str] = frozenset()
) -> Peaks:
    """Measure how far each channel comes up and down, over all samples and positions.

    Examples
    --------
    >>> peaks(torch.tensor([[0.0, -1.0], [2.0, -3.0]]), nn.Linear(2, 2)).largest
    tensor([ 2., -1.], dtype=torch.float64)
    """
    values, axis = channelled(tensor, module)
    width = values.shape[axis]
    if not values.numel():
        nothing = torch.full((max(1, width),), torch.nan, dtype=torch.float64)
        return Peaks(0, nothing, nothing)
    largest, smallest = (found.to(widest_type(found)) for found in extremes(values, axis))
    return Peaks(values.numel() // width, largest, smallest)
