"""Which of the scalars of a training is the loss of its steps, or of one of two adversaries."""

from __future__ import annotations

from collections.abc import Container

__all__ = ["BACKWARD_LOSS", "LOSS", "LOSS_NAMES", "NAMED_LOSSES", "logged_as", "loss_name"]

LOSS = "loss"
"""What quantities and alert rules call it."""

BACKWARD_LOSS = "backward_loss"
"""That which is recorded where the loop logs none."""

LOSS_NAMES = (LOSS, "train_loss", "train/loss", "training_loss", "loss/train", BACKWARD_LOSS)
"""Names under which it is recorded; the first of them that is there counts, all the time."""

NAMED_LOSSES = {
    LOSS: LOSS_NAMES,
    "loss_d": ("loss_d", "d_loss", "loss_D", "D_loss", "Loss_D", "train/loss_d", "train/d_loss"),
    "loss_g": ("loss_g", "g_loss", "loss_G", "G_loss", "Loss_G", "train/loss_g", "train/g_loss"),
}
"""What alert rules call losses, that of a discriminator and of a generator too, and their names."""


ADVERSARIES = ("loss_d", "loss_g")


def logged_as(quantity: str, names: Container[str]) -> str:
    """The name of a quantity among names that are logged; its own unless it is a loss.

    Where both losses of two adversaries are logged, what `backward()` is called on is now one and
    now the other, and no loss that should fall.

    Examples
    --------
    >>> logged_as("loss_d", {"d_loss", "g_loss"}), logged_as("lr", {"lr"})
    ('d_loss', 'lr')
    """
    found = next((name for name in NAMED_LOSSES.get(quantity, ()) if name in names), quantity)
    is_of_two = found == BACKWARD_LOSS and all(
        any(name in names for name in NAMED_LOSSES[one]) for one in ADVERSARIES
    )
    return quantity if is_of_two else found


def loss_name(names: Container[str]) -> str:
    """The name of the loss among names that are logged; `LOSS` where it is not.

    Examples
    --------
    >>> loss_name({"lr", "train/loss"}), loss_name({"train_loss", "loss"}), loss_name({"lr"})
    ('train/loss', 'loss', 'loss')
    """
    return next((name for name in LOSS_NAMES if name in names), LOSS)
