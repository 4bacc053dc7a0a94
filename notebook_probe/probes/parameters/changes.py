"""Changes by an optimizer's step: copies of weights before it, and differences after it."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from typing import TypeAlias

import torch
from torch import Tensor, nn

from notebook_probe.model.parameter_slots import Slot, current_values
from notebook_probe.probes.parameters.weight_copy import WeightCopy
from notebook_probe.probes.reading.attempt import attempt
from notebook_probe.probes.reading.cells import DifferenceCell, put_differences
from notebook_probe.probes.reading.plan import ReadingPlan
from notebook_probe.probes.step.frame import StepFrame
from notebook_probe.probes.step.probe import Probe
from notebook_probe.quantities.reduce.arrays import Floats, local
from notebook_probe.quantities.reduce.measure import measure_changes
from notebook_probe.uninterrupted import uninterrupted

__all__ = ["ParameterChanges"]

_Changed: TypeAlias = "tuple[DifferenceCell, Tensor, Tensor, Floats]"
"""Cell of a change, the weight now, its copy from before, and a flat view of that."""

TOGETHER = 2**16
"""Elements of small weights that are subtracted in one call; a larger one is alone."""


class ParameterChanges:
    """The copies of all weights whose change is wanted, and the differences of those read together.

    Parameters
    ----------
    plans : dict
        Slot -> what is read of the parameter there.
    buffers : dict
        The memory of the copies, shared with those of other due sets.
    """

    def __init__(self, plans: dict[Slot, ReadingPlan], buffers: dict[Slot, WeightCopy]) -> None:
        self._buffers = buffers
        self._plans = [
            (slot, plan)
            for slot, plan in plans.items()
            if plan.differences or plan.wants("update", "after")
        ]
        self._slots = [slot for slot, _ in self._plans]
        self._places = {slot: place for place, slot in enumerate(self._slots)}
        self._together: dict[frozenset[str], list[tuple[int, DifferenceCell]]] = {}
        """Differences that are all that is wanted of their parameters, by the parts of them."""
        for place, (_, plan) in enumerate(self._plans):
            if plan.differences and not plan.is_read_after:
                cell = plan.differences[0]
                self._together.setdefault(cell.wanted, []).append((place, cell))
        self._known: list[WeightCopy | None] = [None] * len(self._plans)
        """Buffers by place, once they were used."""
        self._copies: list[WeightCopy | None] = [None] * len(self._plans)
        self._sizes = [0] * len(self._plans)
        self._copy_s = self._measure_s = 0.0

    @property
    def is_idle(self) -> bool:
        """True if nothing is copied."""
        return not self._plans

    def copy(self, frame: StepFrame, owned: set[int]) -> list[Floats | None]:
        """Copy the weights that the optimizer is about to change.

        Returns
        -------
        list of array or None
            Flat views of the copies of plain weights on the host, for those who read them as well:
            by `place`.
        """
        begun = time.perf_counter()
        weights = enumerate(current_values(self._slots, owned))
        there = [(place, weight) for place, weight in weights if weight is not None]
        arrays: list[Floats | None] = [None] * len(self._slots)
        try:
            with uninterrupted, torch.no_grad():
                values = [w if type(w) is nn.Parameter else local(w) for _, w in there]
                copies = [self._buffer(p, v) for (p, _), v in zip(there, values, strict=True)]
                torch._foreach_copy_([copy.tensor for copy in copies], values)
            for (place, weight), value, copied in zip(there, values, copies, strict=True):
                self._copies[place] = copied
                arrays[place] = copied.array if value is weight else None
        except Exception:  # one by one it shows whose it is
            arrays = [None] * len(self._slots)
            for place, weight in there:
                attempt(frame, self._plans[place][1], "after", self._copy, place, weight)
        self._copy_s += time.perf_counter() - begun
        return arrays

    def place(self, slot: Slot) -> int:
        """Return the number of a parameter that is copied; -1 for any other."""
        return self._places.get(slot, -1)

    def _copy(self, place: int, weight: Tensor) -> None:
        value = local(weight.detach())
        copied = self._buffer(place, value)
        copied.tensor.copy_(value)
        self._copies[place] = copied

    def _buffer(self, place: int, value: Tensor) -> WeightCopy:
        known = self._known[place]  # at every step: a slot takes long to look up
        if known is not None and known.suits(value):
            return known
        buffer = self._buffers.get(self._slots[place])
        if buffer is None or not buffer.suits(value):
            buffer = WeightCopy.like(value)
        self._sizes[place] = buffer.n
        if value.is_cpu:  # an accelerator's allocator is quick, and its memory is scarce
            self._buffers[self._slots[place]] = self._known[place] = buffer
        return buffer

    def before(self, slot: Slot, now: Tensor) -> Tensor | None:
        """Return the weight before the step; None where it was another one."""
        place = self._places.get(slot)
        if place is None:
            return None
        old, self._copies[place] = self._copies[place], None
        return old.tensor if old is not None and old.tensor.shape == now.shape else None

    def measure(self, frame: StepFrame, owned: set[int]) -> None:
        """Measure the differences that are all that is wanted of their parameters."""
        begun = time.perf_counter()
        for wanted, members in self._together.items():
            self._measure_together(frame, owned, wanted, members)
        self._measure_s += time.perf_counter() - begun

    def _measure_together(
        self,
        frame: StepFrame,
        owned: set[int],
        wanted: frozenset[str],
        members: Sequence[tuple[int, DifferenceCell]],
    ) -> None:
        """Measure differences of which the same is wanted: those that numpy sees all together."""
        cells, pairs, changed = [], [], list[_Changed]()
        news = current_values([self._slots[place] for place, _ in members], owned)
        for (place, cell), new in zip(members, news, strict=True):
            if new is None:
                continue
            try:
                now = new if type(new) is nn.Parameter else local(new)
                old, self._copies[place] = self._copies[place], None
                is_same = old is not None and old.tensor.shape == now.shape
            except Exception as error:  # training must survive any kind of parameter
                frame.blame_all(cell.probes, error)
                continue
            if old is None or not is_same:
                continue
            if old.array is not None and now.is_cpu and now.dtype is torch.float32:
                changed.append((cell, now, old.tensor, old.array))
            else:
                cells.append(cell)
                pairs.append((now, old.tensor))
        if changed:
            _put_changes(frame, wanted, changed)
        put_differences(frame, cells, pairs)

    def costs(self) -> Iterator[tuple[Sequence[Probe], float]]:
        """Seconds spent so far, with the probes that share them."""
        copied = [(place, plan.of("after")) for place, (_, plan) in enumerate(self._plans)]
        measured = [
            (place, cell.probes) for those in self._together.values() for place, cell in those
        ]
        yield from self._shares(copied, self._copy_s)
        yield from self._shares(measured, self._measure_s)

    def _shares(
        self, sharing: Sequence[tuple[int, Sequence[Probe]]], seconds: float
    ) -> Iterator[tuple[Sequence[Probe], float]]:
        total = max(1, sum(self._sizes[place] for place, _ in sharing))
        for place, probes in sharing:
            yield probes, seconds * self._sizes[place] / total


def _put_changes(frame: StepFrame, wanted: frozenset[str], changed: Sequence[_Changed]) -> None:
    for some in _in_cache(changed):
        cells, news, olds, arrays = zip(*some, strict=True)
        try:
            stats = measure_changes(news, olds, arrays, wanted)
        except Exception as error:  # the copies may be half written over
            for cell in cells:
                frame.blame_all(cell.probes, error)
            continue
        for cell, stat in zip(cells, stats, strict=True):
            frame.states[cell.index] = stat


def _in_cache(changed: Sequence[_Changed]) -> Iterator[list[_Changed]]:
    """Yield as many at a time as are still in cache when they are read after the subtraction."""
    some, n = list[_Changed](), 0
    for one in changed:
        size = one[-1].size
        if some and n + size > TOGETHER:
            yield some
            some, n = [], 0
        some.append(one)
        n += size
    if some:
        yield some
