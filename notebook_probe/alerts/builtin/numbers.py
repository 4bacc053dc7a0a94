"""Numbers that are none, or soon will be."""

from __future__ import annotations

from typing import Any

import numpy as np

from notebook_probe.alerts.rolling import Doubles
from notebook_probe.alerts.rule import rule

__all__ = ["nonfinite_gradient", "nonfinite_loss", "nonfinite_output", "overflow_near"]

ORIGINS = ("nonfinite_batch", "nonfinite_update", "nonfinite_from_loss")
"""Facts about the origin of numbers that are not finite."""


@rule(
    says=(
        "{nonfinite_fraction:.2%} of the outputs are NaN or infinite; number of modules before "
        "it with finite outputs: {finite_before:.0f}"
    ),
    once="run",
    tells=("finite_before",),
    view="heat",
    severity="severe",
    explained_by=(
        "output_abs_max",
        "input_nonfinite_fraction",
        "weight_nonfinite_fraction",
        "range_headroom_bits",
    ),
    flow="forward",
    consequence_of=(
        *ORIGINS,
        "overflow_near",
        "nonfinite_gradient",
        "attention_logit_large",
        "exploding_gradient",
        "diverging_loss",
        "early_divergence",
        "loss_spike",
        "lr_high",
    ),
)
def nonfinite_output(nonfinite_fraction: Doubles) -> Any:
    """Outputs that are NaN or infinite: the first module, at the first such step.

    First on the way forward: what came in there was finite where a module before it was measured.
    """
    bad = nonfinite_fraction > 0
    finite = np.cumsum(nonfinite_fraction == 0, axis=1)
    return bad, {"finite_before": finite}


@rule(
    says="the gradient's norm is {grad_norm}, and the optimizer applied it",
    once="run",
    view="heat",
    severity="severe",
    explained_by=("grad_nonfinite_fraction", "output_grad_nonfinite_fraction", "grad_abs_max"),
    flow="backward",
    consequence_of=(
        *ORIGINS,
        "nonfinite_output",
        "nonfinite_loss",
        "overflow_near",
        "exploding_gradient",
        "early_divergence",
        "lr_high",
    ),
)
def nonfinite_gradient(grad_norm: Doubles) -> Any:
    """A gradient that is NaN or infinite and was applied.

    A gradient scaler leaves such steps out, so that they are not seen here.
    """
    return ~np.isfinite(grad_norm)


@rule(
    says="the loss is {loss}",
    again=1000,
    severity="severe",
    explained_by=("logit_logsumexp", "grad_norm", "nonfinite_fraction"),
    consequence_of=(
        *ORIGINS,
        "nonfinite_output",
        "nonfinite_gradient",
        "diverging_loss",
        "exploding_gradient",
        "loss_spike",
        "early_divergence",
        "lr_high",
    ),
)
def nonfinite_loss(loss: Doubles) -> Any:
    """A loss that is NaN or infinite, as the loop logs it."""
    return ~np.isfinite(loss)


@rule(
    says=(
        "{range_headroom_bits:.1f} bits are left between the largest output and what its dtype "
        "can hold, fewer than {least:g}"
    ),
    again=1000,
    source="definition",
    severity="severe",
    explained_by=("output_abs_max", "massive_ratio", "output_log_histogram"),
    flow="forward",
    consequence_of=(
        "large_outputs",
        "attention_logit_large",
        "exploding_gradient",
        "diverging_loss",
        "early_divergence",
        "loss_spike",
        "lr_high",
    ),
)
def overflow_near(range_headroom_bits: Doubles, least: float = 2.0, masked: float = 0.01) -> Any:
    """Outputs that are close to the largest number of their dtype.

    Within ``masked`` bits it is the constant of a mask, ``torch.finfo(dtype).min``, with or without
    scores added to it. Outputs that grow are farther away in the rows before, and infinite behind.
    """
    is_mask = (range_headroom_bits >= 0) & (range_headroom_bits < masked)
    return (range_headroom_bits < least) & ~is_mask
