"""Names of the loss, of rollouts and of evaluations among the scalars of a training."""

from __future__ import annotations

import re
from collections.abc import Container

__all__ = [
    "BACKWARD_LOSS",
    "LOSS",
    "LOSS_NAMES",
    "NAMED_SERIES",
    "logged_as",
    "loss_name",
    "names_evaluation",
]

LOSS = "loss"
"""Name of the loss in quantities and alert rules."""

BACKWARD_LOSS = "backward_loss"
"""Loss that is recorded unless the loop logs one at nearly every step."""

LOSS_NAMES = (LOSS, "train_loss", "train/loss", "training_loss", "loss/train", BACKWARD_LOSS)
"""Names of the loss in the order of preference; the first recorded one counts, if it is dense."""

NAMED_SERIES = {
    LOSS: LOSS_NAMES,
    "loss_d": ("loss_d", "d_loss", "loss_D", "D_loss", "Loss_D", "train/loss_d", "train/d_loss"),
    "loss_g": ("loss_g", "g_loss", "loss_G", "G_loss", "Loss_G", "train/loss_g", "train/g_loss"),
    "reward": ("reward", "train/reward", "critic/score/mean", "rollout/ep_rew_mean"),
    "idle_group_share": ("idle_group_share", "frac_reward_zero_std"),
    "logp_gap": ("logp_gap", "sampling/sampling_logp_difference/mean"),
    "clip_fraction": (
        "clip_fraction",
        "clip_ratio/region_mean",  # TRL's GRPO, before that without a part
        "clip_ratio",
        "policy/clipfrac_avg",  # TRL's PPO
        "actor/pg_clipfrac",  # verl
        "train/clip_fraction",  # stable-baselines3
    ),
}
"""Names of logged series in alert rules with their spellings: losses, also of discriminators and
generators, and what trainers that learn from rollouts log of them."""


ADVERSARIES = ("loss_d", "loss_g")

EVALUATION_PREFIX = re.compile(r"(eval|val|valid|validation|test|dev)(?![a-z])")


def logged_as(quantity: str, names: Container[str]) -> str:
    """Return the logged name of a quantity; its own unless it is in `NAMED_SERIES`.

    If both losses of two adversaries are logged, the tensor of `backward()` alternates between
    them, and is no loss that should fall.

    Examples
    --------
    >>> logged_as("loss_d", {"d_loss", "g_loss"}), logged_as("lr", {"lr"})
    ('d_loss', 'lr')
    """
    found = next((name for name in NAMED_SERIES.get(quantity, ()) if name in names), quantity)
    is_of_two = found == BACKWARD_LOSS and all(
        any(name in names for name in NAMED_SERIES[one]) for one in ADVERSARIES
    )
    return quantity if is_of_two else found


def loss_name(names: Container[str]) -> str:
    """Return the logged name of the loss; `LOSS` if it is not logged.

    Examples
    --------
    >>> loss_name({"lr", "train/loss"}), loss_name({"train_loss", "loss"}), loss_name({"lr"})
    ('train/loss', 'loss', 'loss')
    """
    return next((name for name in LOSS_NAMES if name in names), LOSS)


def names_evaluation(name: str) -> bool:
    """Return whether a logged name says that its number is of an evaluation.

    Examples
    --------
    >>> names_evaluation("val/loss"), names_evaluation("eval_f1"), names_evaluation("value_loss")
    (True, True, False)
    """
    return EVALUATION_PREFIX.match(name) is not None
