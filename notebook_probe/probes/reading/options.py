"""The options of a parameter's group in its optimizer, such as its learning rate."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, TypeAlias

import torch
from torch import Tensor
from torch.optim import Optimizer

__all__ = ["Group", "as_tensor", "groups_of", "options_in", "owned_by", "wanted_options"]

Group: TypeAlias = "Mapping[str, Any]"

PREFIX = "group."

ELSEWHERE = {"momentum": "betas"}
"""An option that some optimizers keep as the first of several, as torch's schedulers have it too:
Adam's momentum is the first of its betas."""


def wanted_options(tensors: Iterable[str]) -> tuple[str, ...]:
    """Return the options among some tensors' names.

    >>> wanted_options(["grad", "group.lr"])
    ('lr',)
    """
    return tuple(t.removeprefix(PREFIX) for t in tensors if t.startswith(PREFIX))


def owned_by(optimizer: Optimizer) -> set[int]:
    """Identities of an optimizer's parameters."""
    return {id(value) for group in optimizer.param_groups for value in group["params"]}


def groups_of(optimizer: Optimizer) -> dict[int, Group]:
    """Return the group of each of an optimizer's parameters, by the parameter's identity."""
    groups = optimizer.param_groups
    return {id(parameter): group for group in groups for parameter in group["params"]}


def options_in(group: Group, wanted: Iterable[str]) -> dict[str, Any]:
    """Return those of the wanted options that a group has, by their features' names.

    >>> options_in({"lr": 0.1, "betas": (0.9, 0.999)}, ["lr", "momentum", "dampening"])
    {'group.lr': 0.1, 'group.momentum': 0.9}
    """
    found = {f"{PREFIX}{key}": _option(group, key) for key in wanted}
    return {name: value for name, value in found.items() if value is not None}


def _option(group: Group, key: str) -> Any:
    several = group.get(ELSEWHERE.get(key, ""))
    return group.get(key, several[0] if several else None)


def as_tensor(value: Any) -> Tensor | None:
    """Return an option or a state as a tensor: optimizers keep plain numbers too."""
    if isinstance(value, Tensor):
        return value
    if isinstance(value, int | float):
        return torch.tensor(float(value))
    return torch.tensor(value) if isinstance(value, tuple) else None
