"""Policies that learn from rollouts, judged by what their trainers log of them.

`notebook_probe.record.format.loss_names` lists the names that are known of each series.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from notebook_probe.alerts.rolling import Doubles, mean_before
from notebook_probe.alerts.rule import rule

__all__ = ["clips_too_often", "groups_without_signal", "rollouts_differ"]

ROUNDING = 1e-6
"""Part of a reward by which the mean of equal ones may differ from it."""


@rule(
    says=(
        "{share:.0%} of the groups had equal rewards, on average over {recent:.0f} values, and the "
        "reward of {now:.3g} is not above the {start:.3g} that it began with: such groups teach "
        "nothing, as no completion is better than the others; read some completions with their "
        "rewards: the prompts are too hard or too easy, or the reward does not tell them apart"
    ),
    tells=("share", "now", "start"),
    again=1000,
    source="https://arxiv.org/abs/2503.14476",
    explained_by=("grad_norm", "update_ratio"),
)
def groups_without_signal(
    reward: Doubles,
    idle_group_share: Doubles,
    *,
    first: Doubles,
    most: float = 0.9,
    recent: int = 10,
    window: int = 20,
) -> Any:
    """Groups of completions of a prompt whose rewards are all equal, nearly everywhere.

    Their advantages are zero. A policy that has learned its prompts has such groups, too: its
    reward has risen above the first ones.
    """
    share, now = mean_before(idle_group_share, int(recent)), mean_before(reward, int(recent))
    has_risen = now - first > ROUNDING * np.abs(first)
    return (share > most) & ~has_risen & np.isfinite(first), {
        "share": share,
        "now": now,
        "start": first,
    }


@rule(
    says=(
        "the log-probabilities of sampled tokens differ by {gap:.2g} from those of the model that "
        "is trained, on average over {recent:.0f} values: the completions come from older weights, "
        "another precision, another temperature or another tokenization; send the weights to the "
        "sampler after each update and compute in its precision, or correct by the ratio of both"
    ),
    tells=("gap",),
    again=1000,
    source="https://fengyao.notion.site/off-policy-rl",
    explained_by=("grad_norm", "update_ratio"),
)
def rollouts_differ(logp_gap: Doubles, most: float = 0.1, recent: int = 5, window: int = 10) -> Any:
    """A sampler that gives other probabilities than the model that learns from its samples.

    A rule of thumb: two engines that compute the same weights in bfloat16 differ by a hundredth and
    less, those with weights in eight bits by a few.
    """
    gap = mean_before(logp_gap, int(recent))
    return gap > most, {"gap": gap}


@rule(
    says=(
        "{share:.0%} of the probability ratios were clipped, on average over {recent:.0f} values: "
        "what is clipped has no gradient, as the policy has moved too far from the one that "
        "sampled; a lower learning rate, or fewer updates per batch of rollouts"
    ),
    tells=("share",),
    again=1000,
    source="https://arxiv.org/abs/1707.06347",
    explained_by=("update_ratio", "lr", "grad_norm"),
    consequence_of=("rollouts_differ", "lr_high"),
)
def clips_too_often(
    clip_fraction: Doubles, most: float = 0.5, recent: int = 10, window: int = 20
) -> Any:
    """A policy that leaves the region of its rollouts in most of its tokens or actions.

    A rule of thumb: trainings that go well clip up to 30 %, and none with one update per batch.
    """
    share = mean_before(clip_fraction, int(recent))
    return share > most, {"share": share}
