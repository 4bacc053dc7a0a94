"""What becomes of single layers: units that are dead, directions that are gone, statistics."""

from __future__ import annotations

from typing import Any

import numpy as np

from notebook_probe.alerts.rolling import Doubles, mean_before, of_most, rows_before
from notebook_probe.alerts.rule import rule

__all__ = ["batchnorm_mismatch", "dead_units", "large_outputs", "rank_collapse", "silent_inputs"]


@rule(
    says=(
        "the outputs have a standard deviation of {output_std:.3g} in the first step, where about "
        "1 is usual: the inputs are not scaled, or the weights begin too large"
    ),
    source="https://arxiv.org/abs/1502.01852",
    explained_by=("input_std", "input_mean", "weight_norm"),
    flow="forward",
)
def large_outputs(
    output_std: Doubles, most: float = 10.0, huge: float = 1e4, window: int = 1
) -> Any:
    """Outputs far from 1 before anything was learned.

    Two layers of three have more than ``most``, or a single one is ``huge``, as where each makes
    of its input ten times as much. In healthy trainings two of three began with 0.75 at most, and
    none with more than 3; a single large one may be what the network is asked for. Only the first
    row counts: later ones are what a learning rate has made of them.
    """
    is_first = (np.arange(len(output_std)) < window)[:, None]
    in_most = (of_most(output_std) > most)[:, None]
    return is_first & (((output_std > most) & in_most) | (output_std > huge))


@rule(
    says=(
        "{dead_fraction:.0%} of the units were never above zero, since step {since}; a lower "
        "learning rate, or another initialisation, keeps them alive"
    ),
    steps=40,
    source="https://arxiv.org/abs/2302.12902",
    explained_by=("output_histogram", "output_channel_mean", "input_std"),
    flow="forward",
    consequence_of=(
        "large_outputs",
        "early_divergence",
        "lr_high",
        "exploding_gradient",
        "diverging_loss",
        "loss_spike",
    ),
)
def dead_units(dead_fraction: Doubles, most: float = 0.6) -> Any:
    """Units that are below zero for every sample.

    Where a network learns, more than half of a layer's may die and nothing is wrong: 17 of 32 did
    in a network of one input, which needs no more.
    """
    return dead_fraction > most


@rule(
    says=(
        "{silent_input_fraction:.0%} of what comes in here is zero in every row, since step "
        "{since}: what is before it is dead, or fed with nothing"
    ),
    rows=3,
    explained_by=("zero_fraction", "input_channel_abs_max", "input_std"),
    flow="forward",
    consequence_of=(
        "dead_units",
        "early_divergence",
        "lr_high",
        "exploding_gradient",
        "diverging_loss",
        "loss_spike",
    ),
)
def silent_inputs(
    silent_input_fraction: Doubles, most: float = 0.6, later: float = 0.9, window: int = 3
) -> Any:
    """Channels of a layer's input that are zero for every sample.

    More than ``most`` of them in the first rows are a mistake in the data or the initialisation.
    Units that fall silent while a network learns, as those of a recurrent ReLU do, come to 0.81
    where nothing is wrong: later on it takes nearly all of them.
    """
    is_first = (np.arange(len(silent_input_fraction)) < window)[:, None]
    return silent_input_fraction > np.where(is_first, most, later)


@rule(
    says=(
        "the outputs have an effective rank of {effective_rank:.2f} where {possible:.0f} could be: "
        "they are nearly the same for every input"
    ),
    rows=3,
    tells=("possible",),
    source="https://arxiv.org/abs/2210.02885",
    explained_by=("output_std", "output_cov_eigs", "participation_ratio"),
    flow="forward",
    consequence_of=(
        "dead_units",
        "silent_inputs",
        "early_divergence",
        "lr_high",
        "exploding_gradient",
        "diverging_loss",
    ),
)
def rank_collapse(
    effective_rank: Doubles,
    effective_rank_share: Doubles,
    least: float = 0.02,
    width: float = 5.0,
    window: int = 3,
) -> Any:
    """Outputs that lie in few directions, and come to no more.

    A layer can have as many as the richest layer before it had, so that none is blamed for what is
    lost in the data, and needs no more than the narrowest behind it can hold, itself alone in the
    first ``window`` rows, when nothing was learned that could do with less; of fewer than ``width``
    one may be all there is to say. Adapters that begin at zero, and the last layers of deep
    networks, begin with one and win more within some rows.
    """
    given = np.fmax.accumulate(effective_rank, axis=1)
    held = effective_rank / effective_rank_share
    needed = np.fmin.accumulate(held[:, ::-1], axis=1)[:, ::-1]
    row = np.arange(len(given))[:, None]
    possible = np.minimum(given, np.where(row < window, held, needed))
    beyond_one, n_back = effective_rank - 1, int(window) - 1
    before = rows_before(beyond_one, n_back)
    before = np.where((row >= n_back) & np.isnan(before), 0.0, before)
    wins = beyond_one > 1.5 * before + 1e-4
    is_one = (beyond_one < least * (possible - 1)) & ~wins
    return is_one & (possible >= width), {"possible": possible}


@rule(
    says=(
        "batch means are {mean:.2f} running deviations from the running mean, and deviations "
        "{spread:.2f} from the running one, on average over {window:.0f} rows: evaluation sees "
        "other numbers than training; larger batches, or a momentum that follows faster"
    ),
    steps=20,
    tells=("mean", "spread"),
    source="https://arxiv.org/abs/2210.05153",
    explained_by=("input_mean", "input_std"),
    flow="forward",
    consequence_of=("early_divergence", "lr_high", "exploding_gradient", "diverging_loss"),
)
def batchnorm_mismatch(
    bn_mean_tid: Doubles,
    bn_var_tid: Doubles,
    most: float = 0.5,
    nearer: float = 1.05,
    window: int = 5,
) -> Any:
    """Running statistics that are not those of the batches.

    Means are compared in units of the running deviation, which begins as 1 whatever the data's is:
    until it has come to that, the deviation itself tells. It begins far from small activations in
    every training: what counts is one that does not come ``nearer`` over the rows looked at, where
    a momentum of 0.1 comes to half as far within a few steps, and one of 0.01 by a tenth.
    """
    mean, spread = (mean_before(one, window) for one in (bn_mean_tid, bn_var_tid))
    before = rows_before(bn_var_tid, int(window) - 1)
    # As shares of the running deviation, where that is the larger one.
    share, share_before = 1 - bn_var_tid, 1 - before
    follows = (nearer * bn_var_tid < before) | ((share > nearer * share_before) & (before < 1))
    is_off = (mean > most) | ((spread > most) & ~follows)
    return is_off, {"mean": mean, "spread": spread}
