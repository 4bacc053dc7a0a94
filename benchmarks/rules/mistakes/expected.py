"""Which rules name a kind of mistake rightly, and which tell of what it leads to."""

from __future__ import annotations

from benchmarks.rules.consequences import DIVERGED

__all__ = ["LEFT_OUT", "SHRUNK", "TOO_HIGH", "TOO_LOW", "UNHEALTHY"]

TOO_HIGH = ("early_divergence", "lr_high", "diverging_loss")
"""Of a learning rate."""

TOO_LOW = ("hardly_trains", "lr_low", "rate_gone")
"""Of a learning rate."""

LEFT_OUT = (
    "cut_off",
    "gradient_taken_away",
    "not_in_optimizer",
    "untrained_adapter",
    "unregistered_layers",
)
"""Of layers that do not train."""

SHRUNK = ("vanishing_gradient", "vanishing_with_depth", "lr_low", "hardly_trains", "idle_gradient")
"""What follows where little reaches a layer."""

UNHEALTHY = (*DIVERGED, *SHRUNK, "large_outputs", "no_better_than_constant", "loss_at_chance")
"""What may follow of most mistakes, in words that are true of the run and no other cause."""
