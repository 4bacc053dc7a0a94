"""Weights that a module computes from other parameters: pruned, normalized, parametrized.

torch has two ways. `torch.nn.utils.parametrize` adds a module to the layer that computes the weight
at each access; in the older one a hook writes it as a plain attribute before each forward.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn.utils.prune import BasePruningMethod
from torch.nn.utils.spectral_norm import SpectralNorm
from torch.nn.utils.weight_norm import WeightNorm

from notebook_probe.model.parameter_slots import WRITTEN_FROM, Slot, own_slots, weight_slots
from notebook_probe.model.unwrapped import unwrapped

__all__ = ["UsedWeight", "used_in", "weight_of"]

PARTS = ("_orig", "_g", "_v")
"""Suffixes of the parameters that such a hook computes a value from."""


@dataclass(frozen=True, slots=True)
class UsedWeight(Slot):
    """The weight that a module's forward uses, computed from the parameters that it is stored as.

    It is computed at each access and nothing in the model changes: a spectral norm takes no step of
    its power iteration.
    """

    def get(self) -> Tensor | None:
        module = self.owner()
        if module is None:
            return None
        with torch.no_grad():
            parametrized = module._modules.get("parametrizations")
            if isinstance(parametrized, nn.ModuleDict) and self.name in parametrized._modules:
                return _worked_out(parametrized._modules[self.name])
            return _by_hook(module, self.name)


def used_in(module: nn.Module) -> Iterator[tuple[Slot, UsedWeight]]:
    """Yield each parameter that a weight of the module is computed from, with that weight."""
    if isinstance(module, torch.jit.ScriptModule):
        return
    parametrized = module._modules.get("parametrizations")
    if isinstance(parametrized, nn.ModuleDict):
        for name, originals in parametrized._modules.items():
            for slot in own_slots(originals) if originals is not None else ():
                yield slot, UsedWeight(weakref.ref(module), name)
    for hook in module._forward_pre_hooks.values():
        name = _written_by(hook)
        for part in PARTS if name else ():
            if f"{name}{part}" in module._parameters:
                slot = Slot(weakref.ref(module), f"{name}{part}")
                yield slot, UsedWeight(slot.owner, name)


def weight_of(module: nn.Module) -> Tensor | None:
    """Return the module's first weight as its forward uses it, None if it has none."""
    module, slots = unwrapped(module), weight_slots(module)
    if not slots:
        return None
    slot = slots[0]
    is_plain = slot.owner() is module and slot.name not in WRITTEN_FROM
    return slot.get() if is_plain else dict(used_in(module)).get(slot, slot).get()


def _written_by(hook: object) -> str:
    """Return the name of the attribute that a hook writes before each forward, or ""."""
    if isinstance(hook, BasePruningMethod):
        return hook._tensor_name
    return hook.name if isinstance(hook, WeightNorm | SpectralNorm) else ""


def _by_hook(module: nn.Module, name: str) -> Tensor | None:
    """Compute what the hook writes before each forward."""
    for hook in module._forward_pre_hooks.values():
        if _written_by(hook) == name:
            if isinstance(hook, BasePruningMethod):
                return hook.apply_mask(module)
            if isinstance(hook, WeightNorm):
                return hook.compute_weight(module)
            if isinstance(hook, SpectralNorm):
                return hook.compute_weight(module, do_power_iteration=False)
    return None


def _worked_out(parametrization: nn.Module | None) -> Tensor | None:
    """Compute a parametrization in evaluation mode, in which it changes no buffer."""
    if parametrization is None:
        return None
    with _evaluated(parametrization), torch.random.fork_rng(devices=[]):
        value = parametrization.forward()
    return value if isinstance(value, Tensor) else None


@contextmanager
def _evaluated(module: nn.Module) -> Iterator[None]:
    modes = [(one, one.training) for one in module.modules()]
    try:
        for one, _ in modes:
            one.training = False
        yield
    finally:
        for one, mode in modes:
            one.training = mode
