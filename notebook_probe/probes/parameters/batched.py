"""Joint measurement of one tensor of many parameters, weights or gradients."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from itertools import repeat
from typing import Any, TypeAlias

from torch import Tensor

from notebook_probe.probes.reading.cells import Cell
from notebook_probe.probes.reading.copies import Copied, are_copied
from notebook_probe.probes.reading.plan import ReadingPlan
from notebook_probe.probes.step.frame import StepFrame
from notebook_probe.probes.step.probe import Probe
from notebook_probe.quantities.reduce.arrays import Floats
from notebook_probe.quantities.reduce.reductions import MeasureArrays, Reduction

__all__ = ["BatchedMeasure"]

_Kind: TypeAlias = "tuple[Reduction, frozenset[str]]"


class BatchedMeasure:
    """The cells of one tensor, in groups that one reduction measures in one go.

    Parameters
    ----------
    tensor : str
        ``"weight"`` or ``"grad"``.
    plans : sequence of ReadingPlan
        One per parameter, in the order in which `measure` is given their tensors.
    """

    def __init__(self, tensor: str, plans: Sequence[ReadingPlan]) -> None:
        self._cells = [plan.cells.get(tensor, []) for plan in plans]
        groups: dict[_Kind, list[tuple[int, Cell]]] = {}
        for place, cells in enumerate(self._cells):
            for cell in cells:
                groups.setdefault((cell.reduction, cell.wanted), []).append((place, cell))
        self._groups = [_BatchedParameters(*kind, cells) for kind, cells in groups.items()]

    def measure(
        self,
        frame: StepFrame,
        tensors: Sequence[Tensor | None],
        arrays: Sequence[Floats | None] = (),
    ) -> None:
        """Measure the existing tensors, in place of what was measured before.

        Parameters
        ----------
        frame : StepFrame
        tensors : sequence of Tensor or None
        arrays : sequence of array or None
            Flat copies of some of them, which are quicker to read.
        """
        for group in self._groups:
            group.measure(frame, tensors, arrays)

    def clear(self, frame: StepFrame, place: int) -> None:
        """Discard earlier measurements of one parameter."""
        for cell in self._cells[place]:
            cell.clear(frame)

    def costs(self) -> Iterator[tuple[Sequence[Probe], float]]:
        """Seconds spent so far, with the probes that share them."""
        for group in self._groups:
            yield from group.costs()


class _BatchedParameters:
    def __init__(
        self, reduction: Reduction, wanted: frozenset[str], cells: list[tuple[int, Cell]]
    ) -> None:
        self._reduction, self._wanted, self._cells = reduction, wanted, cells
        self._is_dear = not reduction.of_copies.isdisjoint(wanted)
        self._sizes: dict[Cell, int] = {}
        self._spare: dict[Cell, Tensor] = {}
        self._seconds = 0.0

    def measure(
        self,
        frame: StepFrame,
        tensors: Sequence[Tensor | None],
        arrays: Sequence[Floats | None],
    ) -> None:
        begun = time.perf_counter()
        if arrays and self._reduction.of_arrays is not None:
            self._measure_arrays(frame, arrays, self._reduction.of_arrays)
            left = [(place, cell) for place, cell in self._cells if arrays[place] is None]
        else:
            left = self._cells
        if left:
            self._measure_tensors(frame, tensors, left)
        self._seconds += time.perf_counter() - begun

    def _measure_arrays(
        self, frame: StepFrame, arrays: Sequence[Floats | None], of_arrays: MeasureArrays
    ) -> None:
        found = [(cell, arrays[place]) for place, cell in self._cells]
        there = [array for _, array in found if array is not None]
        cells = [cell for cell, array in found if array is not None]
        states = frame.states
        for cell, state in zip(cells, of_arrays(there, self._wanted), strict=True):
            states[cell.index] = state
        if cells and cells[0] not in self._sizes:
            self._sizes |= {cell: one.size for cell, one in zip(cells, there, strict=True)}

    def _measure_tensors(
        self,
        frame: StepFrame,
        tensors: Sequence[Tensor | None],
        members: Sequence[tuple[int, Cell]],
    ) -> None:
        cells, there = [], []
        for place, cell in members:
            tensor = tensors[place]
            if tensor is not None:
                cells.append(cell)
                there.append(tensor)
        try:
            if self._is_dear and are_copied(there):
                states: list[Any] = [*map(Copied, cells, there, repeat(self._spare))]
                frame.has_copies = True
            else:
                states = self._reduction.measure_all(there, self._wanted)
        except Exception:  # one by one it shows whose it is
            for cell, tensor in zip(cells, there, strict=True):
                cell.put(frame, tensor)
        else:
            for cell, state, tensor in zip(cells, states, there, strict=True):
                frame.states[cell.index] = state
                if not tensor.is_cpu:
                    frame.on_device = True
        if len(self._sizes) < len(self._cells):
            self._sizes |= {cell: one.numel() for cell, one in zip(cells, there, strict=True)}

    def costs(self) -> Iterator[tuple[Sequence[Probe], float]]:
        sizes = dict(self._sizes)
        total = max(1, sum(sizes.values()))
        for cell, size in sizes.items():
            yield cell.probes, self._seconds * size / total
