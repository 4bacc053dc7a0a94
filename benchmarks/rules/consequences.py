"""What the causes lead to, under the names of the rules that tell of it."""

__all__ = ["BROKEN", "DIVERGED"]

BROKEN = (
    "nonfinite_gradient",
    "nonfinite_loss",
    "nonfinite_output",
    "overflow_near",
)
"""Of numbers that are none: which is said first depends on what is measured."""

DIVERGED = (
    *BROKEN,
    "adam_spike_ahead",
    "attention_logit_growing",
    "attention_logit_large",
    "dead_units",
    "diverging_loss",
    "early_divergence",
    "exploding_gradient",
    "loss_spike",
    "lr_high",
    "rank_collapse",
    "silent_inputs",
    "vanishing_gradient",
)
"""Of a model whose weights were thrown far away: it may be large, dead or saturated."""
