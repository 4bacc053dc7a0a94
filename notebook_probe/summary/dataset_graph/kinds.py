"""Distinction of the parts that make batches from their settings."""

from __future__ import annotations

from collections.abc import Mapping, Set
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import DataLoader, Dataset, Sampler

from notebook_probe.summary.dataset_graph.settings import FUNCTIONS

__all__ = ["is_known", "kind_of"]

PLAIN = (
    *(type(None), bool, int, float, complex, str, bytes, bytearray, list, tuple, range, slice),
    *(Mapping, Set, type, Tensor, np.ndarray, np.generic, torch.dtype, torch.device, partial),
    *FUNCTIONS,
)
"""Never parts: each is described in a few words."""

KINDS = ((DataLoader, "loader"), (Sampler, "sampler"), (Dataset, "dataset"))
LISTS = (list, tuple)
"""Lists of samples, which a loader or a part of a dataset may have as its dataset."""
ROLES = (("sampler", "sampler"), ("loader", "loader"), ("dataset", "dataset"), ("_fn", "function"))
"""Kinds of parts that are recognized only by the attribute's name."""


def is_known(value: object) -> bool:
    """Return a loader, sampler or dataset of torch's own kinds."""
    # isinstance would ask `__class__`, which an object can fake.
    return any(issubclass(type(value), known) for known, _ in KINDS)


def kind_of(role: str, value: object) -> str | None:
    """Return the kind of a value that an object has as ``role``; None for a setting.

    Examples
    --------
    >>> kind_of("dataset", torch.utils.data.TensorDataset(torch.ones(2))), kind_of("seed", 3)
    ('dataset', None)
    """
    own = type(value)
    for known, kind in KINDS:
        if issubclass(own, known):
            return kind
    if issubclass(own, PLAIN):
        return "dataset" if own in LISTS and role == "dataset" else None
    by_role = next((kind for name, kind in ROLES if name in role), None)
    if _has(own, "__call__"):
        return by_role or "transform"
    if _has(own, "__getitem__") and _has(own, "__len__"):
        return by_role or "data"
    if by_role is not None and by_role != "function":
        return by_role
    return "data" if _has(own, "__iter__") else None


def _has(own: Any, name: str) -> bool:
    # On the class: an attribute of the instance may be made by `__getattr__`.
    return any(name in vars(kind) for kind in own.__mro__ if kind is not object)
