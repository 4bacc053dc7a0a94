"""Check of a unit's loss."""

from __future__ import annotations

import math

from notebook_probe.errors import HiLossError, NanLossError

__all__ = ["check_loss"]


def check_loss(unit: int, loss: float, threshold: float) -> None:
    """Raise for NaN, and above the threshold; not for minus infinity.

    Raises
    ------
    NanLossError, HiLossError

    Examples
    --------
    >>> check_loss(3, 100.0, 100.0)
    >>> check_loss(3, 100.5, 100.0)
    Traceback (most recent call last):
    notebook_probe.errors.HiLossError: unit 3: the loss 100.5 is above thres_loss=100.0
    """
    if math.isnan(loss):
        raise NanLossError(f"unit {unit}: the loss is NaN")
    if loss > threshold:
        raise HiLossError(f"unit {unit}: the loss {loss:g} is above thres_loss={threshold}")
