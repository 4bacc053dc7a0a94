"""The loop as a whole: its steps, its loss, its loader."""

from __future__ import annotations

from typing import Any

import numpy as np

from notebook_probe.alerts.rolling import Doubles, highest_before, mean_before, median, over_median
from notebook_probe.alerts.rule import rule

__all__ = [
    "adam_spike_ahead",
    "diverging_loss",
    "loader_bound",
    "loss_spike",
    "lr_high",
    "lr_low",
]


@rule(
    says=(
        "a step changes the usual layer by {ratio:.2%} of its size, and successive gradients "
        "oppose (cosine {cosine:.2f}), on average over {window:.0f} steps; a learning rate "
        "{decade:g} times as large would bring it to about 0.1%"
    ),
    again=1000,
    tells=("ratio", "cosine", "decade"),
    view="heat",
    explained_by=("update_cosine", "log_step_size", "distance_from_init"),
)
def lr_high(
    update_ratio: Doubles, grad_cosine: Doubles, most: float = 1e-2, window: int = 20
) -> Any:
    """Steps that are large for every layer, and whose gradients turn round."""
    ratio, cosine = (
        mean_before(median(table, axis=1), window) for table in (update_ratio, grad_cosine)
    )
    decade = 10.0 ** np.round(np.log10(1e-3 / ratio))
    return (ratio > most) & (cosine < 0), {"ratio": ratio, "cosine": cosine, "decade": decade}


@rule(
    says=(
        "a step changes it by {update_ratio:.2g} of its size, though its gradient's norm is "
        "{grad_norm:.2g}: it does not learn"
    ),
    rows=10,
    view="heat",
    explained_by=("update_norm", "weight_norm", "grad_below_eps_fraction"),
    consequence_of=("vanishing_gradient", "vanishing_with_depth", "dead_units"),
)
def lr_low(update_ratio: Doubles, grad_norm: Doubles, least: float = 1e-6) -> Any:
    """A layer with a gradient that hardly changes."""
    return (update_ratio < least) & (grad_norm > 0)


@rule(
    says=(
        "the loss is {loss:.3g}, {factor:.3g} times its usual value, and grows: a lower learning "
        "rate, a warmup or clipped gradients keep it together"
    ),
    rows=2,
    again=1000,
    tells=("factor",),
    severity="severe",
    explained_by=("grad_norm", "update_ratio", "weight_norm"),
    consequence_of=(
        "exploding_gradient",
        "adam_spike_ahead",
        "loss_spike",
        "attention_logit_large",
        "lr_high",
    ),
)
def diverging_loss(loss: Doubles, times: float = 10.0, window: int = 50) -> Any:
    """A loss that rises to many times what it was, as it may in the very first steps.

    Each row must exceed all before it, so that noise about a small loss is none.
    """
    factor = over_median(loss, window, times, least=2)
    return (factor > times) & (loss > highest_before(loss, window)), {"factor": factor}


@rule(
    says="the loss is {loss_spike_score:.1f} deviations above its usual value",
    again=100,
    severity="severe",
    explained_by=("grad_norm", "sample_loss_quantiles", "update_ratio"),
    consequence_of=("adam_spike_ahead", "exploding_gradient", "attention_logit_large", "lr_high"),
)
def loss_spike(loss_spike_score: Doubles, most: float = 6.0) -> Any:
    """A loss far above its usual value."""
    return loss_spike_score > most


@rule(
    says=(
        "the gradient is {adam_update_rms:.1f} times what Adam's second moment expects, and was "
        "not before; a loss spike may follow, which a lower beta2 prevents"
    ),
    again=1000,
    source="https://arxiv.org/abs/2304.13013",
    explained_by=("moment_ratio", "grad_norm", "update_ratio"),
    flow="backward",
    consequence_of=("exploding_gradient", "attention_logit_large", "lr_high"),
)
def adam_spike_ahead(
    adam_update_rms: Doubles, most: float = 2.3, times: float = 3.0, window: int = 50
) -> Any:
    """A gradient that Adam's second moment has not seen the like of.

    Gradients that grow steadily, as those of a network that begins to learn, exceed it as well:
    what counts is the sudden one.
    """
    return (adam_update_rms > most) & (over_median(adam_update_rms, window, times) > times)


@rule(
    says=("{share:.0%} of the step is spent waiting for data; more loader workers, or cached data"),
    tells=("share",),
    explained_by=("step_time", "samples_per_second"),
)
def loader_bound(data_wait_share: Doubles, most: float = 0.3, window: int = 50) -> Any:
    """A loop that waits for its data."""
    share = mean_before(data_wait_share, window)
    return share > most, {"share": share}
