"""Shares of an output, or of a gradient, that are silent or broken."""

from __future__ import annotations

import math

from notebook_probe.quantities.base import quantity
from notebook_probe.quantities.stat import Stat

__all__ = ["grad_zero_fraction", "nonfinite_fraction", "zero_fraction"]


@quantity(source="definition")
def zero_fraction(output_zeros: Stat) -> float:
    """Share of output elements that are exactly zero: how much of a ReLU is silent now."""
    return output_zeros.n_zero / output_zeros.n if output_zeros.n else math.nan


@quantity(source="definition")
def nonfinite_fraction(output_nonfinite: Stat) -> float:
    """Share of output elements that are NaN or infinite; 0 in a healthy network."""
    return output_nonfinite.n_nonfinite / output_nonfinite.n if output_nonfinite.n else math.nan


@quantity(source="Cockpit")
def grad_zero_fraction(grad_zeros: Stat) -> float:
    """Share of gradient elements that are exactly zero, over all parameters below the module."""
    return grad_zeros.n_zero / grad_zeros.n if grad_zeros.n else math.nan
