"""Reading weights, gradients and updates round an optimizer's step.

``weight`` is the parameter of that name (of a parametrized module: the originals) or, for a
module that has none, all the parameters it owns itself. ``grad`` covers every parameter below the
module, each once. ``update`` is the exact difference the step made to ``weight``; its before-copy
lives in buffers that are kept from step to step. Parameters are looked up afresh at each reading
and never through attributes, which can have side effects.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterable
from dataclasses import dataclass, field

import torch
from torch import Tensor, nn
from torch.nn.utils.parametrize import is_parametrized
from torch.optim import Optimizer

from notebook_probe.probes.frame import StepFrame
from notebook_probe.probes.plan import PlacePlan
from notebook_probe.probes.probe import Probe
from notebook_probe.quantities.measure import measure, measure_difference
from notebook_probe.quantities.stat import Stat

__all__ = ["MOMENTS", "ParameterReader", "Slot", "weight_of", "weight_slots"]

MOMENTS = frozenset({"weight", "grad", "update"})


@dataclass(frozen=True, slots=True)
class Slot:
    """Where a parameter lives: its owner, held weakly, and its name there.

    The parameter itself may be replaced at any time.
    """

    owner: weakref.ref[nn.Module]
    name: str

    def get(self) -> Tensor | None:
        owner = self.owner()
        return None if owner is None else owner._parameters.get(self.name)


def weight_slots(module: nn.Module) -> list[Slot]:
    """Where the module's weight lives; empty when it owns no parameter."""
    if isinstance(module, torch.jit.ScriptModule):  # its containers are no dicts
        return []
    parametrized = module._modules["parametrizations"] if is_parametrized(module) else None
    if parametrized is not None and "weight" in parametrized._modules:
        originals = parametrized._modules["weight"]
        return weight_slots(originals) if originals is not None else []
    own = [name for name, value in module._parameters.items() if value is not None]
    return _slots_of(module, ["weight"] if "weight" in own else own)


def weight_of(module: nn.Module) -> Tensor | None:
    """The module's first weight, None when it has none."""
    slots = weight_slots(module)
    return slots[0].get() if slots else None


def _slots_of(owner: nn.Module, names: Iterable[str]) -> list[Slot]:
    reference = weakref.ref(owner)
    return [Slot(reference, name) for name in names]


def _below(module: nn.Module) -> list[Slot]:
    plain = (one for one in module.modules() if not isinstance(one, torch.jit.ScriptModule))
    return [slot for owner in plain for slot in _slots_of(owner, owner._parameters)]


@dataclass(slots=True)
class _Wanted:
    """What is read of one slot: the parts, for which places, and for which probes' functions."""

    slot: Slot
    parts: frozenset[str] = frozenset()
    places: list[str] = field(default_factory=list)
    probes: list[Probe] = field(default_factory=list)

    @property
    def all_places(self) -> set[str]:
        return {*self.places, *(probe.place for probe in self.probes)}


class ParameterReader:
    """The parameter readings of one model in one set of due probes.

    Parameters
    ----------
    model : nn.Module
        The watched model; not kept.
    plans : dict
        Place -> plan.
    buffers : dict
        The before-copies, shared with the readers of other due sets.
    """

    def __init__(
        self, model: nn.Module, plans: dict[str, PlacePlan], buffers: dict[Slot, Tensor]
    ) -> None:
        self._buffers = buffers
        self._weights: dict[Slot, _Wanted] = {}
        self._updates: dict[Slot, _Wanted] = {}
        self._gradients: list[tuple[str, list[Slot], frozenset[str]]] = []
        self._gradient_probes: list[tuple[Probe, list[Slot]]] = []
        self._before: list[tuple[_Wanted, Tensor]] = []
        self._both: list[tuple[Slot, _Wanted | None, _Wanted | None]] = []
        modules = dict(model.named_modules(remove_duplicate=False))
        for place, plan in plans.items():
            if plan.reads(*MOMENTS):
                self._add(place, plan, *_slots(modules, place))
        for slot in dict.fromkeys((*self._weights, *self._updates)):  # looked up once, not per step
            self._both.append((slot, self._weights.get(slot), self._updates.get(slot)))

    def _add(self, place: str, plan: PlacePlan, weights: list[Slot], below: list[Slot]) -> None:
        before = plan.probes.get("before", ())
        with_grad = [probe for probe in before if "grad" in probe.quantity.needs]
        self._gradient_probes += [(probe, weights) for probe in with_grad]
        if "grad" in plan.parts:
            self._gradients.append((place, below, plan.parts["grad"]))
        for slot in weights:
            of_weight = [probe for probe in before if probe not in with_grad]
            of_update = list(plan.probes.get("after", ()))
            _want(self._weights, slot, place, plan.parts.get("weight"), of_weight)
            _want(self._updates, slot, place, plan.parts.get("update"), of_update)

    def read_weights(self, optimizer: Optimizer | None, frame: StepFrame, first: bool) -> None:
        """Weights as this step's forward used them, and copies of those that will change.

        ``first`` is false for the second optimizer of a step: it has its weights copied, but what
        they were has been read.
        """
        owned = set() if optimizer is None else _owned(optimizer)
        self._before = []
        for slot, of_weight, of_update in self._both:
            weight = slot.get()
            if weight is None:
                continue
            if of_update is not None and id(weight) in owned:
                self._try_to_keep(of_update, weight, frame)
            if of_weight is not None and first:
                if of_weight.parts:
                    _share(frame, of_weight, "weight", measure(weight, of_weight.parts))
                for probe in of_weight.probes:
                    frame.call(probe, weight=weight)

    def read_gradients(self, optimizer: Optimizer | None, frame: StepFrame) -> None:
        """Gradients as they will be applied; of all parameters when no optimizer is given."""
        owned = None if optimizer is None else _owned(optimizer)
        known: dict[tuple[int, frozenset[str]], Stat] = {}
        for place, slots, parts in self._gradients:
            stats = []
            for parameter in _with_gradient(slots, owned):
                key = id(parameter), parts
                if key not in known and parameter.grad is not None:
                    known[key] = measure(parameter.grad, parts)
                stats.append(known[key])
            if stats:
                frame.set_stat(place, "grad", _merged(stats), id(optimizer))
        for probe, slots in self._gradient_probes:
            for parameter in _with_gradient(slots, owned):
                frame.call(probe, weight=parameter, grad=parameter.grad)

    def read_updates(self, frame: StepFrame) -> None:
        """What the step changed: after minus before, from the stored values."""
        before, self._before = self._before, []
        for wanted, old in before:
            new = wanted.slot.get()
            if new is None or new.shape != old.shape:
                continue
            for probe in wanted.probes:
                frame.call(probe, update=new.detach() - old, weight=old)
            if wanted.parts:
                _share(frame, wanted, "update", measure_difference(new, old, wanted.parts))

    def _try_to_keep(self, wanted: _Wanted, weight: Tensor, frame: StepFrame) -> None:
        try:
            self._keep(wanted, weight)
        except Exception as error:  # no memory, perhaps; the training needs it more
            self._before = []
            self._buffers.clear()
            for place in wanted.all_places:
                frame.fail(place, error, ("update",))

    def _keep(self, wanted: _Wanted, weight: Tensor) -> None:
        """Copy a weight for `read_updates`."""
        buffer, value = self._buffers.get(wanted.slot), weight.detach()
        if buffer is None or buffer.shape != value.shape or buffer.dtype != value.dtype:
            buffer = self._buffers[wanted.slot] = torch.empty_like(value)
        self._before.append((wanted, buffer.copy_(value)))


def _want(
    wanted: dict[Slot, _Wanted],
    slot: Slot,
    place: str,
    parts: frozenset[str] | None,
    probes: list[Probe],
) -> None:
    if parts is None and not probes:
        return
    one = wanted.setdefault(slot, _Wanted(slot))
    one.probes += probes
    if parts is not None:
        one.parts |= parts
        one.places.append(place)


def _share(frame: StepFrame, wanted: _Wanted, name: str, stat: Stat) -> None:
    """Tell every place that means this parameter."""
    for place in wanted.places:
        frame.add_stat(place, name, stat)


def _slots(modules: dict[str, nn.Module], place: str) -> tuple[list[Slot], list[Slot]]:
    """Slots of a place's weight and of everything below it."""
    if place in modules:
        return weight_slots(modules[place]), _below(modules[place])
    owner_path, _, name = place.rpartition(".")
    slots = _slots_of(modules[owner_path], [name])
    return slots, slots


def _owned(optimizer: Optimizer) -> set[int]:
    return {id(value) for group in optimizer.param_groups for value in group["params"]}


def _with_gradient(slots: Iterable[Slot], owned: set[int] | None) -> list[Tensor]:
    """The distinct parameters that have a gradient and belong to the optimizer."""
    values = {id(value): value for slot in slots if (value := slot.get()) is not None}
    return [
        value
        for key, value in values.items()
        if value.grad is not None and (owned is None or key in owned)
    ]


def _merged(stats: list[Stat]) -> Stat:
    merged = stats[0]
    for stat in stats[1:]:
        merged = merged.merge(stat)
    return merged
