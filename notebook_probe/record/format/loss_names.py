"""Which of the scalars that a loop logs is the loss of a training step."""

from __future__ import annotations

from collections.abc import Container

__all__ = ["LOSS", "LOSS_NAMES", "loss_name"]

LOSS = "loss"
"""What quantities and alert rules call it."""

LOSS_NAMES = (LOSS, "train_loss", "train/loss", "training_loss", "loss/train")
"""Names under which it is usually logged; the first of them that is there counts, all the time."""


def loss_name(names: Container[str]) -> str:
    """The name of the loss among names that are logged; `LOSS` where it is not.

    Examples
    --------
    >>> loss_name({"lr", "train/loss"}), loss_name({"train_loss", "loss"}), loss_name({"lr"})
    ('train/loss', 'loss', 'loss')
    """
    return next((name for name in LOSS_NAMES if name in names), LOSS)
