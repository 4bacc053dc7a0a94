"""Rules for steps: weights, time, gradients and updates over many of them."""

from __future__ import annotations

from typing import Any

import numpy as np

from notebook_probe.alerts.rolling import Doubles, mean_before, median, rows_before
from notebook_probe.alerts.rule import rule

__all__ = [
    "every_gradient_zero",
    "nothing_to_learn",
    "passes_cleared",
    "updates_skipped",
    "weights_shrink",
]


@rule(
    says=(
        "most weights have shrunk to {left:.1%} of their first size and less: weight decay, or a "
        "penalty in the loss, outweighs the gradient; divide weight_decay by 10"
    ),
    rows=3,
    tells=("left",),
    explained_by=("weight_decay", "lr", "update_ratio"),
)
def weights_shrink(weight_norm: Doubles, *, first: Doubles, most: float = 0.1) -> Any:
    """Weights of two layers of three that are a tenth of their first size and less.

    Networks with normalization layers lose half of it in long trainings, and learn.
    """
    left = weight_norm / np.where(first > 0, first, np.nan)
    n_known = np.isfinite(left).sum(axis=1)
    is_small = 3 * (left < most).sum(axis=1) >= 2 * np.maximum(n_known, 1)
    return is_small & (n_known > 0), {"left": median(left, axis=1)}


@rule(
    says=(
        "every gradient has been exactly zero since step {since}, at a loss of {now:.3g}: the loss "
        "does not depend on the weights any more, as behind argmax, a clamp, or units that are off"
    ),
    rows=10,
    tells=("now",),
    severity="severe",
    explained_by=("zero_fraction", "output_grad_norm"),
)
def every_gradient_zero(grad_norm: Doubles, loss: Doubles) -> Any:
    """No gradient anywhere, though the loss is not zero."""
    now = np.fmax.reduce(loss, axis=1)
    return _all_zero(grad_norm) & (now != 0) & np.isfinite(now), {"now": now}


@rule(
    says=(
        "the loss has been exactly zero since step {since}, the first one, and every gradient too: "
        "there is nothing to learn; look for an empty mask, targets that equal the outputs, or "
        "rewards that are all equal"
    ),
    rows=10,
    explained_by=("output_std",),
)
def nothing_to_learn(grad_norm: Doubles, loss: Doubles, *, first: Doubles) -> Any:
    """A loss that is zero from the first row on; a training that has learned all had another."""
    began_at_zero = np.fmax.reduce(first, axis=1) == 0
    return _all_zero(grad_norm) & (np.fmax.reduce(loss, axis=1) == 0) & began_at_zero


@rule(
    says=(
        "{share:.0%} of the last {recent:.0f} updates were skipped, as the gradient scaler found "
        "infinities: nothing is learned; compute in bfloat16, or look for the layer whose "
        "gradient overflows"
    ),
    tells=("share",),
    severity="severe",
    explained_by=("grad_nonfinite_fraction", "amp_scale"),
    consequence_of=("overflow_near", "nonfinite_output"),
)
def updates_skipped(skipped: Doubles, most: float = 0.7, recent: int = 20, window: int = 40) -> Any:
    """Updates of which a gradient scaler lets few through; the first dozen may set its scale."""
    share = mean_before(skipped, int(recent))
    return (share > most) & np.isfinite(rows_before(share, int(recent))), {"share": share}


@rule(
    says=(
        "the gradients of {discarded_backwards:.0f} backward passes of each step have been cleared "
        "before its update since step {since}: if they are to be accumulated, call "
        "optimizer.zero_grad() once, before the first pass; attacks on the input clear some on "
        "purpose"
    ),
    rows=10,
    severity="remark",
    explained_by=("grad_norm", "update_ratio"),
)
def passes_cleared(discarded_backwards: Doubles, least: float = 2) -> Any:
    """Passes of a step that come to nothing, as where each of several begins with `zero_grad`.

    One in each step is common: of the other network of a GAN, or of a sharpness-aware step.
    """
    return discarded_backwards >= least


def _all_zero(grad_norm: Doubles) -> Any:
    """Return whether all gradients of a row are zero, and there is one."""
    known = np.isfinite(grad_norm)
    return known.any(axis=1) & ~(np.where(known, grad_norm, 0.0) != 0).any(axis=1)
