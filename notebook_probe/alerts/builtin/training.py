"""The loop as a whole: its steps, its loss, its loader."""

from __future__ import annotations

from typing import Any

import numpy as np

from notebook_probe.alerts.rolling import (
    Doubles,
    first_known,
    goes_on_elsewhere,
    highest_before,
    last_known,
    mean_before,
    median,
    moves_evenly,
    of_most,
    over_median,
    rows_before,
    steps_since,
    within_most,
)
from notebook_probe.alerts.rule import rule
from notebook_probe.record.format.source import Steps

__all__ = [
    "adam_spike_ahead",
    "diverging_loss",
    "early_divergence",
    "hardly_trains",
    "loader_bound",
    "loss_spike",
    "lr_high",
    "lr_low",
]


@rule(
    says=(
        "a step changes most layers by {ratio:.0%} of their size and more, and successive "
        "gradients do not agree (cosine {cosine:.2f}), on average over {window:.0f} steps; a "
        "learning rate {decade:g} times as large would bring it to about 0.1%, unless inputs are "
        "not scaled, or losses are summed: mend that first"
    ),
    again=1000,
    tells=("ratio", "cosine", "decade"),
    view="heat",
    explained_by=("update_cosine", "log_step_size", "distance_from_init"),
    consequence_of=("large_outputs",),
)
def lr_high(
    update_ratio: Doubles,
    grad_cosine: Doubles,
    most: float = 0.1,
    agree: float = 0.3,
    thrown: float = 1.0,
    window: int = 20,
) -> Any:
    """Steps that are large for most layers, and whose gradients do not lead on.

    Healthy trainings have steps of 1 to 7 % over so many steps, with cosines from -0.6 to 1; at
    more than a tenth those that diverged had none above 0.26, and small networks that learn from
    all of their data in each step had 0.9 and more. Gradients of zeros agree with nothing; without
    a cosine nothing is reported. Steps that get smaller by themselves are no cause, such as the
    first ones of RMSprop, of 37 %: the last quarter of the window must be as large, unless a step
    was larger than ``thrown`` times the weights, after which steps are small compared with them.
    """
    steps = of_most(update_ratio)[:, None]
    ratio, latest = mean_before(steps, window), mean_before(steps, window // 4)
    largest = np.fmax(highest_before(steps, window), steps)
    ratio = np.where(largest > thrown, ratio, np.minimum(ratio, latest))
    usual = median(grad_cosine, axis=1)[:, None]
    is_known = np.isfinite(highest_before(usual, window)) | np.isfinite(usual)
    cosine = np.where(is_known, np.nan_to_num(mean_before(usual, window)), np.nan)
    tells = {"ratio": ratio[:, 0], "cosine": cosine[:, 0], "decade": _decade(ratio[:, 0])}
    return ((ratio > most) & (cosine < agree))[:, 0], tells


@rule(
    says=(
        "a step changes most layers by {ratio:.0%} of their size and more, and the loss of "
        "{now:.3g} is above the {start:.3g} that it began with; a learning rate {decade:g} times "
        "as large would bring the change to about 0.1%, unless inputs are not scaled, or losses "
        "are summed: mend that first"
    ),
    tells=("ratio", "now", "start", "decade"),
    view="heat",
    severity="severe",
    explained_by=("update_norm", "log_step_size", "weight_norm"),
    consequence_of=("large_outputs", "lr_high", "exploding_gradient", "diverging_loss"),
)
def early_divergence(
    update_ratio: Doubles, loss: Doubles, most: float = 0.1, times: float = 3, window: int = 100
) -> Any:
    """Steps that are large for most layers, and a loss above its first, in 3 of the last 10 rows.

    Applies to the first ``window`` rows only. Two layers of three must change so much: weights that
    are initialized to zero, such as the second matrix of LoRA, gains and small heads, do for some
    steps where nothing is wrong. Adam with a rate of 0.01 starts above 10 % in small layers, while
    its loss falls. Among healthy trainings none had more than 2 such rows. Rows of an optimizer of
    less than a third of the layers, such as of the weights of an architecture, do not count.
    """
    ratio, now = of_most(update_ratio), np.fmax.reduce(loss, axis=1)
    start = np.full(len(now), first_known(now))
    is_known = ~np.isnan(update_ratio)
    is_of_many = 3 * is_known.sum(1) >= is_known.any(0).sum()
    is_bad = (ratio > most) & (now > start) & is_of_many
    so_far = np.cumsum(np.pad(is_bad, (10, 0)))
    often = so_far[10:] - so_far[:-10] >= times
    is_early = np.arange(len(now)) < window
    tells = {"ratio": ratio, "now": now, "start": start, "decade": _decade(ratio)}
    return is_bad & often & is_early, tells


@rule(
    says=(
        "a step changes it by {update_ratio:.2g} of its size, though its gradient's norm is "
        "{grad_norm:.2g}: it does not learn"
    ),
    rows=10,
    view="heat",
    explained_by=("lr", "update_norm", "grad_below_eps_fraction"),
    consequence_of=("vanishing_gradient", "vanishing_with_depth", "dead_units", "hardly_trains"),
)
def lr_low(
    update_ratio: Doubles,
    grad_norm: Doubles,
    weight_norm: Doubles,
    *,
    at: Steps,
    least: float = 1e-6,
    share: float = 1e-3,
    behind: float = 0.01,
    still: float = 40,
    window: int = 200,
) -> Any:
    """Layers that hardly change though their gradients are no trifle.

    One that has not from the first row on, nor gets into motion as in a warmup, in the first
    ``window`` rows, while no other layer has either, or the usual one changes by more than a
    hundred times as much (``behind``) for each unit of its gradient: gains of 1 in a warmup have
    the rate of all others, and wait for it. Later, as schedules end near 0, all of them, when no
    measured step has changed any for ``still`` steps. The gradient is at least ``share`` of the
    weight: a small one vanishes, or has nothing left to learn. One weight that does not move at all
    has none, the gradient being that of a bias.
    """
    matters = grad_norm > share * weight_norm
    row = np.arange(len(update_ratio))
    largest = np.fmax.accumulate(update_ratio, axis=0)
    starts = update_ratio > 1.5 * largest[row // 2]
    none_moves = np.fmax.reduce(largest, axis=1, keepdims=True) < least
    rate = last_known(update_ratio) * weight_norm / grad_norm
    is_behind = rate < behind * median(rate, axis=1)[:, None]
    never = (update_ratio > 0) & (largest < least) & ~starts & (row < window)[:, None]
    never &= none_moves | is_behind
    moved = np.fmax.reduce(update_ratio, axis=1, keepdims=True)
    is_still = (steps_since(moved[:, 0] > 0, at) >= still)[:, None]
    in_most = 3 * matters.sum(axis=1) >= 2 * np.isfinite(grad_norm).sum(axis=1)
    return matters & (never | (is_still & in_most[:, None]))


@rule(
    says=(
        "a step changes most layers by {ratio:.1g} of their size at most, and the loss is still "
        "{now:.4g}, where it began with {start:.4g}; a learning rate {decade:g} times as large "
        "would bring the change to about 0.1%"
    ),
    rows=5,
    tells=("ratio", "now", "start", "decade"),
    view="heat",
    explained_by=("lr", "update_norm", "grad_below_eps_fraction"),
    consequence_of=("always_clipped", "vanishing_gradient", "dead_units"),
)
def hardly_trains(
    update_ratio: Doubles,
    loss: Doubles,
    grad_norm: Doubles,
    weight_norm: Doubles,
    most: float = 1e-4,
    share: float = 1e-3,
    fall: float = 0.02,
    grows: float = 1.2,
    recent: int = 20,
    window: int = 200,
) -> Any:
    """Steps that are small for most layers from the first on, and a loss that has not fallen.

    Of two layers of three none has changed by more than a tenth of the usual 0.1 % in any step,
    though the gradient of all is more than ``share`` of their weights, nor have steps grown by
    ``grows`` since half as many rows, as in a warmup or soon after it; healthy trainings came to
    0.16 % and more in their first rows. The last ``recent`` losses are on average less than
    ``fall`` below the first ones: a network that is trained on by small steps has a falling loss,
    or next to no gradient.
    """
    row = np.arange(len(update_ratio))
    each = within_most(last_known(update_ratio))
    ratio, usual = np.fmax.accumulate(each), mean_before(each[:, None], int(recent))[:, 0]
    is_small = (ratio > 0) & (ratio < most) & ~(usual > grows * usual[row // 2])
    of_trained = np.where(np.isfinite(grad_norm), weight_norm, 0.0)
    matters = _norm(grad_norm) > share * _norm(of_trained)
    now = mean_before(np.fmax.reduce(loss, axis=1)[:, None], int(recent))[:, 0]
    start = np.full(len(now), first_known(now))
    is_open = start - now < fall * np.abs(start)
    is_early = (row >= 2 * int(recent) - 1) & (row < window)
    tells = {"ratio": ratio, "now": now, "start": start, "decade": _decade(ratio)}
    return is_small & matters & is_open & is_early, tells


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
        "early_divergence",
        "lr_high",
    ),
)
def diverging_loss(
    loss: Doubles, times: float = 10.0, apart: float = 5.0, recent: int = 50, window: int = 500
) -> Any:
    """A loss that rises to many times its usual value, as it may in the very first steps.

    Each row must exceed the ``window`` before it, so that noise about a small loss does not count,
    nor the waves of a converged one; and be ``apart`` deviations above it, of the logarithm: a loss
    that is summed over episodes varies tenfold, and rises as they grow longer.
    """
    factor = over_median(loss, int(recent), times, least=2, apart=apart)
    return (factor > times) & (loss > highest_before(loss, window)), {"factor": factor}


@rule(
    says=(
        "the loss rose to {peak:.3g}, {factor:.1f} times as high above its usual value as any of "
        "the {n:.0f} losses before it: an update harmed the weights, or the data changed, as where "
        "another task begins"
    ),
    again=100,
    tells=("peak", "factor", "n"),
    explained_by=("grad_norm", "sample_loss_quantiles", "update_ratio"),
    consequence_of=(
        "adam_spike_ahead",
        "exploding_gradient",
        "attention_logit_large",
        "early_divergence",
        "lr_high",
    ),
)
def loss_spike(
    loss: Doubles,
    *,
    first: Doubles,
    times: float = 2.5,
    rise: float = 0.2,
    lost: float = 0.1,
    risen: float = 0.5,
    alone: float = 10.0,
    recent: float = 100,
    window: int = 101,
) -> Any:
    """A loss far above its usual value and the highest before it, which stays or is a severe one.

    The usual value is the median. The spread of small batches has a long tail, which deviations of
    all of them do not show: healthy trainings reached 15 of these, and 2.8 times the highest. A
    rise by a fifth is required as well, so that a loss that has hardly moved has no spikes. The
    fewer rows there are, the less the highest says of the next one: batches of four gave 2.9 times
    that of 21, twice in a row. So of a quarter of the rows the spike must be twice as far.

    One hard batch says nothing about the network. The next row must be above the highest as well,
    as where an update harmed the weights; or the batch is as bad as the first rows and ``alone``
    times as far as the highest, as where the data are broken: a network that has learned does not
    do worse than one that has not.

    The spike takes back ``lost`` of what was learned, the fall of the usual loss below its first
    rows: of a loss that has come to 1e-4 no spike to 1e-3 matters. Losses of agents are no measure
    of what was learned: they change their sign, or rise with the rewards, to ``risen`` above their
    first rows and more. Where many updates are made from one batch, as by an agent from a rollout,
    the loss moves evenly and jumps with the next batch: it falls on from there.
    """
    back = int(recent)
    highest = highest_before(loss, back)
    factor, certain, peak, n = np.full((4, *loss.shape), np.nan)
    is_even = np.zeros(loss.shape, np.bool_)
    for row, column in np.argwhere(loss - highest > rise * np.abs(highest)):
        before = loss[max(0, row - back) : row, column]
        known = before[np.isfinite(before)]
        if len(known) < 20 or known.min() < 0 < known.max():
            continue
        usual, start = median(known, axis=0), first[row, column]
        far = loss[row, column] - usual
        if far > lost * (start - usual) and usual - start <= risen * abs(start):
            factor[row, column] = far / (highest[row, column] - usual)
            certain[row, column] = factor[row, column] * np.sqrt(min(1.0, len(known) / back))
            peak[row, column], n[row, column] = loss[row, column], len(known)
            is_even[row, column] = moves_evenly(known)
    is_severe = (certain > alone) & (loss >= first) & ~is_even
    peak_before, factor_before = rows_before(peak, 1), rows_before(factor, 1)
    stays = (rows_before(certain, 1) > times) & (loss > rows_before(highest, 1))
    stays &= ~goes_on_elsewhere(loss, back)
    tells = {"peak": np.where(stays, peak_before, peak)}
    tells["factor"] = np.where(stays, factor_before, factor)
    tells["n"] = np.where(stays, rows_before(n, 1), n)
    return is_severe | stays, tells


@rule(
    says=(
        "the usual gradient is {rms:.1f} times what Adam's second moment expects, and was not "
        "before; a loss spike may follow, which a lower beta2 prevents"
    ),
    again=1000,
    tells=("rms",),
    source="https://arxiv.org/abs/2304.13013",
    explained_by=("moment_ratio", "grad_norm", "update_ratio"),
    flow="backward",
    consequence_of=("exploding_gradient", "attention_logit_large", "early_divergence", "lr_high"),
)
def adam_spike_ahead(
    adam_update_rms: Doubles,
    loss: Doubles,
    most: float = 5.0,
    times: float = 3.0,
    apart: float = 5.0,
    recent: int = 10,
    window: int = 50,
) -> Any:
    """Gradients that Adam's second moment has not seen the like of, and no longer a falling loss.

    The paper has 2.3, for one weight. Single weights reach 6 where nothing follows, and all of them
    4 where the loss falls faster than before, or has nearly converged, and 4.7 at a rare batch: the
    sudden change of the usual weight counts; before spikes that were provoked it was 5 and more. A
    change is sudden if it is ``apart`` deviations of the logarithm away, too.
    """
    rms = median(adam_update_rms, axis=1)
    now = np.fmax.reduce(loss, axis=1)[:, None]
    is_sudden = over_median(rms[:, None], window, times, apart=apart) > times
    rises = over_median(now, int(recent), 1.0) > 1.0
    return (rms > most) & (is_sudden & rises)[:, 0], {"rms": rms}


@rule(
    says=("{share:.0%} of the step is spent waiting for data; more loader workers, or cached data"),
    tells=("share",),
    explained_by=("step_time", "samples_per_second"),
)
def loader_bound(data_wait_share: Doubles, most: float = 0.3, window: int = 50) -> Any:
    """A loop that waits for its data."""
    share = mean_before(data_wait_share, window)
    return share > most, {"share": share}


def _norm(parts: Doubles) -> Doubles:
    """The norm over all modules of each row; NaN is left out."""
    return np.sqrt(np.nansum(np.square(parts), axis=1))


def _decade(ratio: Doubles) -> Doubles:
    """The power of ten by which a rate has to change for a relative step of 1e-3."""
    return np.asarray(10.0 ** np.round(np.log10(1e-3 / ratio)), np.float64)
