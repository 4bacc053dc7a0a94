"""Channels of an input that carry nothing: what is dead in the layers before, whatever its code."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from functools import reduce

import torch
from torch import Tensor, nn

from notebook_probe.errors import QuantityError, UnreadableError
from notebook_probe.quantities.define import questions
from notebook_probe.quantities.define.window import window_quantity
from notebook_probe.quantities.reduce.reductions import reduction
from notebook_probe.quantities.reduce.samples import channelled, extremes

__all__ = ["Reach", "SilentInputFraction", "reach"]

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


@window_quantity(samples="due", source="definition", question=questions.DEAD, bounds=(0, 1))
class SilentInputFraction:
    """Share of input channels that are zero in every row, ``#{c : x_c = 0 in all rows} / C``.

    Rows are samples and positions of the step; where these are fewer than 32, of as many due steps
    before as have so many together. What a ReLU lets nothing through of arrives here as
    zero, whether it is a module or a function in somebody's ``forward``: so it sees dead units that
    have no module of their own, and features that a mistake has left empty.

    Warnings
    --------
    Missing until there were 32 rows, and for data that is sparse altogether, as bags of words are:
    where the other channels are zero in three of four rows, too. Of what images are flattened to, a
    channel is a place: at the border many may be zero.
    """

    def __init__(self) -> None:
        self._steps: deque[Reach] = deque(maxlen=FEW_ROWS)

    def reset(self) -> None:
        """Steps that are too small by themselves are kept."""

    def update(self, input_reach: Reach) -> None:
        steps, now = self._steps, input_reach.largest
        if steps and (steps[-1].largest.shape, steps[-1].largest.device) != (now.shape, now.device):
            steps.clear()
        steps.append(input_reach)
        while sum(one.n_rows for one in steps) - steps[0].n_rows >= FEW_ROWS:
            steps.popleft()

    def compute(self) -> Tensor | None:
        if sum(one.n_rows for one in self._steps) < FEW_ROWS:
            return None
        rows = reduce(Reach.merge, self._steps)
        share = rows.is_silent.double().mean()
        if rows.n_nonzero is None:
            return share
        n_others = (len(rows.largest) - rows.is_silent.sum()) * rows.n_rows
        return share.where(rows.n_nonzero >= DENSE * n_others, torch.nan)
