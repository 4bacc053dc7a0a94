"""Noticing that modules or parameters were added, replaced or removed, at every step.

torch reports whatever is registered in any module of the process: a tree is walked if that has
happened since. Changes past torch, and removals, which are never reported, are found by comparing a
part of the tree each time, all of it in `ROUND` steps.

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

__all__ = ["Tree", "registrations"]

ROUND = 16
FEW = 2
"""Least number of modules that are compared each time."""

_Node: TypeAlias = "tuple[weakref.ref[nn.Module], type, list[int], list[str], list[int]]"


class Tree:
    """Modules, their children and parameters; cheap enough to compare at every step.

    Parameters
    ----------
    modules : iterable of nn.Module
        All of a model, each held weakly. Scripted ones cannot change and are passed over.
    """

    def __init__(self, modules: Iterable[nn.Module]) -> None:
        self._seen = registrations.n  # before the walk: what comes during it counts as new
        self._nodes: list[_Node] = [
            (
                weakref.ref(module),
                type(module),
                # Identities compare fast at every step, and keep no removed part alive.
                [*map(id, module._modules.values())],
                [*module._parameters],
                [*map(id, module._parameters.values())],
            )
            for module in modules
            if not isinstance(module, torch.jit.ScriptModule)
        ]
        self._next = 0
        self._part = max(FEW, -(-len(self._nodes) // ROUND))

    def differs(self) -> bool:
        """Compare all of it with the present model."""
        return _differ(self._nodes)

    def has_changed(self, n_steps: int = 1) -> bool:
        """Compare a part with the present model for each step since the last time.

        All of it, if anything was registered, or after `ROUND` steps.
        """
        if self._seen != registrations.n or n_steps >= ROUND:
            self._seen = registrations.n
            return self.differs()
        return any(self._part_differs() for _ in range(n_steps))

    def _part_differs(self) -> bool:
        part = self._nodes[self._next : self._next + self._part]
        self._next += self._part
        if self._next >= len(self._nodes):
            self._next = 0
        return _differ(part)


def _differ(nodes: Sequence[_Node]) -> bool:
    for reference, kind, children, names, parameters in nodes:
        module = reference()
        if type(module) is not kind:  # or gone
            return True
        own = module.__dict__
        below, values = own["_modules"], own["_parameters"]
        if (below or children) and [*map(id, below.values())] != children:
            return True
        if (values or parameters) and [*map(id, values.values())] != parameters:
            return True
        if names and [*values] != names:  # as of a weight that is pruned no more
            return True
    return False


class _Registrations:
    """Number of modules and parameters registered in this process."""

    n = 0

    def count(self, module: nn.Module, name: str, value: object) -> None:
        """Count a registration; returns None, as torch would use a returned value instead."""
        # A graph would be guarded by the number, and compiled again for each: a forward that
        # registers something is noticed by the comparison instead.
        if not torch.compiler.is_compiling():
            self.n += 1


registrations = _Registrations()
# For the whole process: torch has no such hook for one model.
register_module_module_registration_hook(registrations.count)
register_module_parameter_registration_hook(registrations.count)
