"""Cells: where the readings of one step add up, one per summary of a tensor at a place.

A cell knows how to measure a tensor and how to merge what several calls, micro-batches or tensors
gave; what it has measured is in the step's frame, so that a cell serves every step.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from torch import Tensor, nn

from notebook_probe.errors import QuantityError, UnreadableError
from notebook_probe.model.parameter_slots import Slot
from notebook_probe.probes.step.part import FramePart
from notebook_probe.probes.step.probe import Probe
from notebook_probe.quantities.reduce.arrays import local
from notebook_probe.quantities.reduce.attention_scores import Attention
from notebook_probe.quantities.reduce.guard import Guard
from notebook_probe.quantities.reduce.measure import measure_difference, measure_differences
from notebook_probe.quantities.reduce.reductions import Reduction

__all__ = [
    "NOTHING_COMMON",
    "CallCell",
    "Cell",
    "DifferenceCell",
    "FunctionCell",
    "WindowCell",
    "put_differences",
]

Readable: TypeAlias = "Tensor | Attention"

MAX_NUMBERED_CALLS = 64
"""Maximum number of separate calls in one step; further ones are pooled in the last."""


class _NothingCommon:
    """Marker for calls of a step that cannot be pooled: merged with anything, it is a gap."""

    __slots__ = ()

    def merge(self, other: object) -> _NothingCommon:
        return self


NOTHING_COMMON = _NothingCommon()


class Cell:
    """Reduction of one tensor, pooled over a step; an error affects its probes only.

    Parameters
    ----------
    index : int
        Index in the frame's states.
    reduction : Reduction
        Gives a state of a tensor; states merge.
    wanted : frozenset of str
        The parts that are needed of it.
    """

    __slots__ = ("_measure", "first_only", "index", "probes", "reduction", "wanted")

    def __init__(self, index: int, reduction: Reduction, wanted: frozenset[str]) -> None:
        self.index, self.reduction, self.wanted = index, reduction, wanted
        self._measure, self.first_only = reduction.measure, reduction.first_only
        self.probes: list[Probe] = []

    def add(self, frame: FramePart, tensor: Readable, module: nn.Module | None, call: int) -> None:
        """Measure a tensor, and pool it with what this step has measured before."""
        try:
            state, states = self._measure(tensor, module, self.wanted), frame.states
            old = states[self.index]
            states[self.index] = state if old is None else self._merged(frame, old, state)
            frame.on_device |= not tensor.is_cpu
        except Exception as error:  # training must survive any kind of tensor
            frame.blame_all(self.probes, error)

    def take(self, frame: FramePart, state: Any, on_device: bool) -> None:
        """Pool a state that a compiled graph has measured."""
        old = frame.states[self.index]
        frame.states[self.index] = state if old is None else self._merged(frame, old, state)
        frame.on_device |= on_device

    def _merged(self, frame: FramePart, old: Any, state: Any) -> Any:
        """Merge states; a module that is used twice may get other channels each time: no error."""
        if state is NOTHING_COMMON:
            return state
        try:
            return old.merge(state)
        except QuantityError as error:
            gap = UnreadableError(f"{error}; per_call=True keeps them apart")
            frame.blame_all(self.probes, gap)
            return NOTHING_COMMON

    def pool(self, frame: FramePart, part: FramePart, n_before: int) -> None:
        """Pool what a part of the step has measured, ``n_before`` calls after its beginning."""
        old, state = frame.states[self.index], part.states[self.index]
        if state is None:
            return
        try:
            frame.states[self.index] = self._pooled(frame, old, state, n_before)
        except Exception as error:  # as above
            frame.blame_all(self.probes, error)

    def _pooled(self, frame: FramePart, old: Any, state: Any, n_before: int) -> Any:
        return state if old is None else self._merged(frame, old, state)

    def put(self, frame: FramePart, tensor: Tensor) -> None:
        """Measure a parameter's tensor, in place of what was measured before."""
        try:
            frame.states[self.index] = self._measure(tensor, None, self.wanted)
            frame.on_device |= not tensor.is_cpu
        except Exception as error:  # as above
            frame.blame_all(self.probes, error)

    def clear(self, frame: FramePart) -> None:
        """Discard earlier measurements."""
        frame.states[self.index] = None


class CallCell(Cell):
    """Cell that keeps the calls of a step apart."""

    __slots__ = ()

    def add(self, frame: FramePart, tensor: Readable, module: nn.Module | None, call: int) -> None:
        if call < 0:  # a recomputation under a checkpoint: the call is unknown
            return
        try:
            state = self._measure(tensor, module, self.wanted)
            states, call = frame.states[self.index] or {}, min(call, MAX_NUMBERED_CALLS - 1)
            states[call] = states[call].merge(state) if call in states else state
            frame.states[self.index] = states
            frame.on_device |= not tensor.is_cpu
        except Exception as error:  # as above
            frame.blame_all(self.probes, error)

    def _pooled(self, frame: FramePart, old: Any, state: Any, n_before: int) -> Any:
        states = dict(old or {})
        for call, one in state.items():
            number = min(n_before + call, MAX_NUMBERED_CALLS - 1)
            states[number] = states[number].merge(one) if number in states else one
        return states


class DifferenceCell:
    """The Stat of the difference between two tensors, which need not exist as a tensor."""

    __slots__ = ("index", "probes", "wanted")

    def __init__(self, index: int, wanted: frozenset[str]) -> None:
        self.index, self.wanted = index, wanted
        self.probes: list[Probe] = []

    def put(self, frame: FramePart, new: Tensor, old: Tensor) -> None:
        """Measure ``new - old``; ``old`` may be written over."""
        try:
            frame.states[self.index] = measure_difference(new, old, self.wanted)
            frame.on_device |= not new.is_cpu
        except Exception as error:  # as above
            frame.blame_all(self.probes, error)


def put_differences(
    frame: FramePart, cells: Sequence[DifferenceCell], pairs: Sequence[tuple[Tensor, Tensor]]
) -> None:
    """Measure what has changed of many parameters: those on an accelerator together.

    On a CPU, which reads one tensor after the other anyway, each by itself: so an error is its own.
    """
    alike: dict[frozenset[str], list[int]] = {}
    for place, (cell, (new, old)) in enumerate(zip(cells, pairs, strict=True)):
        if new.is_cpu:
            cell.put(frame, new, old)
        else:
            alike.setdefault(cell.wanted, []).append(place)
    for wanted, places in alike.items():
        news, olds = zip(*(pairs[place] for place in places), strict=True)
        try:
            states = measure_differences(news, olds, wanted)
        except Exception as error:  # as above
            for place in places:
                frame.blame_all(cells[place].probes, error)
        else:
            frame.on_device = True
            for place, state in zip(places, states, strict=True):
                frame.states[cells[place].index] = state


class FunctionCell:
    """A quantity's function called on the tensors themselves, and the values it has given."""

    __slots__ = ("_function", "_guard", "_is_tried", "_of_batch", "index", "names", "probe")

    def __init__(self, index: int, probe: Probe) -> None:
        self.index, self.probe = index, probe
        self._function: Callable[..., Any] = probe.quantity.function
        self._guard = Guard(probe.quantity.name)
        self._is_tried = False
        self.names = tuple((f.name, f.tensor) for f in probe.quantity.features)
        self._of_batch = probe.quantity.is_of_batch

    def call(self, frame: FramePart, tensors: dict[str, Any], call: int = 0) -> None:
        """Call it if all it needs is there; an error is the probe's alone."""
        probe = self.probe
        if self._of_batch:
            tensors = {**tensors, **frame.batch}
        given = [tensors.get(tensor) for _, tensor in self.names]
        if probe.disabled or any(one is None for one in given) or (probe.per_call and call < 0):
            return
        given = [local(one.detach()) if isinstance(one, Tensor) else one for one in given]
        try:
            self._keep(frame, self._guarded(given), call)
        except Exception as error:  # a user's quantity must never reach training
            frame.blame(probe, error)

    def pool(self, frame: FramePart, part: FramePart, n_before: int) -> None:
        """Keep its results for a part of the step, a number of calls after its beginning."""
        shift = n_before if self.probe.per_call else 0
        pooled = {**(frame.states[self.index] or {})}
        for call, values in (part.states[self.index] or {}).items():
            number = min(shift + call, MAX_NUMBERED_CALLS - 1)
            pooled[number] = [*pooled.get(number, ()), *values]
        frame.states[self.index] = pooled or None

    def put(self, frame: FramePart, tensors: dict[str, Any]) -> None:
        """Call it for a parameter, in place of its earlier result."""
        self.clear(frame)
        self.call(frame, tensors)

    def _keep(self, frame: FramePart, returned: Any, call: int) -> None:
        value = self.probe.quantity.value_of(returned)
        if isinstance(value, Tensor):
            frame.on_device = True
        values = frame.states[self.index]
        if values is None:
            values = frame.states[self.index] = {}
        key = min(call, MAX_NUMBERED_CALLS - 1) if self.probe.per_call else 0
        values.setdefault(key, []).append(value)

    def clear(self, frame: FramePart) -> None:
        """Discard its results for this step."""
        frame.states[self.index] = None

    def _guarded(self, given: list[Any]) -> Any:
        """Call the function; at first on copies."""
        on_copies, self._is_tried = not self._is_tried, True
        return self._guard(self._function, given, on_copies=on_copies)


class WindowCell(FunctionCell):
    """Window that receives the tensors themselves; it keeps what it needs of them."""

    __slots__ = ()

    def __init__(self, index: int, probe: Probe, slot: Slot | None) -> None:
        super().__init__(index, probe)
        self._function = probe.window_of(slot).update

    def _keep(self, frame: FramePart, returned: Any, call: int) -> None:
        """Note that `update` returned; its value is ignored."""
        self.probe.went_well(frame.step)

    def clear(self, frame: FramePart) -> None:
        """Discard nothing: what it received remains."""
