"""How close numbers come to the ends of their type's range; of the type they are computed in."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from notebook_probe.quantities.base import quantity

__all__ = [
    "output_grad_headroom_bits",
    "output_grad_underflow_fraction",
    "range_headroom_bits",
    "underflow_fraction",
]


@quantity(
    units="bit", combine="min", source="https://github.com/huggingface/transformers/pull/11274"
)
def range_headroom_bits(output: Tensor) -> Tensor | float:
    """Bits between the largest activation and overflow, ``log2(finfo(dtype).max / max |y|)``.

    Below 2 a float16 model is about to overflow. 0 or less once something is infinite; infinite
    where all is zero; NaN where something is NaN, and for integers.
    """
    return _headroom(output)


@quantity(units="bit", combine="min", source="definition")
def output_grad_headroom_bits(grad_output: Tensor) -> Tensor | float:
    """Bits between the largest gradient at the output and overflow, as ``range_headroom_bits``."""
    return _headroom(grad_output)


@quantity(source="definition")
def underflow_fraction(output: Tensor) -> Tensor | float:
    """Share of activations that lost precision, ``#(0 < |y| < finfo(dtype).tiny) / n``."""
    return _underflow(output)


@quantity(source="definition")
def output_grad_underflow_fraction(grad_output: Tensor) -> Tensor | float:
    """Share of gradients at the output that float16 cannot hold, ``#(0 < |g| < 2^-24) / n``.

    Of any type: what a loss scale of 1 would lose.
    """
    size = _magnitude(grad_output)
    if not size.numel():
        return math.nan
    return ((size > 0) & (size < 2.0**-24)).double().mean()


def _headroom(tensor: Tensor) -> Tensor | float:
    if not (tensor.is_floating_point() or tensor.is_complex()) or not tensor.numel():
        return math.nan
    largest = _magnitude(tensor).amax().double()
    return math.log2(torch.finfo(tensor.dtype).max) - largest.log2()


def _underflow(tensor: Tensor) -> Tensor | float:
    if not (tensor.is_floating_point() or tensor.is_complex()) or not tensor.numel():
        return math.nan
    size = _magnitude(tensor)
    return ((size > 0) & (size < torch.finfo(tensor.dtype).tiny)).double().mean()


def _magnitude(tensor: Tensor) -> Tensor:
    return tensor.abs() if tensor.dtype.itemsize > 1 else tensor.float().abs()
