"""What an optimizer's step changes: copies of weights before it, and what is told by them after."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence

import torch
from torch import Tensor

from notebook_probe.model.parameter_slots import Slot, current_values
from notebook_probe.probes.reading.attempt import attempt
from notebook_probe.probes.reading.cells import DifferenceCell
from notebook_probe.probes.reading.plan import Plan
from notebook_probe.probes.step.frame import StepFrame
from notebook_probe.probes.step.probe import Probe
from notebook_probe.quantities.reduce.arrays import local

__all__ = ["Changes"]


class Changes:
    """The copies of all weights whose change is wanted, and the differences of those read together.

    Parameters
    ----------
    plans : dict
        Slot -> what is read of the parameter there.
    buffers : dict
        Where the copies lie, shared with those of other due sets.
    """

    def __init__(self, plans: dict[Slot, Plan], buffers: dict[Slot, Tensor]) -> None:
        self._buffers = buffers
        self._plans = {
            slot: plan
            for slot, plan in plans.items()
            if plan.differences or plan.wants("update", "after")
        }
        self._slots = [*self._plans]
        self._together: list[tuple[Slot, DifferenceCell]] = [
            (slot, plan.differences[0])
            for slot, plan in self._plans.items()
            if plan.differences and not plan.is_read_after
        ]
        self._copies: dict[Slot, Tensor] = {}
        self._copy_s = self._measure_s = 0.0

    def __bool__(self) -> bool:
        return bool(self._slots)

    def copy(self, frame: StepFrame, owned: set[int]) -> None:
        """Copy the weights among those that the optimizer is about to change."""
        begun = time.perf_counter()
        weights = zip(self._slots, current_values(self._slots, owned), strict=True)
        there = {slot: weight for slot, weight in weights if weight is not None}
        try:
            with torch.no_grad():
                values = {slot: local(weight) for slot, weight in there.items()}
                copies = {slot: self._buffer(slot, value) for slot, value in values.items()}
                torch._foreach_copy_([*copies.values()], [*values.values()])
            self._copies |= copies
        except Exception:  # one by one it shows whose it is
            for slot, weight in there.items():
                attempt(frame, self._plans[slot], "after", self._copy, slot, weight)
        self._copy_s += time.perf_counter() - begun

    def _copy(self, slot: Slot, weight: Tensor) -> None:
        value = local(weight.detach())
        self._copies[slot] = self._buffer(slot, value).copy_(value)

    def _buffer(self, slot: Slot, value: Tensor) -> Tensor:
        buffer = self._buffers.get(slot)
        if buffer is None or buffer.shape != value.shape or buffer.dtype != value.dtype:
            with torch.inference_mode(False):  # it will be written outside of one too
                buffer = self._buffers[slot] = torch.empty_like(value, requires_grad=False)
        return buffer

    def take(self, slot: Slot, now: Tensor) -> Tensor | None:
        """The weight as it was before the step; None where it was another one."""
        old = self._copies.pop(slot, None)
        return old if old is not None and old.shape == now.shape else None

    def measure(self, frame: StepFrame, owned: set[int]) -> None:
        """Measure the differences that are all that is wanted of their parameters."""
        begun = time.perf_counter()
        for slot, cell in self._together:
            new = slot.get()
            if new is not None and id(new) in owned:
                now = local(new)
                before = self.take(slot, now)
                if before is not None:
                    cell.put(frame, now, before)
        self._measure_s += time.perf_counter() - begun

    def costs(self) -> Iterator[tuple[Sequence[Probe], float]]:
        """Seconds spent so far, with the probes that share them."""
        copied = [(plan.of("after"), slot) for slot, plan in self._plans.items()]
        yield from self._shares(copied, self._copy_s)
        yield from self._shares([(cell.probes, s) for s, cell in self._together], self._measure_s)

    def _shares(
        self, sharing: Sequence[tuple[Sequence[Probe], Slot]], seconds: float
    ) -> Iterator[tuple[Sequence[Probe], float]]:
        sizes = [
            buffer.numel() if (buffer := self._buffers.get(s)) is not None else 0
            for _, s in sharing
        ]
        total = max(1, sum(sizes))
        for (probes, _), size in zip(sharing, sizes, strict=True):
            yield probes, seconds * size / total
