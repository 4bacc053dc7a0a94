"""Noticing that modules or parameters were added, replaced or removed, at every step."""

from __future__ import annotations

import weakref
from collections.abc import Iterable
from typing import TypeAlias

import torch
from torch import nn

__all__ = ["Tree"]

_Node: TypeAlias = "tuple[weakref.ref[nn.Module], type, list[int], list[int]]"


class Tree:
    """Modules, their children and parameters as they were; cheap enough to look at every step.

    Parameters
    ----------
    modules : iterable of nn.Module
        All of a model, each held weakly. Scripted ones cannot change and are passed over.
    """

    def __init__(self, modules: Iterable[nn.Module]) -> None:
        self._nodes: list[_Node] = [
            (
                weakref.ref(module),
                type(module),
                [*map(id, module._modules.values())],
                [*map(id, module._parameters.values())],
            )
            for module in modules
            if not isinstance(module, torch.jit.ScriptModule)
        ]

    def has_changed(self) -> bool:
        """Compare with the model as it is now."""
        for reference, kind, children, parameters in self._nodes:
            module = reference()
            if type(module) is not kind:  # or gone
                return True
            own = module.__dict__
            below, values = own["_modules"], own["_parameters"]
            if (below or children) and [*map(id, below.values())] != children:
                return True
            if (values or parameters) and [*map(id, values.values())] != parameters:
                return True
        return False
