"""Where parameters live: an owner, held weakly, and a name there.

The parameter itself may be replaced at any time, and is never read through an attribute: that can
have side effects, as the power iteration of a spectral norm.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn.parameter import UninitializedParameter

from notebook_probe.model.unwrapped import unwrapped

__all__ = [
    "Slot",
    "current_values",
    "distinct",
    "n_elements",
    "own_slots",
    "parameters_of",
    "slots_below",
    "weight_of",
    "weight_slots",
]


@dataclass(frozen=True, slots=True)
class Slot:
    """One parameter's place."""

    owner: weakref.ref[nn.Module]
    name: str

    def get(self) -> Tensor | None:
        owner = self.owner()
        if owner is None:
            return None
        try:
            return owner._parameters.get(self.name)
        except AttributeError:  # a scripted module
            return parameters_of(owner).get(self.name)


def weight_slots(module: nn.Module) -> list[Slot]:
    """Where the module's weight lives; empty when it owns no parameter.

    That is the parameter of that name (of a parametrized module: its originals) or, for a module
    that has none, all the parameters it owns itself.
    """
    module = unwrapped(module)
    # Not by torch's is_parametrized: asking a module for an attribute that it has not is slow.
    is_plain = not isinstance(module, torch.jit.ScriptModule)
    parametrized = module._modules.get("parametrizations") if is_plain else None
    if isinstance(parametrized, nn.ModuleDict) and "weight" in parametrized._modules:
        originals = parametrized._modules["weight"]
        return weight_slots(originals) if originals is not None else []
    own = [name for name, value in parameters_of(module).items() if value is not None]
    return _slots(module, ["weight"] if "weight" in own else own)


def slots_below(module: nn.Module) -> list[Slot]:
    """Where every parameter of the module and of all below it lives."""
    return [slot for owner in module.modules() for slot in own_slots(owner)]


def own_slots(module: nn.Module) -> list[Slot]:
    """Where the module's own parameters live, also those that are None now."""
    return _slots(module, parameters_of(module))


def distinct(slots: Iterable[Slot]) -> list[Slot]:
    """Each parameter once, where it comes first: a tied one has several places."""
    found: dict[int, Slot] = {}
    for slot in slots:
        found.setdefault(id(slot.get()), slot)
    return [*found.values()]


def weight_of(module: nn.Module) -> Tensor | None:
    """The module's first weight, None when it has none."""
    slots = weight_slots(module)
    return slots[0].get() if slots else None


def current_values(slots: Iterable[Slot], among: set[int] | None) -> list[Tensor | None]:
    """The parameters, None for one that is gone or not among these identities."""
    values = [slot.get() for slot in slots]
    if among is None:
        return values
    return [value if id(value) in among else None for value in values]


def parameters_of(module: nn.Module) -> Mapping[str, Tensor | None]:
    """A module's own parameters; a scripted one keeps them in no dict."""
    if isinstance(module, torch.jit.ScriptModule):
        return dict(module.named_parameters(recurse=False))
    return module._parameters


def _slots(owner: nn.Module, names: Iterable[str]) -> list[Slot]:
    reference = weakref.ref(owner)
    return [Slot(reference, name) for name in names]


def n_elements(slots: Iterable[Slot]) -> int:
    """Elements of what lies there, those of lazy parameters not counted: they have no shape yet."""
    values = (slot.get() for slot in slots)
    return sum(
        value.numel()
        for value in values
        if value is not None and not isinstance(value, UninitializedParameter)
    )
