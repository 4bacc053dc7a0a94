"""Channels of an input that carry nothing: what is dead in the layers before, whatever its code."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from notebook_probe.errors import QuantityError, UnreadableError
from notebook_probe.quantities.define import questions
from notebook_probe.quantities.define.decorator import quantity
from notebook_probe.quantities.reduce.arrays import readable
from notebook_probe.quantities.reduce.reductions import reduction
from notebook_probe.quantities.reduce.samples import channel_axis

__all__ = ["Reach", "reach", "silent_input_fraction"]

FEW_ROWS = 32
"""Of fewer rows a unit that is well may miss all."""


@dataclass(slots=True)
class Reach:
    """The largest and the smallest number of each channel, as it came; (channel,)."""

    n_rows: int
    largest: Tensor
    smallest: Tensor

    def merge(self, other: Reach) -> Reach:
        """Of the rows of both."""
        if self.largest.shape != other.largest.shape:
            raise QuantityError(
                f"calls with {len(self.largest)} and with {len(other.largest)} channels in one "
                f"step have no common channels"
            )
        largest = torch.maximum(self.largest, other.largest)
        smallest = torch.minimum(self.smallest, other.smallest)
        return Reach(self.n_rows + other.n_rows, largest, smallest)


@reduction("reach", first_only=True)
def reach(
    tensor: Tensor, module: nn.Module | None = None, wanted: frozenset[str] = frozenset()
) -> Reach:
    """Measure how far each channel comes up and down, of what the network computed.

    Two passes that copy nothing, in the tensor's own type.

    Raises
    ------
    UnreadableError
        Data, which no gradient passes through, and what cannot be read.

    Examples
    --------
    >>> made = 2 * torch.tensor([[0.0, -1.0], [2.0, -3.0]], requires_grad=True)
    >>> reach(made, nn.Linear(2, 2)).largest
    tensor([ 4., -2.])
    """
    if tensor.grad_fn is None:
        raise UnreadableError("what comes in is data, or nothing that is trained has made it")
    values = torch.atleast_2d(readable(tensor))
    if not values.numel():
        raise UnreadableError(f"no row in a tensor of shape {tuple(tensor.shape)}")
    axis = channel_axis(module, values.shape)
    width = values.shape[axis]
    return Reach(values.numel() // width, _along(values, axis, torch.amax), _along(values, axis, torch.amin))


def _along(values: Tensor, axis: int, extreme: Any) -> Tensor:
    """The extreme of each channel: over the first axis at once, where memory lies as it is read."""
    if axis:
        values, axis = extreme(values, 0), axis - 1
    others = [one for one in range(values.dim()) if one != axis]
    return extreme(values, others) if others else values


@quantity(source="definition", question=questions.DEAD, bounds=(0, 1))
def silent_input_fraction(input_reach: Reach) -> Tensor | float:
    """Share of input channels that are zero in every row, ``#{c : x_c = 0 in all rows} / C``.

    Rows are samples and positions of the step. What a ReLU lets nothing through of arrives here as
    zero, whether it is a module or a function in somebody's ``forward``: so it sees dead units that
    have no module of their own. Of data it says nothing: their zeros may be as they should.

    Warnings
    --------
    Missing for fewer than 32 rows, in evaluation, and behind layers that are all frozen. Of what a
    convolution's images are flattened to, a channel is a place: at their border many may be zero.
    """
    if input_reach.n_rows < FEW_ROWS:
        return math.nan
    return ((input_reach.largest == 0) & (input_reach.smallest == 0)).double().mean()
