"""Rules for single layers: dead units, lost inputs and directions, batch statistics."""

from __future__ import annotations

from typing import Any

import numpy as np

from notebook_probe.alerts.rolling import (
    Doubles,
    highest_before,
    mean_before,
    of_most,
    rows_before,
    value_at,
)
from notebook_probe.alerts.rule import rule
from notebook_probe.record.format.source import Steps

__all__ = [
    "batchnorm_mismatch",
    "blank_batch",
    "dead_units",
    "large_outputs",
    "rank_collapse",
    "silent_inputs",
]


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
    output_std: Doubles,
    range_headroom_bits: Doubles,
    most: float = 10.0,
    huge: float = 1e4,
    masked: float = 1e7,
    to_edge: float = 0.01,
    window: int = 1,
) -> Any:
    """Outputs far from 1 before anything was learned.

    Two layers of three have more than ``most``, or a single one is ``huge``, as where each makes
    of its input ten times as much. In healthy trainings two of three began with 0.75 at most, and
    none with more than 3; a single large one may be what the network is asked for. From ``masked``
    on it is the constant of a mask, such as -1e9, and so it is ``to_edge`` bits from the largest
    number of its dtype, as -65504 in float16. Only the first row counts: later ones are what a
    learning rate has made of them.
    """
    is_first = (np.arange(len(output_std)) < window)[:, None]
    is_mask = (range_headroom_bits >= 0) & (range_headroom_bits < to_edge)
    spread = np.where(is_mask, np.nan, output_std)
    in_most = (of_most(spread) > most)[:, None]
    is_huge = (spread > huge) & (spread < masked)
    return is_first & (((spread > most) & in_most) | is_huge)


@rule(
    says=(
        "{dead_fraction:.0%} of the units were never above zero, since step {since}; a lower "
        "learning rate, or another initialization, keeps them alive"
    ),
    steps=40,
    source="https://arxiv.org/abs/2302.12902",
    explained_by=("output_histogram", "output_channel_mean", "input_std"),
    flow="forward",
    consequence_of=(
        "large_outputs",
        "equal_units",
        "early_divergence",
        "lr_high",
        "exploding_gradient",
        "diverging_loss",
        "loss_spike",
    ),
)
def dead_units(dead_fraction: Doubles, most: float = 0.8) -> Any:
    """Units that are below zero for every sample.

    In a network that learns, more than half of a layer's units may die and nothing is wrong: 36 of
    48 did in a network of two inputs, which needs no more.
    """
    return dead_fraction > most


@rule(
    says=(
        "{silent_input_fraction:.0%} of the inputs are zero in every row, since step {since}: "
        "the layers before are dead, or have no input themselves"
    ),
    rows=3,
    explained_by=("zero_fraction", "input_channel_abs_max", "input_std"),
    flow="forward",
    consequence_of=(
        "dead_units",
        "equal_units",
        "early_divergence",
        "lr_high",
        "exploding_gradient",
        "diverging_loss",
        "loss_spike",
    ),
)
def silent_inputs(
    silent_input_fraction: Doubles,
    grad_rms: Doubles,
    *,
    first: Doubles,
    most: float = 0.6,
    later: float = 0.98,
    window: int = 3,
) -> Any:
    """Channels of a layer's input that are zero for every sample.

    More than ``most`` of them in the first rows are a mistake in the data or the initialization.
    Units that become silent while a network learns, as in a recurrent ReLU, reached 0.97 where
    nothing was wrong: later on all of them are needed for an alert.

    A layer may be given only zeros on purpose, from the first row on, such as a prior that
    is learned. No other layer makes these: one that did, and is dead, has a gradient of exactly
    zero. Zeros in the first layer are data that were lost.
    """
    is_first = (np.arange(len(silent_input_fraction)) < window)[:, None]
    is_silent = silent_input_fraction > np.where(is_first, most, later)
    is_dead = grad_rms == 0
    n_others_dead = np.sum(is_dead, axis=1, keepdims=True) - is_dead
    entry = np.argmax(np.isfinite(silent_input_fraction), axis=1)[:, None]
    is_made = (silent_input_fraction == 1) & ~(first < 1) & (n_others_dead == 0)
    return is_silent & ~(is_made & (np.arange(is_silent.shape[1]) != entry))


@rule(
    says=(
        "all numbers of this batch are 0, and those of earlier batches were not: look at what "
        "reads, transforms and moves the batches, such as a copy with non_blocking=True from "
        "memory that is written again, or a file that could not be read"
    ),
    severity="remark",
    explained_by=("input_std", "input_mean", "output_std"),
)
def blank_batch(silent_input_fraction: Doubles, window: int = 1) -> Any:
    """A batch of zeros after one that was not, which the first measured layer is given.

    One of several kinds of inputs may be left out on purpose now and then. Data of which some
    channels are zero have no value.
    """
    is_whole, is_known = silent_input_fraction == 1, np.isfinite(silent_input_fraction)
    before = np.vstack([np.ones_like(is_whole[:1]), is_whole[:-1]])
    entry = np.argmax(is_known, axis=1)
    entry_before = np.concatenate([entry[:1], entry[:-1]])
    is_same_entry = (entry_before >= entry)[:, None]  # else the first layer was not called now
    here = np.arange(is_whole.shape[1]) == entry[:, None]
    return is_whole & ~before & here & is_same_entry


@rule(
    says=(
        "the outputs have an effective rank of {effective_rank:.2f} where {possible:.0f} could be: "
        "they are nearly the same for every input"
    ),
    rows=3,
    steps=60,
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
    loss: Doubles,
    *,
    at: Steps,
    least: float = 0.02,
    width: float = 5.0,
    early: float = 3,
    fall: float = 0.1,
    back: float = 60,
    window: int = 200,
) -> Any:
    """Outputs in few directions, whose number does not grow, and a loss that does not fall.

    A layer can have as many as the richest layer before it had, so that none is blamed for what is
    lost in the data, and needs no more than the narrowest layer behind it can have, itself alone in
    the first ``early`` rows, when nothing was learned that could do with less; with fewer than
    ``width``, one may be enough. Adapters that are initialized to zero, and the last layers of deep
    networks, start with one and gain more within some rows; an encoder for a sequence needs 50
    steps and more until its outputs differ.

    While the loss falls within ``back`` steps by ``fall`` of the largest before, nothing is judged:
    language models first learn how frequent each token is, for which all outputs move in the same
    direction. A loss that outputs bring to zero by being all the same has soon fallen.
    """
    given = np.fmax.accumulate(effective_rank, axis=1)
    held = effective_rank / effective_rank_share
    needed = np.fmin.accumulate(held[:, ::-1], axis=1)[:, ::-1]
    row = np.arange(len(given))[:, None]
    possible = np.minimum(given, np.where(row < early, held, needed))
    beyond_one, n_back = effective_rank - 1, int(early) - 1
    before = rows_before(beyond_one, n_back)
    before = np.where((row >= n_back) & np.isnan(before), 0.0, before)
    wins = beyond_one > 1.5 * before + 1e-4
    is_one = (beyond_one < least * (possible - 1)) & ~wins
    loss_then = value_at(loss, at, back)
    size = np.fmax(np.abs(loss_then), highest_before(np.abs(loss), int(window)))
    falls = loss_then - loss > fall * size
    return is_one & (possible >= width) & ~falls, {"possible": possible}


@rule(
    says=(
        "batch means are {mean:.2f} running deviations from the running mean, and deviations "
        "{spread:.2f} from the running one, on average over {recent:.0f} rows: evaluation sees "
        "other numbers than training; larger batches, or a momentum that follows faster"
    ),
    steps=20,
    tells=("mean", "spread"),
    source="https://arxiv.org/abs/2210.05153",
    explained_by=("input_mean", "input_std"),
    flow="forward",
    consequence_of=(
        "updates_undone",
        "batchnorm_momentum",
        "early_divergence",
        "lr_high",
        "exploding_gradient",
        "diverging_loss",
    ),
)
def batchnorm_mismatch(
    bn_mean_tid: Doubles,
    bn_var_tid: Doubles,
    calls: Doubles,
    *,
    at: Steps,
    most: float = 0.5,
    nearer: float = 1.05,
    back: float = 40,
    of_then: float = 0.85,
    recent: int = 5,
    window: int = 45,
) -> Any:
    """Running statistics that differ from those of the batches.

    Means are compared in units of the running deviation, which starts as 1 for any data: until it
    has adapted, the deviation itself is compared. It starts far from small activations in every
    training: only one that does not come ``nearer`` over the last rows counts, as a momentum of 0.1
    halves the distance within a few steps, and one of 0.01 reduces it by a tenth. Means start far
    as well: only those count that were hardly farther ``back`` steps before, as a momentum of 0.01
    brings them to three quarters meanwhile.

    The batches of several calls in a step are measured as one. They may differ on purpose, as real
    and made images for a discriminator, and then they spread far more as a whole than each: such a
    layer is judged by its mean alone, in units of the deviation of the whole.
    """
    mean, spread = (mean_before(one, int(recent)) for one in (bn_mean_tid, bn_var_tid))
    before = rows_before(bn_var_tid, int(recent) - 1)
    mean_then = value_at(mean, at, back)
    # As shares of the running deviation, where that is the larger one.
    share, share_before = 1 - bn_var_tid, 1 - before
    follows = (nearer * bn_var_tid < before) | ((share > nearer * share_before) & (before < 1))
    is_mixed = calls > 1
    size = np.where(is_mixed, 1 + spread, 1.0)
    is_off = (mean > most * size) & (mean > of_then * mean_then)
    is_off |= (spread > most) & ~follows & ~is_mixed
    return is_off, {"mean": mean, "spread": spread}
