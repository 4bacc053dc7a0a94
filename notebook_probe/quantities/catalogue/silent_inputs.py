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
"""Of fewer rows a unit that is well may miss all."""

DENSE = 0.25
"""Data of which the channels that are not silent are zero more often is sparse altogether."""


@dataclass(slots=True)
class Reach:
    """The largest and the smallest number of each channel, as it came; (channel,)."""

    n_rows: int
    largest: Tensor
    smallest: Tensor
    n_nonzero: Tensor | None = None
    """Elements of data that are not zero; None of what a network made."""

    @property
    def is_silent(self) -> Tensor:
        """Which channels are zero in every row; not one with a NaN."""
        return (self.largest == 0) & (self.smallest == 0)

    def merge(self, other: Reach) -> Reach:
        """Of the rows of both."""
        if self.largest.shape != other.largest.shape:
            raise QuantityError(
                f"calls with {len(self.largest)} and with {len(other.largest)} channels in one "
                f"step have no common channels"
            )
        counts = [one.n_nonzero for one in (self, other) if one.n_nonzero is not None]
        return Reach(
            self.n_rows + other.n_rows,
            torch.maximum(self.largest, other.largest),
            torch.minimum(self.smallest, other.smallest),
            counts[0] + counts[1] if len(counts) == 2 else None,
        )


@reduction("reach", first_only=True)
def reach(
    tensor: Tensor, module: nn.Module | None = None, wanted: frozenset[str] = frozenset()
) -> Reach:
    """Measure how far each channel comes up and down.

    Two passes that copy nothing, in the tensor's own type; of data one more.

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
    n_nonzero = torch.count_nonzero(values) if tensor.grad_fn is None else None
    return Reach(values.numel() // len(largest), largest, smallest, n_nonzero)


@quantity(source="definition", question=questions.DEAD, bounds=(0, 1))
def silent_input_fraction(input_reach: Reach) -> Tensor | float:
    """Share of input channels that are zero in every row, ``#{c : x_c = 0 in all rows} / C``.

    Rows are samples and positions of the step. What a ReLU lets nothing through of arrives here as
    zero, whether it is a module or a function in somebody's ``forward``: so it sees dead units that
    have no module of their own, and features that a mistake has left empty.

    Warnings
    --------
    Missing for fewer than 32 rows, and for data that is sparse altogether, as bags of words are:
    where the other channels are zero in three of four rows, too. Of what images are flattened to, a
    channel is a place: at the border many may be zero.
    """
    if input_reach.n_rows < FEW_ROWS:
        return math.nan
    is_silent = input_reach.is_silent
    share = is_silent.double().mean()
    if input_reach.n_nonzero is None:
        return share
    n_others = (len(is_silent) - is_silent.sum()) * input_reach.n_rows
    return share.where(input_reach.n_nonzero >= DENSE * n_others, torch.nan)
