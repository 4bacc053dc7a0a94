"""Mean, spread and size of each channel: vectors, one number per channel.

Rows are samples (and positions), columns are channels; see `samples`. All calls of a step count as
one with all their rows.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import reduce

import torch
from torch import Tensor, nn

from notebook_probe.axis import PER_CHANNEL
from notebook_probe.errors import QuantityError
from notebook_probe.quantities.define import questions
from notebook_probe.quantities.define.decorator import quantity
from notebook_probe.quantities.reduce.peaks import Peaks
from notebook_probe.quantities.reduce.reductions import Traced, reduction
from notebook_probe.quantities.reduce.samples import samples, traced_channels
from notebook_probe.quantities.reduce.traced_stat import traced_shift, traced_spread

__all__ = [
    "Channels",
    "channels",
    "input_channel_abs_max",
    "input_channel_mean",
    "input_channel_norm",
    "input_channel_rms",
    "input_channel_std",
    "output_channel_abs_max",
    "output_channel_mean",
    "output_channel_norm",
    "output_channel_rms",
    "output_channel_std",
]


@dataclass(slots=True)
class Channels:
    """Moments of rows, column by column; float64 (channel,)."""

    n_rows: int
    mean: Tensor
    squares: Tensor
    """Sum of the squared differences from the mean; NaN, like the mean, of no row.

    Where the mean is not finite, the sum of the squares themselves: infinite, or NaN of a NaN.
    """

    @classmethod
    def of(cls, rows: Tensor) -> Channels:
        """The moments of rows (sample, channel), which are written over."""
        mean = rows.mean(0)
        is_finite = mean.isfinite()
        if mean.is_cpu and bool(is_finite.all()):  # no device is waited for
            # Differences from the mean, not the mean of squares: those cancel where the mean is
            # large.
            return cls(len(rows), mean, rows.sub_(mean).square_().sum(0))
        sizes = rows.square().sum(0)
        squares = rows.sub_(mean).square_().sum(0)
        return cls(len(rows), mean, torch.where(is_finite, squares, sizes))

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
        # The pairwise update of Chan et al., which does not subtract large sums either.
        shift, share = other.mean - self.mean, other.n_rows / n_rows
        between = shift.square() * (self.n_rows * share)
        is_finite = shift.isfinite()  # else one of the means is not
        mean = self.mean * (1 - share) + other.mean * share
        return Channels(
            n_rows,
            torch.where(is_finite, self.mean + shift * share, mean),
            self.squares + other.squares + torch.where(is_finite, between, 0.0),
        )

    @property
    def std(self) -> Tensor:
        """Standard deviation, divisor rows less one; NaN of one row, and of infinite values."""
        std = (self.squares / (self.n_rows - 1)).sqrt()
        return torch.where(self.mean.isfinite(), std, torch.nan)

    @property
    def rms(self) -> Tensor:
        """Root of the mean square; infinite where a value is, NaN of a NaN and of no row."""
        # The sum already holds the squares themselves where the mean is not finite.
        of_mean = torch.where(self.mean.isfinite(), self.mean.square(), 0.0)
        return (of_mean + self.squares / self.n_rows).sqrt()


def _traced(tensor: Tensor, module: nn.Module | None, wanted: frozenset[str]) -> Tensor:
    values, axes = traced_channels(tensor, module)
    wide = values.double()
    first = wide[tuple(slice(0, 1) if one in axes else slice(None) for one in range(wide.dim()))]
    shift, n = traced_shift(first), wide.numel() // first.numel()
    away = wide - shift
    total, squares = away.sum(axes), away.square().sum(axes)
    return torch.stack([shift.flatten() + total / n, traced_spread(total, squares, n)])


def _of_sums(sums: Tensor, n: int, wanted: frozenset[str]) -> Channels:
    mean, squares = sums.view(2, -1)
    return Channels(n // len(mean), mean, squares)


@reduction("channels", first_only=True, traced=Traced(_traced, _of_sums))
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
    """Mean of each channel of the inputs, ``mean(x_c)`` over samples and positions.

    Channels that are far from 0 against their deviation shift the whole layer behind them; one
    that drifts over the steps shows what the layer before is doing.

    Warnings
    --------
    Which axis holds the channels follows from the kind of the module.
    """
    return input_channels.mean


@quantity(axis=PER_CHANNEL, source="definition", question=questions.SIGNAL)
def input_channel_std(input_channels: Channels) -> Tensor:
    """Standard deviation of each channel of the inputs, ``sqrt(sum (x_c - mean_c)^2 / (R - 1))``.

    ``R`` are the rows: samples and positions. A channel at 0 carries nothing; channels of very
    different sizes make the layer hard to train. NaN of one row.

    Warnings
    --------
    Positions of one sample resemble each other: many rows need not be much evidence.
    """
    return input_channels.std


@quantity(axis=PER_CHANNEL, source="definition", question=questions.SIGNAL)
def input_channel_rms(input_channels: Channels) -> Tensor:
    """Root mean square of each channel of the inputs, ``sqrt(mean(x_c^2))``.

    Over samples and positions. Channels of like size are easy to learn from; a few that are ten
    times the others dominate what the layer computes.

    Warnings
    --------
    A constant channel has one too: `input_channel_std` tells what varies.
    """
    return input_channels.rms


@quantity(axis=PER_CHANNEL, source="definition", question=questions.SIGNAL)
def input_channel_norm(input_channels: Channels) -> Tensor:
    """Size of each channel of the inputs, ``||x_c||_2``.

    Over samples and positions: the squares of all channels add up to that of `input_norm`.

    Warnings
    --------
    Grows with the root of the batch: between runs compare `input_channel_rms`.
    """
    return input_channels.rms * math.sqrt(input_channels.n_rows)


@quantity(axis=PER_CHANNEL, source="definition", question=questions.RANGE)
def input_channel_abs_max(input_peaks: Peaks) -> Tensor:
    """Largest magnitude in each channel of the inputs, ``max |x_c|``.

    A channel far above the others sets the scale when the inputs are quantised, and wastes the
    range of all others.

    Warnings
    --------
    A single element sets it: it jumps about from batch to batch.
    """
    return input_peaks.abs_max


@quantity(axis=PER_CHANNEL, source="definition", question=questions.SIGNAL)
def output_channel_mean(output_channels: Channels) -> Tensor:
    """Mean of each channel of the outputs, ``mean(y_c)``.

    Over samples and positions. Far from 0 against `output_channel_std`, the channel is mostly a
    constant, which the next layer's bias could hold as well.

    Warnings
    --------
    Behind a ReLU it is never below 0, however centred the layer is.
    """
    return output_channels.mean


@quantity(axis=PER_CHANNEL, source="definition", question=questions.SIGNAL)
def output_channel_std(output_channels: Channels) -> Tensor:
    """Standard deviation of each channel of the outputs, ``sqrt(sum (y_c - mean_c)^2 / (R - 1))``.

    ``R`` are the rows: samples and positions. A channel at 0 tells the next layer nothing. NaN
    of one row.

    Warnings
    --------
    Positions of one sample resemble each other: many rows need not be much evidence.
    """
    return output_channels.std


@quantity(axis=PER_CHANNEL, source="definition", question=questions.SIGNAL)
def output_channel_rms(output_channels: Channels) -> Tensor:
    """Root mean square of each channel of the outputs, ``sqrt(mean(y_c^2))``.

    Over samples and positions. Side by side the channels should be of like size; one that
    shrinks to nothing is dying, one that grows away from the others is an outlier.

    Warnings
    --------
    A constant channel has one too: `output_channel_std` tells what varies.
    """
    return output_channels.rms


@quantity(axis=PER_CHANNEL, source="definition", question=questions.SIGNAL)
def output_channel_norm(output_channels: Channels) -> Tensor:
    """Size of each channel of the outputs, ``||y_c||_2``.

    Over samples and positions: the squares of all channels add up to that of `output_norm`.

    Warnings
    --------
    Grows with the root of the batch: between runs compare `output_channel_rms`.
    """
    return output_channels.rms * math.sqrt(output_channels.n_rows)


@quantity(axis=PER_CHANNEL, source="https://arxiv.org/abs/2208.07339", question=questions.RANGE)
def output_channel_abs_max(output_peaks: Peaks) -> Tensor:
    """Largest magnitude in each channel of the outputs, ``max |y_c|``.

    Transformers grow a few channels twenty times the others, always the same ones; they decide
    whether the activations can be quantised.

    Warnings
    --------
    A single element sets it: it jumps about from batch to batch.
    """
    return output_peaks.abs_max
