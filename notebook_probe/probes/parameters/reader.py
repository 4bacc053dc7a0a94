"""Readings of weights, gradients, updates and optimizer state around an optimizer's step.

Parameters are looked up afresh at each reading, through their `Slot`. A parameter is read once
per step, whatever number of probes and places mean it.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterator, Sequence
from typing import Any

from torch import Tensor, nn
from torch.optim import Optimizer

from notebook_probe.model.parameter_slots import Slot, current_values
from notebook_probe.probes.parameters.batched import BatchedMeasure
from notebook_probe.probes.parameters.changes import ParameterChanges
from notebook_probe.probes.parameters.gradients import GradientReader
from notebook_probe.probes.parameters.weight_copy import WeightCopy
from notebook_probe.probes.reading.attempt import attempt
from notebook_probe.probes.reading.options import Group, as_tensor, options_in, owned_by
from notebook_probe.probes.reading.plan import ReadingPlan
from notebook_probe.probes.step.frame import StepFrame
from notebook_probe.probes.step.plain_mode import plain_mode
from notebook_probe.probes.step.probe import Probe
from notebook_probe.quantities.reduce.arrays import Floats, local, wide

__all__ = ["ParameterReader"]


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
        plans: dict[Slot, ReadingPlan],
        owners: list[tuple[weakref.ref[nn.Module], ReadingPlan]],
        buffers: dict[Slot, WeightCopy],
    ) -> None:
        self._owners = owners
        self._before = [(s, p) for s, p in plans.items() if p.wants("weight", "before")]
        self._slots = [slot for slot, _ in self._before]
        self._weights = BatchedMeasure("weight", [plan for _, plan in self._before])
        self._one_by_one = [
            place for place, (_, plan) in enumerate(self._before) if plan.at("before")
        ]
        self._gradients = GradientReader(plans)
        self._changes = ParameterChanges(plans, buffers)
        self._reads_changes = not self._changes.is_idle
        self._copied_at = [self._changes.place(slot) for slot in self._slots]
        self._after = [(slot, plan) for slot, plan in plans.items() if plan.is_read_after]
        self.reads_before = bool(self._before or owners) or self._reads_changes
        """Something is read, or copied, before an optimizer's step."""
        self.reads_gradients = not self._gradients.is_idle
        self.reads_after = self._reads_changes or bool(self._after)

    def read_before(self, frame: StepFrame, weights: set[int] | None, changing: set[int]) -> None:
        """Read weights as this step's forward used them, and copy those that will change.

        Parameters
        ----------
        weights, changing : set of int
            Identities of the parameters to be read and to be copied; None means all.
        """
        if self._before or self._reads_changes:
            plain_mode(self._read_weights, frame, weights, changing)
        if self._owners and weights is None:
            plain_mode(self._read_modules, frame)

    def _read_weights(self, frame: StepFrame, owned: set[int] | None, changing: set[int]) -> None:
        copied = self._changes.copy(frame, changing) if self._reads_changes else []
        if not self._before:
            return
        weights = current_values(self._slots, owned)
        arrays: list[Floats | None] = []
        if copied and owned is None:  # else only some are read again, and others are copied, too
            arrays = [copied[place] if place >= 0 else None for place in self._copied_at]
        self._weights.measure(frame, weights, arrays)
        for place in self._one_by_one:
            (slot, plan), weight = self._before[place], weights[place]
            if weight is not None:
                attempt(frame, plan, "before", self._call_of_weight, frame, plan, slot, weight)

    def _read_modules(self, frame: StepFrame) -> None:
        for reference, plan in self._owners:
            module = reference()
            if module is not None:
                attempt(frame, plan, "before", self._read_module, frame, plan, module)

    def read_gradients(self, frame: StepFrame, optimizer: Optimizer | None) -> None:
        """Gradients as they will be applied, and the options with which; see `GradientReader`."""
        if self.reads_gradients:
            plain_mode(self._gradients.read, frame, optimizer)

    def read_after(self, frame: StepFrame, optimizers: Sequence[Optimizer]) -> None:
        """Read what the step changed, after minus before from the stored values, and its state.

        Parameters
        ----------
        frame : StepFrame
        optimizers : sequence of Optimizer
            The one whose step it was, and behind it those that have stepped within its step.
        """
        if self.reads_after:
            plain_mode(self._read_all_after, frame, optimizers)

    def _read_all_after(self, frame: StepFrame, optimizers: Sequence[Optimizer]) -> None:
        owned = set[int]().union(*map(owned_by, optimizers))
        self._changes.measure(frame, owned)
        groups: dict[int, Group] = {}
        for optimizer in optimizers if self._after else ():
            groups |= self._gradients.groups(optimizer)
        for slot, plan in self._after:
            new = slot.get()
            if new is not None and id(new) in owned:
                given = _states(new, optimizers) | options_in(groups.get(id(new), {}), plan.options)
                attempt(frame, plan, "after", self._read_after, frame, plan, slot, new, given)

    def costs(self) -> Iterator[tuple[Sequence[Probe], float]]:
        """Yield the seconds of what is measured together, with the probes that share them."""
        yield from self._weights.costs()
        yield from self._gradients.costs()
        yield from self._changes.costs()

    def _read_module(self, frame: StepFrame, plan: ReadingPlan, module: nn.Module) -> None:
        for function in plan.at("before"):
            function.put(frame, {"module": module})

    def _call_of_weight(
        self, frame: StepFrame, plan: ReadingPlan, slot: Slot, weight: Tensor
    ) -> None:
        for function in plan.at("before"):
            function.put(frame, {"weight": weight, "module": slot.owner()})

    def _read_after(
        self,
        frame: StepFrame,
        plan: ReadingPlan,
        slot: Slot,
        new: Tensor,
        given: dict[str, Any],
    ) -> None:
        now = local(new)
        before = self._changes.before(slot, now)
        given["grad"] = self._gradients.take(slot)
        if before is not None and plan.wants("update", "after"):
            given["update"] = wide(now) - wide(before)
        given |= {"weight": now if before is None else before, "module": slot.owner()}
        _call_after(frame, plan, given)
        if before is not None:
            for difference in plan.differences:  # these write over the old values
                difference.put(frame, now, before)


def _states(parameter: Tensor, optimizers: Sequence[Optimizer]) -> dict[str, Any]:
    """Return the state that optimizers have of a parameter, by the features' names."""
    states: dict[str, Any] = {}
    for optimizer in optimizers:
        states |= optimizer.state.get(parameter, {})
    return {f"state.{key}": as_tensor(value) for key, value in states.items()}


def _call_after(frame: StepFrame, plan: ReadingPlan, given: dict[str, Any]) -> None:
    for tensor in plan.after_cells:
        for cell in plan.cells[tensor]:
            if given.get(tensor) is not None:
                cell.put(frame, given[tensor])
    for function in plan.at("after"):
        function.put(frame, given)
