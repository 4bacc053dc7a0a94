"""A parameter group in words: what is in it, and whose it is."""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from typing import Any

from torch.optim import Optimizer

__all__ = ["group_text", "owners_text"]

_known: weakref.WeakKeyDictionary[Optimizer, dict[tuple[int, int], str]]
_known = weakref.WeakKeyDictionary()  # who lists knobs asks several times a second


def group_text(optimizer: Optimizer, index: int) -> str:
    """Describe a group: matrices and filters are weights, vectors biases and norms.

    Examples
    --------
    >>> import torch
    >>> model = torch.nn.Linear(2, 3)
    >>> group_text(torch.optim.SGD(model.parameters(), lr=0.1, weight_decay=0.01), 0)
    '1 weight, 1 bias or norm, decay 0.01'
    """
    group = optimizer.param_groups[index]
    # A group may get more parameters.
    texts, key = _known.setdefault(optimizer, {}), (index, len(group["params"]))
    if key not in texts:
        texts[key] = _contents(group["params"])
    return texts[key] + _decay(group)


def owners_text(optimizers: Sequence[Optimizer], n_groups: int) -> str:
    """Describe the owners of groups: ``"AdamW, 2 groups"``."""
    classes = dict.fromkeys(type(one).__name__ for one in optimizers)
    return f"{', '.join(classes)}, {_counted(n_groups, 'group', 'groups')}"


def _contents(params: Sequence[Any]) -> str:
    weights = sum(one.ndim > 1 for one in params)
    others = len(params) - weights
    parts = [
        _counted(weights, "weight", "weights") if weights else "",
        _counted(others, "bias or norm", "biases and norms") if others else "",
    ]
    return ", ".join(filter(None, parts)) or "empty"


def _decay(group: dict[str, Any]) -> str:
    decay = group.get("weight_decay")
    return f", decay {float(decay):.3g}" if decay else ""


def _counted(n: int, one: str, more: str) -> str:
    return f"{n} {one if n == 1 else more}"
