"""Gradients that explode or vanish, and what clipping makes of them."""

from __future__ import annotations

from typing import Any

import numpy as np

from notebook_probe.alerts.rolling import Doubles, mean_before, over_median
from notebook_probe.alerts.rule import rule

__all__ = [
    "always_clipped",
    "exploding_gradient",
    "vanishing_gradient",
    "vanishing_with_depth",
]


@rule(
    says=(
        "the gradient's norm is {grad_norm:.3g}, {factor:.0f} times its usual size; clip it, "
        "or lower the learning rate"
    ),
    rows=2,
    again=200,
    tells=("factor",),
    severity="severe",
    explained_by=("grad_abs_max", "output_grad_norm", "update_ratio", "weight_norm"),
    flow="backward",
    consequence_of=("attention_logit_large", "loss_spike", "diverging_loss", "lr_high"),
)
def exploding_gradient(grad_norm: Doubles, times: float = 10.0, window: int = 50) -> Any:
    """A gradient many times as large as usual, the median of the rows before."""
    factor = over_median(grad_norm, window, times)
    return factor > times, {"factor": factor}


@rule(
    says=("the gradient's usual element is {grad_rms:.2g}, below {least:g}: nothing arrives here"),
    rows=3,
    source="https://arxiv.org/abs/2110.09456",
    explained_by=("output_grad_rms", "saturated_fraction", "zero_fraction", "grad_zero_fraction"),
    flow="backward",
    consequence_of=("vanishing_with_depth", "dead_units", "attention_logit_large"),
)
def vanishing_gradient(grad_rms: Doubles, least: float = 1e-8) -> Any:
    """A gradient so small that float16 and Adam's epsilon lose it."""
    return grad_rms < least


@rule(
    says="gradients are {factor:.2g} times as large with every layer on the way back to the input",
    rows=3,
    tells=("factor",),
    source="https://arxiv.org/abs/2110.09456",
    explained_by=("output_grad_norm", "grad_norm"),
    consequence_of=("dead_units", "rank_collapse"),
)
def vanishing_with_depth(grad_depth_slope: Doubles, least: float = -0.3) -> Any:
    """Gradients that shrink from layer to layer on their way back."""
    return grad_depth_slope < least, {"factor": 10.0**grad_depth_slope}


@rule(
    says=(
        "{share:.0%} of the last {window:.0f} gradients were clipped, which makes of the step"
        " a fixed length; raise the limit, or lower the learning rate"
    ),
    tells=("share",),
    explained_by=("grad_norm", "grad_raw_norm"),
    consequence_of=("lr_high", "exploding_gradient", "diverging_loss"),
)
def always_clipped(clip_coefficient: Doubles, most: float = 0.9, window: int = 100) -> Any:
    """Clipping in nearly every step."""
    clipped = np.where(np.isnan(clip_coefficient), np.nan, clip_coefficient < 1)
    share = mean_before(clipped, window)
    return share > most, {"share": share}
