"""Slots of parameters: an owner, referenced weakly, and a name.

The parameter itself may be replaced at any time, and is never read through an attribute, which can
have side effects, such as the power iteration of a spectral norm.
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
    "weight_slots",
]


WRITTEN_FROM = frozenset({"weight_orig", "weight_g", "weight_v"})
"""Parameters of torch's older utilities from which a hook computes the weight before a forward."""


@dataclass(frozen=True, slots=True)
class Slot:
    """Slot of one parameter."""

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
    """Return the slots of the module's weight; empty if it owns no parameter.

    That is the parameter of that name (of a parametrized, normalized or pruned module: those
    that it is computed from) or, for a module without one, all the parameters it owns itself.
    """
    module = unwrapped(module)
    # Not by torch's is_parametrized: asking a module for an attribute that it has not is slow.
    is_plain = not isinstance(module, torch.jit.ScriptModule)
    parametrized = module._modules.get("parametrizations") if is_plain else None
    if isinstance(parametrized, nn.ModuleDict) and "weight" in parametrized._modules:
        originals = parametrized._modules["weight"]
        return weight_slots(originals) if originals is not None else []
    own = [name for name, value in parameters_of(module).items() if value is not None]
    weights = [name for name in own if name == "weight" or name in WRITTEN_FROM]
    return _slots(module, weights or own)


def slots_below(module: nn.Module) -> list[Slot]:
    """Return the slots of every parameter of the module and of all below it."""
    return [slot for owner in module.modules() for slot in own_slots(owner)]


def own_slots(module: nn.Module) -> list[Slot]:
    """Return the slots of the module's own parameters, also those that are None now."""
    return _slots(module, parameters_of(module))


def distinct(slots: Iterable[Slot]) -> list[Slot]:
    """Return each parameter once, at its first place: a tied one has several places."""
    found: dict[int, Slot] = {}
    for slot in slots:
        found.setdefault(id(slot.get()), slot)
    return [*found.values()]


def current_values(slots: Iterable[Slot], among: set[int] | None) -> list[Tensor | None]:
    """Return the parameters, None for one that was collected or is not among these identities."""
    values: list[Tensor | None] = []
    for slot in slots:  # as slot.get(), for thousands of parameters at a step
        owner = slot.owner() if type(slot) is Slot else None
        own = owner.__dict__.get("_parameters") if owner is not None else None
        # A scripted module has something else there.
        value = own.get(slot.name) if isinstance(own, dict) else slot.get()
        values.append(value if among is None or id(value) in among else None)
    return values


def parameters_of(module: nn.Module) -> Mapping[str, Tensor | None]:
    """Return a module's own parameters; a scripted module has no dict of them."""
    if isinstance(module, torch.jit.ScriptModule):
        return dict(module.named_parameters(recurse=False))
    return module._parameters


def _slots(owner: nn.Module, names: Iterable[str]) -> list[Slot]:
    reference = weakref.ref(owner)
    return [Slot(reference, name) for name in names]


def n_elements(slots: Iterable[Slot]) -> int:
    """Return the number of elements, without those of lazy parameters, which have no shape yet."""
    values = (slot.get() for slot in slots)
    return sum(
        value.numel()
        for value in values
        if value is not None and not isinstance(value, UninitializedParameter)
    )
