"""Reading weights, gradients and updates round an optimizer's step.

``weight`` is the parameter of that name (of a parametrized module: the originals) or, for a
module that has none, all the parameters it owns itself. ``grad`` covers every parameter below the
module, each once. ``update`` is the exact difference the step made to ``weight``; its before-copy
lives in buffers that are kept from step to step. Parameters are looked up afresh at each reading
and never through attributes, which can have side effects.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TypeAlias

import numpy as np
from torch import Tensor, nn
from torch.optim import Optimizer

from notebook_probe.probes.frame import StepFrame
from notebook_probe.probes.plan import PlacePlan
from notebook_probe.quantities.arrays import dense
from notebook_probe.quantities.stat import Stat, measure

__all__ = ["MOMENTS", "ParameterReader", "Slot", "weight_of", "weight_slots"]

Slot: TypeAlias = "tuple[nn.Module, str]"
"""Where a parameter lives: its owner and its name there; the parameter itself may be replaced."""

MOMENTS = frozenset({"weight", "grad", "update"})


def weight_slots(module: nn.Module) -> list[Slot]:
    """Where the module's weight lives; empty when it owns no parameter."""
    own = [(module, name) for name, value in module._parameters.items() if value is not None]
    parametrized = module._modules.get("parametrizations")
    if parametrized is not None and "weight" in parametrized._modules:
        originals = parametrized._modules["weight"]
        return weight_slots(originals) if originals is not None else []
    return [slot for slot in own if slot[1] == "weight"] or own


def weight_of(module: nn.Module) -> Tensor | None:
    """The module's first weight, None when it has none."""
    slots = weight_slots(module)
    return _get(slots[0]) if slots else None


def _get(slot: Slot) -> Tensor | None:
    owner, name = slot
    return owner._parameters.get(name)


def _below(module: nn.Module) -> list[Slot]:
    return [(owner, name) for owner in module.modules() for name in owner._parameters]


class ParameterReader:
    """The parameter readings of one model.

    Parameters
    ----------
    model : nn.Module
        The watched model; not kept.
    plans : dict
        Place -> plan, for the places of this model that read a parameter.
    buffers : dict
        The before-copies, shared with the readers of other due sets.
    """

    def __init__(
        self, model: nn.Module, plans: dict[str, PlacePlan], buffers: dict[Slot, Tensor]
    ) -> None:
        self._places = [
            (place, plan, *_slots(model, place))
            for place, plan in plans.items()
            if plan.reads(*MOMENTS)
        ]
        self._buffers = buffers
        self._before: list[tuple[str, PlacePlan, Slot, Tensor]] = []

    def read_weights(self, frame: StepFrame) -> None:
        """Weights as this step's forward used them; once per step."""
        for place, plan, weights, _ in self._places:
            parts = plan.parts.get("weight")
            for slot in weights:
                weight = _get(slot)
                if weight is None:
                    continue
                if parts is not None:
                    frame.add_stat(place, "weight", measure(weight, parts))
                for probe in plan.probes.get("before", ()):
                    if "grad" not in probe.quantity.needs:
                        frame.call(probe, weight=weight)

    def keep_weights(self, optimizer: Optimizer) -> None:
        """Copy the weights whose update is wanted and which this optimizer will change."""
        owned = _owned(optimizer)
        self._before = [
            (place, plan, slot, self._copied(slot, weight))
            for place, plan, weights, _ in self._places
            if "update" in plan.parts or "after" in plan.probes
            for slot in weights
            if (weight := _get(slot)) is not None and id(weight) in owned
        ]

    def read_gradients(self, optimizer: Optimizer | None, frame: StepFrame) -> None:
        """Gradients as they will be applied; of all parameters when no optimizer is given."""
        owned = None if optimizer is None else _owned(optimizer)
        for place, plan, weights, below in self._places:
            parts = plan.parts.get("grad")
            if parts is not None:
                stat = _pooled(_gradients(below, owned), parts)
                if stat is not None:
                    frame.set_stat(place, "grad", stat, id(optimizer))
            for probe in plan.probes.get("before", ()):
                if "grad" in probe.quantity.needs:
                    for slot in weights:
                        for gradient in _gradients([slot], owned):
                            frame.call(probe, weight=_get(slot), grad=gradient)

    def read_updates(self, frame: StepFrame) -> None:
        """What the step changed: after minus before, from the stored values."""
        before, self._before = self._before, []
        for place, plan, slot, old in before:
            new = _get(slot)
            if new is None or new.shape != old.shape:
                continue
            for probe in plan.probes.get("after", ()):
                frame.call(probe, update=new.detach() - old, weight=old)
            parts = plan.parts.get("update")
            if parts is not None:
                frame.add_stat(place, "update", measure(_difference(new, old), parts))

    def _copied(self, slot: Slot, weight: Tensor) -> Tensor:
        buffer = self._buffers.get(slot)
        value = weight.detach()
        if buffer is None or buffer.shape != value.shape or buffer.dtype != value.dtype:
            self._buffers[slot] = buffer = value.clone()
        else:
            buffer.copy_(value)
        return buffer


def _slots(model: nn.Module, place: str) -> tuple[list[Slot], list[Slot]]:
    """Slots of a place's weight and of everything below it."""
    owner_path, _, name = place.rpartition(".")
    modules = dict(model.named_modules(remove_duplicate=False))
    if place in modules:
        return weight_slots(modules[place]), _below(modules[place])
    slot = (modules[owner_path], name)
    return [slot], [slot]


def _owned(optimizer: Optimizer) -> set[int]:
    return {id(value) for group in optimizer.param_groups for value in group["params"]}


def _gradients(slots: Iterable[Slot], owned: set[int] | None) -> Iterator[Tensor]:
    seen: set[int] = set()
    for slot in slots:
        value = _get(slot)
        if value is None or value.grad is None or id(value) in seen:
            continue
        seen.add(id(value))
        if owned is None or id(value) in owned:
            yield value.grad


def _pooled(tensors: Iterator[Tensor], parts: frozenset[str]) -> Stat | None:
    pooled: Stat | None = None
    for tensor in tensors:
        stat = measure(tensor, parts)
        pooled = stat if pooled is None else pooled.merge(stat)
    return pooled


def _difference(new: Tensor, old: Tensor) -> Tensor:
    """``new - old`` in float32 or wider, written over ``old`` where both are plain arrays."""
    new_array, old_array = dense(new), dense(old)
    if new_array is not None and old_array is not None and new.stride() == old.stride():
        np.subtract(new_array, old_array, out=old_array)
        return old
    wide = new.detach().float() if new.dtype.itemsize < 4 else new.detach()
    return wide - old.to(wide.dtype)
