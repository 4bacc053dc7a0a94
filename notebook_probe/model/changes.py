"""Noticing that modules or parameters were added, replaced or removed, at every step.

torch tells of whatever is registered in any module of the process: a tree is walked when that has
happened since. What is done past torch, and what is taken away and so never called again, is found
by looking at a part of the tree each time, all of it in `ROUND` steps.

The hooks are global, registered once, at import, and never touched again.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterable, Sequence
from typing import TypeAlias

import torch
from torch import nn
from torch.nn.modules.module import (
    register_module_module_registration_hook,
    register_module_parameter_registration_hook,
)

__all__ = ["Tree"]

ROUND = 16
FEW = 2
"""So many modules are looked at each time, whatever share of the tree they are."""

_Node: TypeAlias = "tuple[weakref.ref[nn.Module], type, list[int], list[int]]"


class Tree:
    """Modules, their children and parameters as they were; cheap enough to look at every step.

    Parameters
    ----------
    modules : iterable of nn.Module
        All of a model, each held weakly. Scripted ones cannot change and are passed over.
    """

    def __init__(self, modules: Iterable[nn.Module]) -> None:
        self._seen = _registrations.n  # before the walk: what comes during it counts as new
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
        self._next = 0
        self._part = max(FEW, -(-len(self._nodes) // ROUND))

    def differs(self) -> bool:
        """Compare all of them with the model as it is now."""
        return _differ(self._nodes)

    def has_changed(self) -> bool:
        """Compare a part of them with the model as it is now; all, if anything was registered."""
        if self._seen != _registrations.n:
            self._seen = _registrations.n
            return self.differs()
        part = self._nodes[self._next : self._next + self._part]
        self._next += self._part
        if self._next >= len(self._nodes):
            self._next = 0
        return _differ(part)


def _differ(nodes: Sequence[_Node]) -> bool:
    for reference, kind, children, parameters in nodes:
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


class _Registrations:
    """How many modules and parameters were registered in this process."""

    n = 0

    def count(self, module: nn.Module, name: str, value: object) -> None:
        """Given to torch, which would take what is returned instead."""
        self.n += 1


_registrations = _Registrations()
register_module_module_registration_hook(_registrations.count)
register_module_parameter_registration_hook(_registrations.count)
