"""Scales of single elements, which tensors of different sizes share: root mean squares, maxima."""

from __future__ import annotations

from notebook_probe.quantities.base import quantity
from notebook_probe.quantities.stat import Stat

__all__ = [
    "grad_abs_max",
    "grad_rms",
    "input_abs_max",
    "input_rms",
    "output_abs_max",
    "output_grad_abs_max",
    "output_grad_rms",
    "output_rms",
    "weight_abs_max",
    "weight_rms",
]


@quantity(source="definition")
def weight_rms(weight_sumsq: Stat) -> float:
    """Usual size of a weight, ``||W||_2 / sqrt(n)``: comparable between layers of any width."""
    return weight_sumsq.rms


@quantity(source="definition")
def grad_rms(grad_sumsq: Stat) -> float:
    """Usual size of a gradient, ``||g||_2 / sqrt(n)`` over all parameters below the module."""
    return grad_sumsq.rms


@quantity(source="definition")
def input_rms(input_sumsq: Stat) -> float:
    """Usual size of what comes in, ``||x||_2 / sqrt(n)``."""
    return input_sumsq.rms


@quantity(source="definition")
def output_rms(output_sumsq: Stat) -> float:
    """Usual size of an activation, ``||y||_2 / sqrt(n)``."""
    return output_sumsq.rms


@quantity(source="definition")
def output_grad_rms(grad_output_sumsq: Stat) -> float:
    """Usual size of the gradient that reaches the output, ``||dL/dy||_2 / sqrt(n)``."""
    return grad_output_sumsq.rms


@quantity(source="definition")
def weight_abs_max(weight_largest: Stat) -> float:
    """Largest weight, ``max |W|``."""
    return weight_largest.largest


@quantity(source="definition")
def grad_abs_max(grad_largest: Stat) -> float:
    """Largest gradient, ``max |g|`` over all parameters below the module, as applied."""
    return grad_largest.largest


@quantity(source="definition")
def input_abs_max(input_largest: Stat) -> float:
    """Largest element that comes in, ``max |x|``."""
    return input_largest.largest


@quantity(source="definition")
def output_abs_max(output_largest: Stat) -> float:
    """Largest activation, ``max |y|``."""
    return output_largest.largest


@quantity(source="definition")
def output_grad_abs_max(grad_output_largest: Stat) -> float:
    """Largest gradient that reaches the output, ``max |dL/dy|``."""
    return grad_output_largest.largest
