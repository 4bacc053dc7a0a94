"""Rules that name a kind of mistake rightly, and rules about the consequences of mistakes."""

from __future__ import annotations

from benchmarks.rules.consequences import DIVERGED

__all__ = ["LEFT_OUT", "SHRUNK", "TOO_HIGH", "TOO_LOW", "UNHEALTHY"]

TOO_HIGH = ("early_divergence", "lr_high", "diverging_loss")
"""Names of a learning rate that is too high."""

TOO_LOW = ("hardly_trains", "lr_low", "rate_gone")
"""Names of a learning rate that is too low."""

LEFT_OUT = (
    "cut_off",
    "gradient_taken_away",
    "not_in_optimizer",
    "untrained_adapter",
    "unregistered_layers",
)
"""Names of layers that do not train."""

SHRUNK = ("vanishing_gradient", "vanishing_with_depth", "lr_low", "hardly_trains", "idle_gradient")
"""Consequences for layers that little reaches."""

UNHEALTHY = (*DIVERGED, *SHRUNK, "large_outputs", "no_better_than_constant", "loss_at_chance")
"""Consequences of most mistakes: true of the run, and the name of no other cause."""
