"""What becomes of single layers: units that are dead, directions that are gone, statistics."""

from __future__ import annotations

from typing import Any

from notebook_probe.alerts.rolling import Doubles, mean_before
from notebook_probe.alerts.rule import rule

__all__ = ["batchnorm_mismatch", "dead_units", "rank_collapse"]


@rule(
    says=(
        "{dead_fraction:.0%} of the units were never above zero, since step {since}; a lower "
        "learning rate, or another initialisation, keeps them alive"
    ),
    steps=200,
    source="https://arxiv.org/abs/2302.12902",
    explained_by=("output_histogram", "output_channel_mean", "input_std"),
    flow="forward",
    consequence_of=("lr_high", "exploding_gradient", "diverging_loss", "loss_spike"),
)
def dead_units(dead_fraction: Doubles, most: float = 0.5) -> Any:
    """Units that are below zero for every sample."""
    return dead_fraction > most


@rule(
    says=(
        "the outputs use {effective_rank_share:.1%} of the directions they could, as effective rank"
    ),
    rows=3,
    source="https://arxiv.org/abs/2210.02885",
    explained_by=("output_std", "output_cov_eigs", "participation_ratio"),
    flow="forward",
    consequence_of=("dead_units", "lr_high", "exploding_gradient", "diverging_loss"),
)
def rank_collapse(effective_rank_share: Doubles, least: float = 0.05) -> Any:
    """Outputs that lie in few directions."""
    return effective_rank_share < least


@rule(
    says=(
        "batch means are {usual:.2f} standard deviations from the running mean, on average over "
        "{window:.0f} rows: evaluation sees other numbers than training; larger batches, or a "
        "running mean that follows faster"
    ),
    steps=50,
    tells=("usual",),
    source="https://arxiv.org/abs/2210.05153",
    explained_by=("bn_var_tid", "input_mean", "input_std"),
    flow="forward",
    consequence_of=("lr_high", "exploding_gradient", "diverging_loss"),
)
def batchnorm_mismatch(bn_mean_tid: Doubles, most: float = 0.5, window: int = 10) -> Any:
    """Running statistics that are not those of the batches."""
    usual = mean_before(bn_mean_tid, window)
    return usual > most, {"usual": usual}
