"""Two networks of which one has won, or falls behind."""

from __future__ import annotations

from typing import Any

import numpy as np

from notebook_probe.alerts.rolling import Doubles, first_known, highest_before, within_most
from notebook_probe.alerts.rule import rule

__all__ = ["generator_behind", "one_sided_gan"]


@rule(
    says=(
        "the discriminator's loss is {loss_d:.2g}, below {most:g} since step {since}, and the "
        "generator's {loss_g:.2g}: it recognizes every generated sample, and the generator "
        "learns little from that; a lower rate for the discriminator, or a higher one for the other"
    ),
    rows=20,
    again=1000,
    source="https://arxiv.org/abs/1701.04862",
    explained_by=("update_ratio", "grad_norm", "lr"),
    consequence_of=("generator_behind",),
)
def one_sided_gan(
    loss_d: Doubles, loss_g: Doubles, most: float = 0.05, least: float = 0.3, window: int = 500
) -> Any:
    """A discriminator that has won: its loss is nearly 0, and the generator has lost.

    The loss of a discriminator that knows nothing is between 1 and 2, or half of that, for cross
    entropies, squares or hinges; in trainings that went well none was below 0.15 at any step. A
    critic's loss is unbounded and negative while it is ahead. The generator's loss is large, or, if
    it is the log of the probability of being detected, negative and near 0: never further than the
    discriminator's own loss, of which it is a part with the opposite sign.
    """
    has_won = (loss_d >= 0) & (loss_d < most)
    was_open = highest_before(loss_d, window) > least
    is_found_out = (loss_g <= 0) & (-loss_g <= loss_d) & was_open
    return has_won & ((loss_g > least) | is_found_out)


@rule(
    says=(
        "the discriminator's loss has fallen to {of_d:.0%} of its first and the generator's to "
        "{of_g:.0%}, while a step changes most layers by only {ratio:.2%} of their size: the "
        "generator falls behind; raise its rate, or lower the discriminator's"
    ),
    rows=3,
    tells=("of_d", "of_g", "ratio"),
    source="https://arxiv.org/abs/1706.08500",
    explained_by=("lr", "grad_norm", "update_norm"),
)
def generator_behind(
    update_ratio: Doubles,
    loss_d: Doubles,
    loss_g: Doubles,
    most: float = 0.5,
    times: float = 1.5,
    least: float = 5e-4,
    window: int = 200,
) -> Any:
    """A generator that hardly moves, while its discriminator learns to tell what it makes.

    For a run of the generator in which both losses are logged. Both are compared with their first
    values, in the first ``window`` rows; two layers of three change by so little, where 0.1 % is
    usual and generators that learned had no less. A discriminator that runs ahead of a generator
    that moves is often caught up with.
    """
    ratio = within_most(update_ratio)
    of_d, of_g = (_of_first(one) for one in (loss_d, loss_g))
    is_early = np.arange(len(ratio)) < window
    is_behind = (of_d >= 0) & (of_d < most) & (of_g > times)
    return is_early & is_behind & (ratio < least), {"of_d": of_d, "of_g": of_g, "ratio": ratio}


def _of_first(loss: Doubles) -> Doubles:
    """A loss as part of its first; NaN where that is not above 0, as of a critic."""
    now = np.fmax.reduce(loss, axis=1)
    first = first_known(now)
    return now / (first if first > 0 else np.nan)
