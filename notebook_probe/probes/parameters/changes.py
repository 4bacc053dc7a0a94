"""Changes by an optimizer's step: copies of weights before it, and differences after it."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence

import torch
from torch import Tensor

from notebook_probe.model.parameter_slots import Slot, current_values
from notebook_probe.probes.reading.attempt import attempt
from notebook_probe.probes.reading.cells import DifferenceCell, put_differences
from notebook_probe.probes.reading.plan import ReadingPlan
from notebook_probe.probes.step.frame import StepFrame
from notebook_probe.probes.step.probe import Probe
from notebook_probe.quantities.reduce.arrays import local
from notebook_probe.uninterrupted import uninterrupted

__all__ = ["ParameterChanges"]


class ParameterChanges:
    """The copies of all weights whose change is wanted, and the differences of those read together.

    Parameters
    ----------
    plans : dict
        Slot -> what is read of the parameter there.
    buffers : dict
        Where the copies lie, shared with those of other due sets.
    """

    def __init__(self, plans: dict[Slot, ReadingPlan], buffers: dict[Slot, Tensor]) -> None:
        self._buffers = buffers
        self._plans = [
            (slot, plan)
            for slot, plan in plans.items()
            if plan.differences or plan.wants("update", "after")
        ]
        self._slots = [slot for slot, _ in self._plans]
        self._places = {slot: place for place, slot in enumerate(self._slots)}
        self._together: list[tuple[int, DifferenceCell]] = [
            (place, plan.differences[0])
            for place, (_, plan) in enumerate(self._plans)
            if plan.differences and not plan.is_read_after
        ]
        self._copies: list[Tensor | None] = [None] * len(self._plans)
        self._sizes = [0] * len(self._plans)
        self._copy_s = self._measure_s = 0.0

    @property
    def is_idle(self) -> bool:
        """True if nothing is copied."""
        return not self._plans

    def copy(self, frame: StepFrame, owned: set[int]) -> None:
        """Copy the weights that the optimizer is about to change."""
        begun = time.perf_counter()
        weights = enumerate(current_values(self._slots, owned))
        there = [(place, weight) for place, weight in weights if weight is not None]
        try:
            with uninterrupted, torch.no_grad():
                values = [local(weight) for _, weight in there]
                copies = [self._buffer(p, v) for (p, _), v in zip(there, values, strict=True)]
                torch._foreach_copy_(copies, values)
            for (place, _), copied in zip(there, copies, strict=True):
                self._copies[place] = copied
        except Exception:  # one by one it shows whose it is
            for place, weight in there:
                attempt(frame, self._plans[place][1], "after", self._copy, place, weight)
        self._copy_s += time.perf_counter() - begun

    def _copy(self, place: int, weight: Tensor) -> None:
        value = local(weight.detach())
        self._copies[place] = self._buffer(place, value).copy_(value)

    def _buffer(self, place: int, value: Tensor) -> Tensor:
        slot = self._slots[place]
        buffer = self._buffers.get(slot)
        if buffer is None or buffer.shape != value.shape or buffer.dtype != value.dtype:
            # Outside of inference mode, because it will be written outside, too.
            with uninterrupted, torch.inference_mode(False):
                buffer = torch.empty_like(value)
            if value.is_cpu:  # an accelerator's allocator is quick, and its memory is scarce
                self._buffers[slot] = buffer
        self._sizes[place] = buffer.numel()
        return buffer

    def before(self, slot: Slot, now: Tensor) -> Tensor | None:
        """Return the weight before the step; None where it was another one."""
        place = self._places.get(slot)
        return self._before(place, now) if place is not None else None

    def _before(self, place: int, now: Tensor) -> Tensor | None:
        old, self._copies[place] = self._copies[place], None
        return old if old is not None and old.shape == now.shape else None

    def measure(self, frame: StepFrame, owned: set[int]) -> None:
        """Measure the differences that are all that is wanted of their parameters."""
        begun = time.perf_counter()
        cells, pairs = [], []
        for place, cell in self._together:
            new = self._slots[place].get()
            if new is None or id(new) not in owned:
                continue
            try:
                now = local(new)
                old = self._before(place, now)
            except Exception as error:  # training must survive any kind of parameter
                frame.blame_all(cell.probes, error)
                continue
            if old is not None:
                cells.append(cell)
                pairs.append((now, old))
        put_differences(frame, cells, pairs)
        self._measure_s += time.perf_counter() - begun

    def costs(self) -> Iterator[tuple[Sequence[Probe], float]]:
        """Seconds spent so far, with the probes that share them."""
        copied = [(place, plan.of("after")) for place, (_, plan) in enumerate(self._plans)]
        measured = [(place, cell.probes) for place, cell in self._together]
        yield from self._shares(copied, self._copy_s)
        yield from self._shares(measured, self._measure_s)

    def _shares(
        self, sharing: Sequence[tuple[int, Sequence[Probe]]], seconds: float
    ) -> Iterator[tuple[Sequence[Probe], float]]:
        total = max(1, sum(self._sizes[place] for place, _ in sharing))
        for place, probes in sharing:
            yield probes, seconds * self._sizes[place] / total
