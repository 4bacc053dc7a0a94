"""Share of the elements that a call of a function drops, for any function that can drop some."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch.nn import functional as F

__all__ = ["dropped_share"]

DROPOUTS = frozenset(
    {
        F.dropout,
        F.dropout1d,
        F.dropout2d,
        F.dropout3d,
        F.alpha_dropout,
        F.feature_alpha_dropout,
        torch.dropout,
    }
)
OFF_BY_DEFAULT = (F.alpha_dropout, F.feature_alpha_dropout)
DEFAULT_SHARE = 0.5


def dropped_share(func: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> float:
    """Return the share of the elements that a call drops; 0 for any other call.

    Examples
    --------
    >>> x = torch.ones(3)
    >>> dropped_share(F.dropout, (x, 0.1), {}), dropped_share(F.alpha_dropout, (x, 0.1), {})
    (0.1, 0.0)
    """
    if func is F.scaled_dot_product_attention:
        return float(kwargs.get("dropout_p", args[4] if len(args) > 4 else 0.0))
    if func in DROPOUTS:
        name = "train" if func is torch.dropout else "training"
        is_on = kwargs.get(name, args[2] if len(args) > 2 else func not in OFF_BY_DEFAULT)
        share = kwargs.get("p", args[1] if len(args) > 1 else DEFAULT_SHARE)
        return float(share) if is_on else 0.0
    return 0.0
