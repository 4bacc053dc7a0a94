"""Which of the scalars of a training is the loss of its steps."""

from __future__ import annotations

from collections.abc import Container

__all__ = ["BACKWARD_LOSS", "LOSS", "LOSS_NAMES", "loss_name"]

LOSS = "loss"
"""What quantities and alert rules call it."""

BACKWARD_LOSS = "backward_loss"
"""That which is recorded where the loop logs none."""

LOSS_NAMES = (LOSS, "train_loss", "train/loss", "training_loss", "loss/train", BACKWARD_LOSS)
"""Names under which it is recorded; the first of them that is there counts, all the time."""


def loss_name(names: Container[str]) -> str:
    """The name of the loss among names that are logged; `LOSS` where it is not.

    Examples
    --------
    >>> loss_name({"lr", "train/loss"}), loss_name({"train_loss", "loss"}), loss_name({"lr"})
    ('train/loss', 'loss', 'loss')
    """
    return next((name for name in LOSS_NAMES if name in names), LOSS)
