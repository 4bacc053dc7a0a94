"""Standing requests: what was asked for goes on holding for modules that are added later."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from torch import nn

from notebook_probe.probes.probe import Probe
from notebook_probe.probes.slots import parameters_of
from notebook_probe.run.attach import Asked

__all__ = ["Standing", "tree_of"]


@dataclass(eq=False)
class Standing:
    """One request, and the probes it has come to so far.

    Attributes
    ----------
    again : callable
        Reads the request for the model as it is now.
    """

    again: Callable[[nn.Module], Asked]
    probes: list[Probe] = field(default_factory=list)
    skipped: tuple[str, ...] = ()


def tree_of(model: nn.Module) -> tuple[int, ...]:
    """What changes when modules or parameters are added, replaced or removed; cheap to compare."""
    signature: list[int] = []
    waiting: list[nn.Module] = [model]
    seen: set[int] = set()
    while waiting:
        module = waiting.pop()
        if id(module) in seen:  # shared, or inside itself
            continue
        seen.add(id(module))
        signature += (id(module), id(type(module)), *map(id, parameters_of(module).values()))
        waiting += [child for child in module._modules.values() if child is not None]
    return tuple(signature)
