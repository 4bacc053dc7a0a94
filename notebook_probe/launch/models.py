"""Find the models that an optimizer trains, among all modules of the process."""

from __future__ import annotations

import gc
from collections.abc import Iterator

from torch import nn
from torch.optim import Optimizer

__all__ = ["parameter_ids", "trained_models"]


def trained_models(optimizer: Optimizer) -> list[nn.Module]:
    """Return the outermost modules with parameters of an optimizer, those with the most first.

    A module whose parameters of the optimizer are all in an earlier one is left out, such as a
    ``nn.Sequential`` of some layers of the model.

    Examples
    --------
    >>> import torch
    >>> model = nn.Sequential(nn.Linear(2, 3), nn.ReLU())
    >>> found = trained_models(torch.optim.SGD(model.parameters(), lr=0.1))
    >>> [one is model for one in found]
    [True]
    """
    own = parameter_ids(optimizer)
    held = [(one, own & _parameters_in(one)) for one in _outermost()]
    found, seen = list[nn.Module](), set[int]()
    for module, ids in sorted(held, key=lambda one: len(one[1]), reverse=True):
        if ids - seen:
            found.append(module)
            seen |= ids
    return found


def parameter_ids(optimizer: Optimizer) -> set[int]:
    """Return the identities of the parameters of an optimizer."""
    return {id(value) for group in optimizer.param_groups for value in group["params"]}


def _parameters_in(module: nn.Module) -> set[int]:
    # torch's own method: a module that is none of ours to judge may have one that fails.
    return {id(value) for value in nn.Module.parameters(module)}


def _outermost() -> Iterator[nn.Module]:
    """Yield modules that are in no other one."""
    # By type: isinstance asks the object's own __class__, which may be code of the user.
    every = [one for one in gc.get_objects() if issubclass(type(one), nn.Module)]
    # Of one whose __init__ is running or failed there may be nothing yet.
    built = [one for one in every if "_modules" in vars(one) and "_parameters" in vars(one)]
    inner = {id(child) for one in built for child in vars(one)["_modules"].values()}
    return (one for one in built if id(one) not in inner)
