"""Distance of numbers from the ends of their type's range; the type they are computed in."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from notebook_probe.quantities.catalogue.log_histograms import BINS, LogHistogram
from notebook_probe.quantities.define import questions
from notebook_probe.quantities.define.decorator import quantity
from notebook_probe.quantities.reduce.arrays import dense, readable
from notebook_probe.quantities.reduce.stat import Stat

__all__ = [
    "fp8_error",
    "fp8_underflow_fraction",
    "grad_nonfinite_fraction",
    "grad_underflow_fraction",
    "input_nonfinite_fraction",
    "output_dtype",
    "output_grad_fp8_error",
    "output_grad_fp8_underflow_fraction",
    "output_grad_headroom_bits",
    "output_grad_nonfinite_fraction",
    "output_grad_underflow_fraction",
    "range_headroom_bits",
    "underflow_fraction",
    "weight_nonfinite_fraction",
]

_LOST = torch.tensor(
    [
        -(2.0**-25) <= low < high <= 2.0**-25
        for low, high in zip(BINS.coords["bin_lo"], BINS.coords["bin_hi"], strict=True)
    ]
)
"""The bins of what float16 rounds to zero."""


@quantity(
    units="bit",
    combine="min",
    source="https://github.com/huggingface/transformers/pull/11274",
    question=questions.RANGE,
)
def range_headroom_bits(output: Tensor) -> Tensor | float:
    """Bits between the largest activation and overflow, ``log2(finfo(dtype).max / max |y|)``.

    Below 2 a float16 model is about to overflow. 0 or less once something is infinite; infinite
    where all is zero; NaN where something is NaN, and for integers.

    Warnings
    --------
    Of the type the module computes in: in float32 there are 100 bits and more even where
    float16 would have overflowed.
    """
    return _headroom(output)


@quantity(units="bit", combine="min", source="definition", question=questions.RANGE)
def output_grad_headroom_bits(grad_output: Tensor) -> Tensor | float:
    """Bits from the largest output gradient to overflow, ``log2(finfo(dtype).max / max |dL/dy|)``.

    Range that a gradient scaler may still use: each doubling of the scale takes one bit. 0 or less
    once a gradient is infinite, which makes the scaler skip the step; infinite if all gradients are
    zero.

    Warnings
    --------
    Of the type the gradient has; in float32 there is always room.
    """
    return _headroom(grad_output)


@quantity(source="definition", question=questions.RANGE, bounds=(0, 1))
def underflow_fraction(output: Tensor) -> Tensor | float:
    """Share of activations that lost precision, ``#(0 < |y| < finfo(dtype).tiny) / n``.

    These subnormal numbers have fewer bits the smaller they are, and many devices make zeros of
    them. A share that grows in float16 says that a layer's scale is too small.

    Warnings
    --------
    What has become zero altogether no longer counts: see `zero_fraction`.
    """
    return _underflow(output)


@quantity(source="definition", question=questions.RANGE, bounds=(0, 1))
def output_grad_underflow_fraction(grad_output: Tensor) -> Tensor | float:
    """Share of output gradients that float16 cannot hold, ``#(0 < |dL/dy| < 2^-24) / n``.

    For any type: the share that a loss scale of 1 would lose. In a float32 run it shows in advance
    whether float16 will need a scaler.

    Warnings
    --------
    In float16 itself it is 0, as what is lost is a zero already. A scaler's scale is in it.
    Above ``2^-25`` they are rounded up, below to zero: `grad_underflow_fraction` counts only these.
    """
    return _share_below(2.0**-24, grad_output)


FP8 = "https://arxiv.org/abs/2209.05433"


@quantity(source=FP8, question=questions.RANGE)
def fp8_error(output: Tensor) -> Tensor | float:
    """Relative error of the activations in 8 bits, ``‖q(y) - y‖_2 / ‖y‖_2``.

    ``q`` rounds to ``float8_e4m3fn``, after a scale for the whole tensor that makes ``max |y|`` its
    largest number, 448. What FP8 training would lose here, whatever the present type: about 0.026
    of normal numbers, and much more where a few outliers take the range.

    Warnings
    --------
    Recipes with a scale per block, or with one from earlier steps, lose less or more.
    """
    return _fp8_error(output, torch.float8_e4m3fn)


@quantity(source=FP8, question=questions.RANGE, bounds=(0, 1))
def fp8_underflow_fraction(output: Tensor) -> Tensor | float:
    """Share of activations that become zero in 8 bits, ``#(y != 0 and q(y) = 0) / n``.

    ``q`` as in `fp8_error`: below about ``max |y| / 459,000`` nothing is left. Above a few per cent
    an outlier takes the range of all others: see `massive_ratio`.

    Warnings
    --------
    What is zero already does not count.
    """
    return _fp8_underflow(output, torch.float8_e4m3fn)


@quantity(source=FP8, question=questions.RANGE)
def output_grad_fp8_error(grad_output: Tensor) -> Tensor | float:
    """Relative error of the gradient at the output in 8 bits, ``‖q(g) - g‖_2 / ‖g‖_2``.

    ``q`` rounds to ``float8_e5m2``, which gradients are kept in as their range is wider, after a
    scale that makes ``max |g|`` its largest number, 57,344. About 0.05 of normal numbers.

    Warnings
    --------
    An error without a direction hurts less than its size says: sums over a batch average it out.
    """
    return _fp8_error(grad_output, torch.float8_e5m2)


@quantity(source=FP8, question=questions.RANGE, bounds=(0, 1))
def output_grad_fp8_underflow_fraction(grad_output: Tensor) -> Tensor | float:
    """Share of the gradient at the output that is zero in 8 bits, ``#(g != 0 and q(g) = 0) / n``.

    ``q`` as in `output_grad_fp8_error`: below about ``max |g| / 7.5e9`` nothing is left.

    Warnings
    --------
    What is zero already does not count.
    """
    return _fp8_underflow(grad_output, torch.float8_e5m2)


@quantity(units="bit", combine="min", source="definition", question=questions.RANGE)
def output_dtype(output: Tensor) -> float:
    """Significant bits of the type of the outputs, ``1 - log2(finfo(dtype).eps)``.

    24 for float32, 11 for float16, 8 for bfloat16, 53 for float64, 4 and 3 for the two types of 8
    bits; NaN for integers. Tells what autocast made of each layer, and when that changes.

    Warnings
    --------
    Of the outputs: weights are usually in float32, and a product may be summed in more bits.
    """
    if not (output.is_floating_point() or output.is_complex()) or not output.numel():
        return math.nan
    return 1 - math.log2(torch.finfo(output.dtype).eps)


@quantity(source="definition", question=questions.RANGE, bounds=(0, 1))
def input_nonfinite_fraction(input_nonfinite: Stat) -> float:
    """Share of inputs that are NaN or infinite, ``#(NaN or inf) / n``; 0 in a healthy network.

    At the first layer it says whether it was the data.

    Warnings
    --------
    Masks of minus infinity that are handed to attention count, and do no harm.
    """
    return _nonfinite(input_nonfinite)


@quantity(source="definition", question=questions.RANGE, bounds=(0, 1))
def output_grad_nonfinite_fraction(grad_output_nonfinite: Stat) -> float:
    """Share of the gradient at the output that is NaN or infinite, ``#(NaN or inf) / n``.

    Going from the output of the network to its input, the module where it first leaves 0 is where
    the backward pass broke.

    Warnings
    --------
    Under loss scaling infinities now and then are usual: the scaler skips such a step.
    """
    return _nonfinite(grad_output_nonfinite)


@quantity(source="definition", question=questions.RANGE, bounds=(0, 1))
def grad_nonfinite_fraction(grad_nonfinite: Stat) -> float:
    """Share of gradient elements that are NaN or infinite, ``#(NaN or inf) / n``.

    Over all parameters below the module, as applied. Above 0 the next weights are broken, unless
    something skips the step.

    Warnings
    --------
    Clipping by the norm spreads one infinity over all gradients: `grad_raw_norm` is before that.
    """
    return _nonfinite(grad_nonfinite)


@quantity(source="definition", question=questions.RANGE, bounds=(0, 1))
def weight_nonfinite_fraction(weight_nonfinite: Stat) -> float:
    """Share of weights that are NaN or infinite, ``#(NaN or inf) / n``; then training is lost.

    Go back to a checkpoint before the step at which it left 0, and look at
    `grad_nonfinite_fraction` of the step before.

    Warnings
    --------
    It is the weight that this step's forward used: the previous step broke it.
    """
    return _nonfinite(weight_nonfinite)


@quantity(source="https://arxiv.org/abs/1710.03740", question=questions.RANGE, bounds=(0, 1))
def grad_underflow_fraction(grad_log_histogram: LogHistogram) -> Tensor:
    """Share of gradients that round to zero in float16, ``#(0 < |g| < 2^-25) / n``.

    Over all parameters below the module, of any type, as applied: what would be lost if
    gradients were kept in float16 without a loss scale. Above a few per cent use bfloat16, or
    scale the loss.

    Warnings
    --------
    What was lost already is zero and does not count: compare `grad_zero_fraction`.
    """
    counts = grad_log_histogram.counts
    n = counts.sum()
    return counts[_LOST].sum().double() / n


def _nonfinite(stat: Stat) -> float:
    return stat.n_nonfinite / stat.n if stat.n else math.nan


def _headroom(tensor: Tensor) -> Tensor | float:
    if not (tensor.is_floating_point() or tensor.is_complex()) or not tensor.numel():
        return math.nan
    # The type before `readable` widens it: the question is what this type can hold.
    most, array = math.log2(torch.finfo(tensor.dtype).max), dense(tensor)
    if array is None:
        return most - readable(tensor).abs().amax().double().log2()
    # Two reductions without a copy of all magnitudes.
    largest = max(abs(float(array.max())), abs(float(array.min())))
    return most - math.log2(largest) if largest else math.inf


def _underflow(tensor: Tensor) -> Tensor | float:
    if not (tensor.is_floating_point() or tensor.is_complex()):
        return math.nan
    return _share_below(torch.finfo(tensor.dtype).tiny, tensor)


def _fp8_error(tensor: Tensor, kind: torch.dtype) -> Tensor | float:
    if not tensor.numel():
        return math.nan
    scaled, rounded = _in_fp8(tensor, kind)
    return (rounded - scaled).norm().double() / scaled.norm()


def _fp8_underflow(tensor: Tensor, kind: torch.dtype) -> Tensor | float:
    if not tensor.numel():
        return math.nan
    scaled, rounded = _in_fp8(tensor, kind)
    lost = torch.count_nonzero((scaled != 0) & (rounded == 0)).double() / scaled.numel()
    return lost + 0 * scaled.sum()  # of what has no largest number nothing is known


def _in_fp8(tensor: Tensor, kind: torch.dtype) -> tuple[Tensor, Tensor]:
    """Return a tensor scaled to the range of a type, and what the type makes of it."""
    values = readable(tensor)
    # Divided first: a factor would overflow of tiny numbers.
    scaled = values / values.abs().amax() * torch.finfo(kind).max
    return scaled, scaled.to(kind).to(scaled.dtype)


def _share_below(limit: float, tensor: Tensor) -> Tensor | float:
    """Return the share of elements that are smaller than ``limit``, and not zero."""
    size = readable(tensor).abs()
    if not size.numel():
        return math.nan
    return torch.count_nonzero((size > 0) & (size < limit)).double() / size.numel()
