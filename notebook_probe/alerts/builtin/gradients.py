"""Rules for gradients that explode or vanish, and for the effects of clipping."""

from __future__ import annotations

from typing import Any

import numpy as np

from notebook_probe.alerts.rolling import (
    LEAST,
    Doubles,
    highest_before,
    last_known,
    mean_before,
    over_median,
    within_most,
)
from notebook_probe.alerts.rule import rule

__all__ = [
    "always_clipped",
    "exploding_gradient",
    "faded_gradient",
    "gradient_too_long",
    "idle_gradient",
    "vanishing_gradient",
    "vanishing_with_depth",
]


@rule(
    says=(
        "the gradient's norm is {grad_norm:.3g}, {factor:.0f} times its usual size, and a step "
        "changes the weight by {update_ratio:.2%}; clip it, or lower the learning rate"
    ),
    rows=2,
    again=200,
    tells=("factor",),
    severity="severe",
    explained_by=("grad_abs_max", "output_grad_norm", "weight_norm"),
    flow="backward",
    consequence_of=(
        "attention_logit_large",
        "loss_spike",
        "diverging_loss",
        "early_divergence",
        "lr_high",
    ),
)
def exploding_gradient(
    grad_norm: Doubles,
    update_ratio: Doubles,
    loss: Doubles,
    times: float = 10.0,
    least: float = 0.15,
    apart: float = 5.0,
    at_once: float = 100.0,
    whole: float = 1.0,
    moves: float = 1e-3,
    window: int = 50,
) -> Any:
    """A gradient many times as large as usual, the median of the rows before, and a larger step.

    Far above its spread as well, by ``apart`` deviations of the logarithm: where losses are summed
    over episodes, gradients are a hundred times as large as others at any time.
    Gradients of a network that has converged, or has not begun, grow tenfold as well. What tells is
    the step: 13 % of the weight and less, or no longer than before, in trainings that went well,
    where a plateau ended or a schedule raised the rate.
    Where fewer than ten rows are before, ``at_once`` times is too much, with a step of the
    ``whole`` weight: what begins at zero has no usual size yet.
    Where no loss of the ``window`` has left the present one by ``moves`` of it, as of a process at
    its optimum, nothing has exploded: a mean near 0 has small gradients, and large relative steps.
    """
    factor = over_median(grad_norm, window, times, apart=apart)
    longer = over_median(update_ratio, window, 2.0) > 2.0
    at_first = over_median(grad_norm, window, at_once, least=1, apart=apart)
    explodes = (factor > times) & longer & (update_ratio > least)
    explodes |= (at_first > at_once) & (update_ratio > whole)
    return explodes & ~_stands_still(loss, moves, window), {"factor": np.fmax(factor, at_first)}


def _stands_still(loss: Doubles, moves: float, window: int) -> Any:
    """Return where a loss is nearly all losses of the window, ten at least."""
    highest, lowest = highest_before(loss, window), -highest_before(-loss, window)
    is_near = np.fmax(highest - loss, loss - lowest) < moves * np.abs(loss)
    return is_near & (np.arange(len(loss)) >= LEAST)[:, None]


@rule(
    says=(
        "the gradient's usual element is {grad_rms:.2g}, where the largest of another layer is "
        "{largest:.2g}: nothing arrives here"
    ),
    rows=10,
    tells=("largest",),
    source="https://arxiv.org/abs/2110.09456",
    explained_by=("output_grad_rms", "saturated_fraction", "zero_fraction", "grad_zero_fraction"),
    flow="backward",
    consequence_of=(
        "vanishing_with_depth",
        "dead_units",
        "equal_units",
        "silent_inputs",
        "attention_logit_large",
        "early_divergence",
    ),
)
def vanishing_gradient(
    grad_rms: Doubles,
    silent_input_fraction: Doubles,
    *,
    first: Doubles,
    least: float = 1e-8,
    share: float = 1e-4,
    silent: float = 0.6,
    grows: float = 1.5,
    faded: float = 10.0,
    window: int = 80,
) -> Any:
    """A gradient so small that float16 and Adam's epsilon lose it, unlike other gradients.

    At the end of a training all are small. A layer behind one that was initialized to zero has no
    gradient in the first step or two. A gradient of exactly zero has not vanished on its way:
    the loss has no work for the layer, as for the boxes of a detector without a positive sample.
    It counts where a layer gets ``silent`` or more of its input from units that are off.
    A gradient that is ``grows`` times as large as half as many rows before, on average over five,
    has not vanished either: residual branches whose last gain begins at zero get their gradient as
    it grows, in a warmup over hundreds of steps. One that was ``faded`` times ``least`` before has
    faded, which `faded_gradient` reports: an autoencoder whose decoder learns the mean image first
    leaves its encoder with nothing for a hundred steps.
    """
    known = last_known(grad_rms)
    row = np.arange(len(known))
    usual = mean_before(known, 5)
    earlier = usual[np.where(row < window, row // 2, np.maximum(row - window // 2, 0))]
    is_off = np.fmax.reduce(silent_input_fraction, axis=1, keepdims=True) > silent
    has_faded = np.fmax(first, highest_before(known, window)) > faded * least
    is_small, largest = _far_below_others(grad_rms, least, share)
    is_lost = is_small & (is_off | ((grad_rms > 0) & ~(usual > grows * earlier) & ~has_faded))
    return is_lost, {"largest": largest}


@rule(
    says=(
        "the gradient's usual element was {began:.2g} before and has been less than {least:.0g} "
        "since step {since}, where the largest of another layer is {largest:.2g}: a plateau, which "
        "often ends later, or saturated units between here and the loss"
    ),
    rows=10,
    steps=300,
    tells=("began", "largest"),
    severity="remark",
    explained_by=("output_grad_rms", "saturated_fraction", "zero_fraction", "grad_zero_fraction"),
    flow="backward",
)
def faded_gradient(
    grad_rms: Doubles,
    *,
    first: Doubles,
    least: float = 1e-8,
    share: float = 1e-4,
    faded: float = 10.0,
    window: int = 80,
) -> Any:
    """A gradient that was larger before and is lost to float16 for hundreds of steps."""
    began = np.fmax(first, highest_before(last_known(grad_rms), window))
    is_small, largest = _far_below_others(grad_rms, least, share)
    has_faded = is_small & (grad_rms > 0) & (began > faded * least)
    return has_faded, {"began": began, "largest": largest}


def _far_below_others(grad_rms: Doubles, least: float, share: float) -> tuple[Any, Doubles]:
    """Return where a gradient is small, and a small part of the largest one, which comes second."""
    largest = np.fmax.reduce(last_known(grad_rms), axis=1, keepdims=True)
    is_small = (grad_rms < least) & (grad_rms < share * largest)
    return is_small, np.broadcast_to(largest, grad_rms.shape)


@rule(
    says=(
        "its gradient has been exactly zero since step {since}: no sample gave the loss anything "
        "to learn here, as for a head without a positive sample or an expert without a token"
    ),
    steps=50,
    rows=3,
    severity="remark",
    explained_by=("output_grad_rms", "zero_fraction"),
    flow="backward",
)
def idle_gradient(grad_rms: Doubles) -> Any:
    """A gradient of exactly zero where other layers have one; it may be intended."""
    return (grad_rms == 0) & (np.fmax.reduce(grad_rms, axis=1, keepdims=True) > 0)


@rule(
    says=(
        "gradients are {factor:.2g} times as large with every layer on the way back to the input, "
        "{whole:.1g} times over all {n:.0f} of them"
    ),
    rows=10,
    tells=("factor", "whole", "n"),
    source="https://arxiv.org/abs/2110.09456",
    explained_by=("output_grad_norm", "grad_rms"),
    consequence_of=("dead_units", "rank_collapse"),
)
def vanishing_with_depth(
    grad_norm: Doubles, grad_depth_slope: Doubles, least: float = -0.3, decades: float = 4.0
) -> Any:
    """Gradients that shrink from layer to layer on their way back, and by far in all.

    A few layers with torch's initialization lose 0.4 decades each and learn well: 1.6 in all was
    the most among trainings that did. Those that did not had lost 5 and more.
    """
    slope = np.fmin.reduce(grad_depth_slope, axis=1)
    n = np.count_nonzero(grad_norm > 0, axis=1)
    in_all = slope * (n - 1)
    tells = {"factor": 10.0**slope, "whole": 10.0**in_all, "n": n}
    return (slope < least) & (in_all < -decades), tells


@rule(
    says=(
        "{share:.0%} of the last {window:.0f} gradients were clipped to less than {cut:.0%}, "
        "and a step changes most layers by {ratio:.2%} of their size; raise the limit"
    ),
    tells=("share", "ratio"),
    explained_by=("grad_raw_norm", "lr"),
    consequence_of=("early_divergence", "lr_high", "exploding_gradient", "diverging_loss"),
)
def always_clipped(
    update_ratio: Doubles,
    clip_coefficient: Doubles,
    weight_norm: Doubles,
    grad_norm: Doubles,
    most: float = 0.9,
    cut: float = 0.2,
    least: float = 5e-4,
    follows: float = 5.0,
    window: int = 40,
) -> Any:
    """Clipping to a small part in nearly every step, and steps that are small for most layers.

    Limits at which large models are trained clip most early gradients, too, by a half or so. Adam
    makes the same step of a gradient and of a tenth of it, and agents are trained that way with
    every gradient clipped: there the limit is not the cause of small steps. Steps that follow the
    gradient are the same multiple of it in all layers, within a factor of ``follows``: of SGD, with
    momentum too, it is at most 2.5, of Adam 10 and more. What is lost shows in the steps, of which
    0.1 % is usual.
    """
    coefficient = np.fmin.reduce(clip_coefficient, axis=1)[:, None]
    clipped = np.where(np.isnan(coefficient), np.nan, coefficient < cut)
    share = mean_before(clipped, window)[:, 0]
    ratio = mean_before(within_most(update_ratio)[:, None], window)[:, 0]
    rate = last_known(update_ratio) * last_known(weight_norm) / last_known(grad_norm)
    rate = np.where(rate > 0, rate, np.nan)
    unlike = np.fmax.reduce(rate, axis=1) / np.fmin.reduce(rate, axis=1)
    is_led = ~(mean_before(unlike[:, None], window)[:, 0] > follows)
    return (share > most) & (ratio < least) & is_led, {"share": share, "ratio": ratio}


@rule(
    says=(
        "clipping leaves {left:.1g} of the gradient, since step {since}: something multiplies it "
        "on its way back, as recurrent weights do at every place of a sequence, or the loss is of "
        "another size than it seems"
    ),
    rows=10,
    again=1000,
    tells=("left",),
    severity="severe",
    explained_by=("grad_raw_norm", "output_abs_max", "weight_norm"),
    consequence_of=(
        "large_outputs",
        "early_divergence",
        "lr_high",
        "exploding_gradient",
        "diverging_loss",
    ),
)
def gradient_too_long(clip_coefficient: Doubles, least: float = 1e-8) -> Any:
    """A gradient of which clipping leaves only its direction, from the first step on.

    Nothing else shows that: clipped gradients and steps have their usual size, and the loss falls,
    though from a million million. Losses summed over large images are 1e-6 and learn.
    """
    left = np.fmin.reduce(clip_coefficient, axis=1)
    return left < least, {"left": left}
