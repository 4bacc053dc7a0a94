"""Mean and spread of each channel of a module's inputs: vectors, one number per channel.

Rows are samples (and positions), columns are channels; see `samples`. All calls of a step count as
one with all their rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce

import torch
from torch import Tensor, nn

from notebook_probe.axis import PER_CHANNEL
from notebook_probe.errors import QuantityError
from notebook_probe.quantities import questions
from notebook_probe.quantities.base import quantity
from notebook_probe.quantities.parts import reduction
from notebook_probe.quantities.samples import samples

__all__ = ["Channels", "channels", "input_channel_mean", "input_channel_std"]


@dataclass(slots=True)
class Channels:
    """Moments of rows, column by column; float64 (channel,)."""

    n_rows: int
    mean: Tensor
    squares: Tensor
    """Sum of the squared differences from the mean; NaN, like the mean, of no row."""

    @classmethod
    def of(cls, rows: Tensor) -> Channels:
        """The moments of rows (sample, channel), which are written over."""
        mean = rows.mean(0)
        return cls(len(rows), mean, rows.sub_(mean).square_().sum(0))

    def merge(self, other: Channels) -> Channels:
        """The moments of the rows of both."""
        if not self.n_rows or not other.n_rows:
            return self if self.n_rows else other
        if self.mean.shape != other.mean.shape:
            raise QuantityError(
                f"calls with {len(self.mean)} and with {len(other.mean)} channels in one step have "
                f"no common mean"
            )
        n_rows = self.n_rows + other.n_rows
        shift, share = other.mean - self.mean, other.n_rows / n_rows
        between = shift.square() * (self.n_rows * share)
        return Channels(n_rows, self.mean + shift * share, self.squares + other.squares + between)


@reduction("channels", first_only=True)
def channels(
    tensor: Tensor, module: nn.Module | None = None, wanted: frozenset[str] = frozenset()
) -> Channels:
    """Measure the channels of the samples in a tensor that entered or left ``module``.

    Raises
    ------
    UnreadableError
        A tensor without values, or of a kind nobody can convert.

    Examples
    --------
    >>> found = channels(torch.tensor([[0.0, 1.0], [2.0, 1.0], [4.0, 1.0]]), nn.Linear(2, 2))
    >>> found.mean
    tensor([2., 1.], dtype=torch.float64)
    """
    width, blocks = samples(tensor, module)
    nothing = torch.full((width,), torch.nan, dtype=torch.float64)
    return reduce(Channels.merge, map(Channels.of, blocks), Channels(0, nothing, nothing))


@quantity(axis=PER_CHANNEL, aliases=("InputMean",), source="Taiyi", question=questions.SIGNAL)
def input_channel_mean(input_channels: Channels) -> Tensor:
    """Mean of each channel of the inputs, ``E[x_c]`` over samples and positions.

    Channels that stand far from 0 beside their deviation shift the whole layer behind them; one
    that drifts over the steps shows what the layer before is doing.

    Warnings
    --------
    Which axis holds the channels follows from the kind of the module.
    """
    return input_channels.mean


@quantity(axis=PER_CHANNEL, source="definition", question=questions.SIGNAL)
def input_channel_std(input_channels: Channels) -> Tensor:
    """Standard deviation of each channel of the inputs, ``sqrt(sum (x_c - mean_c)^2 / (R - 1))``.

    ``R`` are the rows: samples and positions. A channel at 0 says nothing; channels of very
    different sizes make the layer hard to train. NaN of one row.

    Warnings
    --------
    Positions of one sample resemble each other: many rows need not be much evidence.
    """
    return (input_channels.squares / (input_channels.n_rows - 1)).sqrt()
