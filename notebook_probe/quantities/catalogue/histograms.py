"""Exact histograms of any tensor in 64 equal bins of either sign, as wide as its values ask for.

A bin is ``w = 2**(e - 5)`` wide, ``2**e`` being the smallest power of two above all magnitudes.

| element | holds |
|---|---|
| 0 to 63 | ``#(k w <= x < (k + 1) w)`` for k from -32 to 31; zero is in the bin of k = 0 |
| 64 | the number of NaN and infinities |
| 65, in the record | ``w``; read, it is ``<quantity>_width`` and ``linear_bin_width`` |

The edges of each step are ``series.linear_bin_lo * series.linear_bin_width`` and the same of
``linear_bin_hi``. Widths are powers of two: two narrow bins are exactly one of the next width, so
that calls are pooled without loss and two steps are compared by adding neighbours.

``e`` is between -121 and 128, so that ``w`` is a float32: the outermost bins take what is
larger. Where values span many decades, as gradients often do, most of them are in the two bins in
the middle: `log_histograms` has bins for that.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from notebook_probe.axis import Axis
from notebook_probe.quantities.define import questions
from notebook_probe.quantities.define.decorator import quantity
from notebook_probe.quantities.reduce.arrays import dense, readable, tallied
from notebook_probe.quantities.reduce.reductions import reduction

__all__ = [
    "LINEAR_BINS",
    "Histogram",
    "grad_histogram",
    "grad_output_histogram",
    "histogram",
    "input_histogram",
    "output_histogram",
    "weight_histogram",
]

HALF = 32
"""Bins of either sign."""
NONFINITE = 2 * HALF
N_COUNTS = NONFINITE + 1
OCTAVES = HALF.bit_length() - 1
"""The range of either sign is ``2**OCTAVES`` bins."""
LOWEST, HIGHEST = OCTAVES - 126, 128
"""Least and greatest exponent of the range: bins are normal float32 numbers wide."""
TINY = 2.0**-126
"""Number with the least exponent, used since zero has no exponent."""

PIECE = 1 << 15
"""Elements counted at a time, which the second pass over them finds in the cache."""


def _axis() -> Axis:
    lower = [float(k) for k in range(-HALF, HALF)]
    coords = {
        "linear_bin": (*(k + 0.5 for k in lower), math.inf, math.nan),
        "linear_bin_lo": (*lower, math.nan, math.nan),
        "linear_bin_hi": (*(k + 1 for k in lower), math.nan, math.nan),
    }
    return Axis("linear_bin", coords, group="linear_hist")


LINEAR_BINS = _axis()
"""Middle (infinite for what is not finite) and edges in bin widths, and the width itself."""


@dataclass(slots=True)
class Histogram:
    """Number of elements of one or many tensors in each bin."""

    counts: Tensor
    """Counts, int64 (65,), on the device of the elements."""
    exponent: Tensor
    """int64 (): the bins lie between ``-2**exponent`` and ``2**exponent``."""

    @property
    def width(self) -> Tensor:
        """Width of a bin, float32."""
        return _power_of_two(self._exponent_on(self.counts.device) - OCTAVES)

    def merge(self, other: Histogram) -> Histogram:
        """The histogram of both together, as if they had been one tensor."""
        device = self.counts.device
        exponent = torch.maximum(self._exponent_on(device), other._exponent_on(device))
        return Histogram(self._at(exponent) + other._at(exponent).to(device), exponent)

    def _exponent_on(self, device: torch.device) -> Tensor:
        """Return the exponent on a device; from an accelerator it comes without a tensor."""
        return torch.as_tensor(self.exponent, device=device).long()

    def _at(self, exponent: Tensor) -> Tensor:
        """The counts in bins of a range that is as large or larger: neighbours are added."""
        exponent = exponent.to(self.counts.device)
        place = torch.arange(N_COUNTS, device=self.counts.device)
        own = self._exponent_on(self.counts.device)
        # A range wider by more octaves has everything in its two middle bins, so a shift is enough
        # up to there.
        octaves = (exponent - own).clamp(max=OCTAVES + 1)
        wider = (((place - HALF) >> octaves) + HALF).where(place != NONFINITE, NONFINITE)
        return torch.zeros_like(self.counts).index_add_(0, wider, self.counts)


@reduction("histogram", cost="sort")
def histogram(
    tensor: Tensor, module: nn.Module | None = None, wanted: frozenset[str] = frozenset()
) -> Histogram:
    """Count the elements of a tensor, of any shape and dtype, in each of the bins.

    Exact whatever the values. Complex numbers count by their modulus, the elements that a sparse
    tensor leaves out as zeros. For a sharded tensor, this process's shard is counted.

    Raises
    ------
    UnreadableError
        A tensor without values, or of a kind nobody can convert.

    Examples
    --------
    >>> found = histogram(torch.tensor([0.0, 0.75, 0.76, -0.1, float("nan")]))
    >>> [(LINEAR_BINS.coords["linear_bin_lo"][i], int(found.counts[i])) for i in (28, 32, 56, 64)]
    [(-4.0, 1), (0.0, 1), (24.0, 2), (nan, 1)]
    >>> found.width
    tensor(0.0312)
    """
    array = dense(tensor)
    if array is None:
        wide = tensor.to(torch.complex128) if tensor.is_complex() else tensor  # cannot overflow
        values = readable(wide).resolve_neg().reshape(-1)
        if not values.is_cpu:
            return _on_device(values)
        array = values.numpy()
    return _on_cpu(array)


def _on_cpu(values: npt.NDArray[Any]) -> Histogram:
    """Count in two passes if everything is finite."""
    low, high = _ends(values)
    if not (math.isfinite(low) and math.isfinite(high)) or max(-low, high) >= 2.0**HIGHEST:
        return _on_device(torch.from_numpy(values))
    # frexp gives the exponent of the smallest power of two above the magnitude.
    exponent = max(math.frexp(max(-low, high, TINY))[1], LOWEST)
    # Scaling by a power of two is exact, so that no value crosses an edge.
    scale = values.dtype.type(2.0 ** (OCTAVES - exponent))
    vanishing = low < 0 and scale < 1
    buffer, places = np.empty(PIECE, values.dtype), np.empty(PIECE, np.int8)
    by_place = np.zeros(256, np.int64)
    for start in range(0, values.size, PIECE):
        piece = values[start : start + PIECE]
        scaled, key = buffer[: piece.size], places[: piece.size]
        np.multiply(piece, scale, out=scaled)
        lost = (scaled == 0) & (piece < 0) if vanishing else None  # not zero before, but below it
        np.floor(scaled, out=scaled)
        np.copyto(key, scaled, casting="unsafe")
        if lost is not None:
            key -= lost
        # As uint8, since bincount takes no negative numbers: -32 is place 224.
        by_place += torch.bincount(torch.from_numpy(key.view(np.uint8)), minlength=256).numpy()
    counts = np.zeros(N_COUNTS, np.int64)
    counts[:HALF], counts[HALF:NONFINITE] = by_place[-HALF:], by_place[:HALF]
    return Histogram(torch.from_numpy(counts), torch.tensor(exponent, device="cpu"))


def _ends(values: npt.NDArray[Any]) -> tuple[float, float]:
    """Smallest and largest; NaN if one is."""
    if not values.size:
        return 0.0, 0.0
    low, high = torch.from_numpy(values).aminmax()
    return float(low), float(high)


def _on_device(values: Tensor) -> Histogram:
    """Count values of any kind, without ever waiting for the device."""
    finite = values.isfinite()
    # The added number gives an empty tensor a maximum.
    sizes = torch.cat([values.abs().where(finite, 0), values.new_full((1,), TINY)])
    exponent = torch.frexp(sizes.amax())[1].long().clamp(LOWEST, HIGHEST)
    scaled = values * _power_of_two(OCTAVES - exponent)
    vanished = (scaled == 0) & (values < 0)  # not zero before, but below it
    places = (scaled.floor() - vanished.to(values.dtype)).clamp(-HALF, HALF - 1) + HALF
    return Histogram(tallied(places.where(finite, NONFINITE).int(), N_COUNTS), exponent)


def _power_of_two(exponent: Tensor) -> Tensor:
    """Exact on any device, which ``exp2`` need not be; of a normal float32 number."""
    return ((exponent + 127) << 23).int().view(torch.float32)


def _row(found: Histogram) -> Tensor:
    """Return the counts and the width as one row, which is recorded."""
    return torch.cat([found.counts.float(), found.width.reshape(1)])


@quantity(axis=LINEAR_BINS, source="definition", question=questions.LEARNING)
def weight_histogram(weight_histogram: Histogram) -> Tensor:
    """Counts of the weights as the forward used them in equal bins, ``#(k w <= x < (k + 1) w)``.

    A bell around zero slowly widens as a rule. A growing bin at 0 is pruning; a bell that narrows
    is decay; a far tail is a few weights that run away.

    Warnings
    --------
    A single large weight makes all bins wide. Where almost all is in the two bins in the middle
    look at `weight_log_histogram`.
    """
    return _row(weight_histogram)


@quantity(axis=LINEAR_BINS, source="definition", question=questions.SIGNAL)
def grad_histogram(grad_histogram: Histogram) -> Tensor:
    """Counts of the gradient's elements as applied in equal bins, ``#(k w <= g < (k + 1) w)``.

    A bell that narrows from step to step is a gradient that vanishes, one that widens explodes; a
    sharp peak with far tails is a gradient that few samples or units make.

    Warnings
    --------
    Gradients span decades: `grad_log_histogram` shows the small ones apart. All parameters below
    the module are counted.
    """
    return _row(grad_histogram)


@quantity(axis=LINEAR_BINS, source="definition", question=questions.SIGNAL)
def input_histogram(input_histogram: Histogram) -> Tensor:
    """Counts of the inputs in equal bins, ``#(k w <= x < (k + 1) w)``.

    At the first layer, the data as the network gets it: whether it is centred, of which size, how
    many humps it has, and whether it is cut off at an end.

    Warnings
    --------
    A single large input makes all bins wide: compare `input_log_histogram`.
    """
    return _row(input_histogram)


@quantity(
    axis=LINEAR_BINS,
    aliases=("activation_histogram",),
    source="definition",
    question=questions.SIGNAL,
)
def output_histogram(output_histogram: Histogram) -> Tensor:
    """Counts of the outputs in equal bins, ``#(k w <= y < (k + 1) w)``.

    Shows what mean and deviation hide: a far tail, a block at 0 after a ReLU, at -1 and 1 after a
    saturated tanh, two humps of two classes.

    Warnings
    --------
    A single large output makes all bins wide: compare `output_log_histogram`. Only this step's
    batch is counted.
    """
    return _row(output_histogram)


@quantity(axis=LINEAR_BINS, source="definition", question=questions.SIGNAL)
def grad_output_histogram(grad_output_histogram: Histogram) -> Tensor:
    """Counts of the gradients that reach the output, in equal bins, ``#(k w <= d < (k + 1) w)``.

    A bell that narrows from layer to layer towards the input is a gradient that vanishes. A
    peak at 0 is of outputs that nothing depends on, such as those of dead units.

    Warnings
    --------
    Gradients span decades: `grad_output_log_histogram` shows the small ones apart, and what
    float16 would lose. Under a gradient scaler these are scaled.
    """
    return _row(grad_output_histogram)
