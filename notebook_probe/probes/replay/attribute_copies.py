"""Copies of what a module keeps for itself, for a call that must not change it."""

from __future__ import annotations

import random
from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Iterable
from copy import copy, deepcopy
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

__all__ = ["give_copies"]

MAPPINGS = (dict, OrderedDict, defaultdict, Counter)
SEQUENCES = (list, deque)
DEEPLY = np.ndarray | np.random.Generator | np.random.RandomState | random.Random
OF_EVERY_MODULE = frozenset(vars(nn.Module()))
"""Parameters, buffers, modules and hooks, which are copied separately."""


def give_copies(modules: Iterable[nn.Module]) -> None:
    """Put copies in the place of tensors, containers and generators that are plain attributes.

    Objects that several modules share are still shared afterwards. Objects of other kinds are not
    copied.
    """
    copies = _ObjectCopies()
    for module in modules:
        for part in module.modules():
            own = part.__dict__
            for name in own.keys() - OF_EVERY_MODULE:
                own[name] = copies.of(own[name])


class _ObjectCopies:
    """Copies of objects, one of each, however often it is met."""

    def __init__(self) -> None:
        self._made: dict[int, tuple[Any, Any]] = {}  # an original that lives keeps its id

    def of(self, value: Any) -> Any:
        """Return a copy, or the object itself where its kind cannot be copied."""
        if id(value) in self._made:
            return self._made[id(value)][1]
        kind = type(value)
        if kind in MAPPINGS:
            made = self._keep(value, copy(value))
            for key in value:
                made[key] = self.of(value[key])
            return made
        if kind in SEQUENCES:
            made = self._keep(value, copy(value))
            for place, element in enumerate(value):
                made[place] = self.of(element)
            return made
        return self._keep(value, _alone(value, self))

    def _keep(self, value: Any, made: Any) -> Any:
        self._made[id(value)] = value, made
        return made


def _alone(value: Any, copies: _ObjectCopies) -> Any:
    """Return a copy of what holds no reference to itself."""
    if isinstance(value, Tensor):
        return value if isinstance(value, nn.Parameter) else value.detach().clone()
    if isinstance(value, torch.Generator):
        return value.clone_state()
    if isinstance(value, DEEPLY):
        return deepcopy(value)
    if type(value) is tuple:
        return tuple(map(copies.of, value))
    return set(value) if type(value) is set else value
