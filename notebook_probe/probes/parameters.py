"""Reading weights, gradients, updates and optimizer state round an optimizer's step.

Parameters are looked up afresh at each reading, through their `Slot`. A parameter is read once
per step, whatever number of probes and places mean it.
"""

from __future__ import annotations

import time
import weakref
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from notebook_probe.probes.apart import apart
from notebook_probe.probes.frame import StepFrame
from notebook_probe.probes.options import Group, groups_of, options_in
from notebook_probe.probes.plan import Plan
from notebook_probe.probes.probe import Probe
from notebook_probe.probes.slots import Slot
from notebook_probe.probes.together import Together
from notebook_probe.quantities.arrays import local, wide
from notebook_probe.quantities.features import Moment

__all__ = ["ParameterReader", "owned_by"]


def owned_by(optimizer: Optimizer) -> set[int]:
    """Identities of an optimizer's parameters."""
    return {id(value) for group in optimizer.param_groups for value in group["params"]}


class ParameterReader:
    """The parameter readings of one model in one set of due probes.

    Parameters
    ----------
    plans : dict
        Slot -> what is read of the parameter there.
    owners : list of (weak reference, Plan)
        Modules that are looked at as they are.
    buffers : dict
        The before-copies, shared with the readers of other due sets.
    """

    def __init__(
        self,
        plans: dict[Slot, Plan],
        owners: list[tuple[weakref.ref[nn.Module], Plan]],
        buffers: dict[Slot, Tensor],
    ) -> None:
        self._buffers, self._owners = buffers, owners
        self._before = [(s, p) for s, p in plans.items() if p.wants("weight", "before")]
        self._weights = Together("weight", [plan for _, plan in self._before])
        self._ready = [(s, p) for s, p in plans.items() if p.is_read_when_ready]
        self._grads = Together("grad", [plan for _, plan in self._ready])
        self._changing = [
            (s, p) for s, p in plans.items() if p.differences or p.wants("update", "after")
        ]
        self._after = [
            (s, p) for s, p in plans.items() if p.differences or p.at("after") or p.after_cells
        ]
        self._has_options = any(plan.options for plan in plans.values())
        self._kept: dict[Slot, Tensor] = {}
        self._kept_gradients: dict[Slot, Tensor] = {}

    def read_before(self, frame: StepFrame, weights: set[int] | None, changing: set[int]) -> None:
        """Weights as this step's forward used them, and copies of those that will change.

        Parameters
        ----------
        weights, changing : set of int
            Identities of the parameters to be read and to be copied; None means all.
        """
        apart(self._read_weights, frame, weights)
        if weights is None:
            apart(self._read_modules, frame)
        apart(self._keep_weights, frame, changing)

    def _read_weights(self, frame: StepFrame, owned: set[int] | None) -> None:
        weights = _there(self._before, owned)
        self._weights.measure(frame, weights)
        for (slot, plan), weight in zip(self._before, weights, strict=True):
            if weight is not None and plan.at("before"):
                _timed(self._call_of_weight, "before", frame, plan, slot, weight)

    def _read_modules(self, frame: StepFrame) -> None:
        for reference, plan in self._owners:
            module = reference()
            if module is not None:
                _timed(self._read_module, "before", frame, plan, module)

    def _keep_weights(self, frame: StepFrame, owned: set[int]) -> None:
        for slot, plan in self._changing:
            weight = slot.get()
            if weight is not None and id(weight) in owned:
                _timed(self._keep, "after", frame, plan, slot, weight)

    def read_gradients(self, frame: StepFrame, optimizer: Optimizer | None) -> None:
        """Gradients as they will be applied, in place of those a closure's earlier run left.

        Parameters
        ----------
        optimizer : Optimizer, optional
            Which will apply them; without one all there are, and no options.
        """
        apart(self._read_gradients, frame, optimizer)

    def _read_gradients(self, frame: StepFrame, optimizer: Optimizer | None) -> None:
        weights = _there(self._ready, owned_by(optimizer) if optimizer is not None else None)
        gradients = [None if weight is None else weight.grad for weight in weights]
        scale = getattr(optimizer, "grad_scale", None)  # of a fused optimizer, while it steps
        if scale is not None:
            gradients = [g if g is None else g.detach() / scale.to(g.device) for g in gradients]
        self._grads.measure(frame, gradients)
        groups = self._groups(optimizer)
        for place, (slot, plan) in enumerate(self._ready):
            weight, gradient = weights[place], gradients[place]
            if weight is None:
                continue
            if gradient is None:
                self._grads.clear(frame, place)
            if plan.options or plan.at("ready") or plan.keeps_gradient:
                group = groups.get(id(weight), {})
                _timed(self._read_ready, "ready", frame, plan, slot, weight, gradient, group)

    def _groups(self, optimizer: Optimizer | None) -> dict[int, Group]:
        return groups_of(optimizer) if self._has_options and optimizer is not None else {}

    def read_after(self, frame: StepFrame, optimizer: Optimizer) -> None:
        """What the step changed, after minus before from the stored values, and its state."""
        apart(self._read_all_after, frame, optimizer)

    def _read_all_after(self, frame: StepFrame, optimizer: Optimizer) -> None:
        owned, groups = owned_by(optimizer), self._groups(optimizer)
        for slot, plan in self._after:
            new = slot.get()
            if new is not None and id(new) in owned:
                old, state = self._kept.pop(slot, None), optimizer.state.get(new, {})
                given: dict[str, Any] = {f"state.{key}": _tensor(v) for key, v in state.items()}
                given |= options_in(groups.get(id(new), {}), plan.options)
                given["grad"] = self._kept_gradients.pop(slot, None)
                _timed(self._read_after, "after", frame, plan, slot, new, old, given)

    def costs(self) -> Iterator[tuple[Sequence[Probe], float]]:
        """Seconds spent on what is measured together, with the probes that share them."""
        yield from self._weights.costs()
        yield from self._grads.costs()

    def _read_module(self, frame: StepFrame, plan: Plan, module: nn.Module) -> None:
        for function in plan.at("before"):
            function.put(frame, {"module": module})

    def _call_of_weight(self, frame: StepFrame, plan: Plan, slot: Slot, weight: Tensor) -> None:
        for function in plan.at("before"):
            function.put(frame, {"weight": weight, "module": slot.owner()})

    def _read_ready(
        self,
        frame: StepFrame,
        plan: Plan,
        slot: Slot,
        weight: Tensor,
        gradient: Tensor | None,
        group: Group,
    ) -> None:
        options = options_in(group, plan.options)
        for option, value in options.items():
            for cell in plan.cells.get(option, ()):
                number = _tensor(value)
                if number is not None:
                    cell.put(frame, number)
        given = {"grad": gradient, "weight": weight, "module": slot.owner(), **options}
        for function in plan.at("ready"):
            function.put(frame, given)
        if gradient is not None and plan.keeps_gradient:  # an optimizer may write over it
            self._kept_gradients[slot] = local(gradient.detach()).clone()

    def _read_after(
        self,
        frame: StepFrame,
        plan: Plan,
        slot: Slot,
        new: Tensor,
        old: Tensor | None,
        given: dict[str, Any],
    ) -> None:
        new = local(new)
        before = old if old is not None and old.shape == new.shape else None
        if before is not None and plan.wants("update", "after"):
            given["update"] = wide(new) - wide(before)
        for tensor in plan.after_cells:
            for cell in plan.cells[tensor]:
                if given.get(tensor) is not None:
                    cell.put(frame, given[tensor])
        beside = {"weight": new if before is None else before, "module": slot.owner()}
        for function in plan.at("after"):
            function.put(frame, {**given, **beside})
        if before is not None:
            for difference in plan.differences:  # these write over the old values
                difference.put(frame, new, before)

    def _keep(self, frame: StepFrame, plan: Plan, slot: Slot, weight: Tensor) -> None:
        """Copy a weight for `_read_change`."""
        buffer, value = self._buffers.get(slot), local(weight.detach())
        if buffer is None or buffer.shape != value.shape or buffer.dtype != value.dtype:
            with torch.inference_mode(False):  # it will be written outside of one too
                buffer = self._buffers[slot] = torch.empty_like(value)
        self._kept[slot] = buffer.copy_(value)


def _there(places: list[tuple[Slot, Plan]], owned: set[int] | None) -> list[Tensor | None]:
    """The parameters, None for one that is gone or not among the owned."""
    weights = [slot.get() for slot, _ in places]
    if owned is None:
        return weights
    return [weight if id(weight) in owned else None for weight in weights]


def _timed(
    read: Callable[..., None], moment: Moment, frame: StepFrame, plan: Plan, *given: Any
) -> None:
    """Read one parameter; whatever it is, the optimizer's step goes on."""
    begun = time.perf_counter()
    try:
        read(frame, plan, *given)
    except Exception as error:
        frame.blame_all(plan.of(moment), error)
    plan.spent(moment, time.perf_counter() - begun)


def _tensor(value: Any) -> Tensor | None:
    """A state or an option as a tensor: optimizers keep plain numbers too."""
    if isinstance(value, Tensor):
        return value
    if isinstance(value, int | float):
        return torch.tensor(float(value))
    return torch.tensor(value) if isinstance(value, tuple) else None
