"""Channels of an input that carry nothing: what is dead in the layers before, whatever its code."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from notebook_probe.errors import QuantityError, UnreadableError
from notebook_probe.quantities.define import questions
from notebook_probe.quantities.define.decorator import quantity
from notebook_probe.quantities.reduce.reductions import reduction
from notebook_probe.quantities.reduce.samples import channelled, extremes

__all__ = ["Reach", "reach", "silent_input_fraction"]

FEW_ROWS = 32
"""Number of rows below which even a healthy unit may be zero in all."""


@dataclass(slots=True)
class Reach:
    """The largest and the smallest number of each channel, as it came; (channel,)."""

    n_rows: int
    largest: Tensor
    smallest: Tensor
    is_data: bool = False
    """True if no operation with a gradient made it."""

    @property
    def is_silent(self) -> Tensor:
        """Mask of the channels that are zero in every row; False with a NaN."""
        return (self.largest == 0) & (self.smallest == 0)

    def merge(self, other: Reach) -> Reach:
        """Return the extremes over the rows of both."""
        if self.largest.shape != other.largest.shape:
            raise QuantityError(
                f"calls with {len(self.largest)} and with {len(other.largest)} channels in one "
                f"step have no common channels"
            )
        return Reach(
            self.n_rows + other.n_rows,
            torch.maximum(self.largest, other.largest),
            torch.minimum(self.smallest, other.smallest),
            self.is_data and other.is_data,
        )


@reduction("reach", first_only=True)
def reach(
    tensor: Tensor, module: nn.Module | None = None, wanted: frozenset[str] = frozenset()
) -> Reach:
    """Measure how far each channel comes up and down.

    Two passes that copy nothing, in the tensor's own type.

    Raises
    ------
    UnreadableError
        Indices, nothing at all, and what cannot be read.

    Examples
    --------
    >>> reach(torch.tensor([[0.0, -1.0], [2.0, -3.0]]), nn.Linear(2, 2)).largest
    tensor([ 2., -1.])
    """
    values, axis = channelled(tensor, module)
    if not values.numel():
        raise UnreadableError(f"no row in a tensor of shape {tuple(tensor.shape)}")
    largest, smallest = extremes(values, axis)
    n_rows = values.numel() // values.shape[axis]
    return Reach(n_rows, largest, smallest, tensor.grad_fn is None)


@quantity(source="definition", question=questions.DEAD, bounds=(0, 1))
def silent_input_fraction(input_reach: Reach) -> Tensor | float:
    """Share of input channels that are zero in every row, ``#{c : x_c = 0 in all rows} / C``.

    Rows are samples and positions of the step. Units that a ReLU always cuts off arrive here as
    zero, whether the ReLU is a module or a function in a user's ``forward``. So it finds dead units
    that have no module, and features that a mistake has left empty.

    Warnings
    --------
    Missing for fewer than 32 rows, and for data of which some channels are silent and others not:
    in categories, radial bases, bags of words and at the border of images, channels are empty on
    purpose.
    """
    if input_reach.n_rows < FEW_ROWS:
        return math.nan
    is_silent = input_reach.is_silent
    share = is_silent.double().mean()
    is_clear = is_silent.all() | ~is_silent.any()
    return share.where(is_clear, torch.nan) if input_reach.is_data else share
