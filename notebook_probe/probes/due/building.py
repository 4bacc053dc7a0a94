"""Building the readings of one set of due probes: what to read where, for thousands of them."""

from __future__ import annotations

import weakref
from dataclasses import dataclass
from typing import TypeAlias

from torch import nn

from notebook_probe.model.map import ModelMap
from notebook_probe.model.parameter_slots import Slot
from notebook_probe.probes.due.counts import counts
from notebook_probe.probes.due.readings import Readings
from notebook_probe.probes.due.sources import Sources
from notebook_probe.probes.parameters.reader import ParameterReader
from notebook_probe.probes.parameters.scalers import AT_UPDATE
from notebook_probe.probes.parameters.weight_copy import WeightCopy
from notebook_probe.probes.reading.cells import (
    CallCell,
    Cell,
    DifferenceCell,
    FunctionCell,
    WindowCell,
)
from notebook_probe.probes.reading.columns import by_stream
from notebook_probe.probes.reading.plan import ReadingPlan, is_of_calls
from notebook_probe.probes.reading.results import (
    CellSource,
    EachSource,
    FunctionResult,
    ParametersResult,
    Result,
    StateSource,
    SummaryResult,
)
from notebook_probe.probes.reading.windows import SummaryWindow, TensorWindow, WindowReading
from notebook_probe.probes.step.probe import Probe
from notebook_probe.probes.step.step_values import AT_END, step_source
from notebook_probe.quantities.define.quantity import Quantity
from notebook_probe.quantities.reduce.cost import is_light
from notebook_probe.quantities.reduce.features import (
    CALL,
    REPLAY,
    Feature,
    is_of_all,
    is_of_step,
    moment_of,
)
from notebook_probe.quantities.reduce.measure import STAT
from notebook_probe.quantities.reduce.reductions import Reduction
from notebook_probe.uncollected import uncollected

__all__ = ["readings"]

OF_WEIGHTS = {"weight", "module"}
"""Needs of quantities of weights alone, which use no gradient and no update."""

Places: TypeAlias = "dict[str, tuple[ReadingPlan, ...]]"

MeasuringCell: TypeAlias = "Cell | DifferenceCell"


@dataclass(slots=True, eq=False)
class _Reading:
    """The reading of one feature, wherever it is: worked out once for thousands of probes.

    Attributes
    ----------
    plans : dict
        Place -> the plans in which it is read; shared by readings of the same parameters.
    cells : dict
        Plan -> its cell; shared by all readings of the tensor by the same reduction.
    """

    feature: Feature
    reduction: Reduction
    cell: type[Cell | DifferenceCell]
    plans: Places
    cells: dict[ReadingPlan, MeasuringCell]
    of_all: bool
    of_used: bool


@dataclass(slots=True, eq=False)
class _Need:
    """A feature that a quantity needs, and what is read for it.

    Attributes
    ----------
    of_step : StateSource or None
        Source of a value of the step.
    is_read : bool
        The feature is what is read: nothing is derived from that.
    """

    feature: Feature
    of_step: StateSource | None
    reads: tuple[_Reading, ...]
    is_read: bool


class _Builder:
    """Builder of one set of readings: the same work is done once for all places of a quantity."""

    def __init__(self, model_map: ModelMap) -> None:
        self._map = model_map
        self._calls: dict[str, ReadingPlan] = {}
        self._parameters: dict[Slot, ReadingPlan] = {}
        self._batch = ReadingPlan()
        self._replay: dict[str, ReadingPlan] = {}
        self._needs: dict[tuple[Quantity, bool], tuple[_Need, ...]] = {}
        self._plans: dict[tuple[str, bool, bool], Places] = {}
        self._cells: dict[tuple[object, ...], dict[ReadingPlan, MeasuringCell]] = {}
        self._unions: dict[tuple[frozenset[str], str], frozenset[str]] = {}
        self._sources_of_cells: dict[tuple[int, ...], CellSource] = {}
        self._owners: list[tuple[weakref.ref[nn.Module], ReadingPlan]] = []
        self._windows: list[WindowReading] = []
        self._n_states = 0
        self._derived = Sources(self._new_state)

    def build(
        self, due: tuple[Probe, ...], sampled: tuple[Probe, ...], buffers: dict[Slot, WeightCopy]
    ) -> Readings:
        every = (*due, *sampled)
        quantities = {probe.quantity for probe in every}
        results = [self._result(probe) for probe in due]
        for probe in sampled:
            self._window(probe, is_due=False)
        counted = (*self._calls.values(), *self._parameters.values())
        for i, plan in enumerate(counted):
            plan.counter = i
        needs = {need for quantity in quantities for need in quantity.needs}
        return Readings(
            due=due,
            calls=self._calls,
            parameters=self._parameters,
            replay=self._replay,
            raw={s: p for s, p in self._parameters.items() if p.is_read_accumulating},
            batch=self._batch,
            batch_needs=frozenset(need for need in needs if moment_of(need) == "batch"),
            at_end=tuple(needs & AT_END.keys()),
            at_update={
                need: [probe for probe in every if need in probe.quantity.needs]
                for need in needs & AT_UPDATE.keys()
            },
            reader=ParameterReader(self._parameters, self._owners, buffers),
            streams=by_stream(results, counts(due, self._map, self._calls, self._parameters)),
            windows=tuple(self._windows),
            n_states=self._n_states,
            n_counts=len(counted),
            # Windows of summaries are given numbers, in the order of the steps, whenever that is.
            are_light=all(one.needs_numbers for one in self._windows)
            and all(is_light(one.cost) for one in quantities),
        )

    def _result(self, probe: Probe) -> Result:
        if probe.quantity.is_window:
            return FunctionResult(probe, self._window(probe, is_due=True))
        if probe.quantity.pools:
            return SummaryResult(probe, self._sources(probe))
        plans = self._plans_of_function(probe)
        cells = [FunctionCell(self._new_state(), probe) for _ in plans]
        for plan, cell in zip(plans.values(), cells, strict=True):
            self._call(plan, cell)
        if None in plans:
            return FunctionResult(probe, cells[0].index)
        return ParametersResult(probe, tuple(cell.index for cell in cells))

    def _window(self, probe: Probe, is_due: bool) -> int:
        """Plan the update of a window in this step, and return the index of its value."""
        index = self._new_state()
        if probe.quantity.pools:
            self._windows.append(SummaryWindow(probe, self._sources(probe), index, is_due))
            return index
        plans = self._plans_of_function(probe)
        for gone in probe.windows.keys() - plans.keys():  # the model has changed
            del probe.windows[gone]
        for slot, plan in plans.items():
            self._call(plan, WindowCell(index, probe, slot))
        self._windows.append(TensorWindow(probe, index, is_due))
        return index

    def _call(self, plan: ReadingPlan, function: FunctionCell) -> None:
        """Plan a call of a function with the tensors of a plan."""
        plan.functions.setdefault(function.probe.quantity.moment, []).append(function)
        plan.join(function.probe)

    # ---------------------------------------------------------------- summaries

    def _sources(self, probe: Probe) -> tuple[StateSource, ...]:
        """Plan the readings of a probe, and return the sources of its features."""
        key = probe.quantity, probe.per_call
        needs = self._needs.get(key)
        if needs is None:
            needs = self._needs[key] = tuple([self._need(*key, f) for f in key[0].features])
        found: list[StateSource] = []
        for need in needs:
            if need.of_step is not None:
                found.append(need.of_step)
            elif need.is_read:
                found.append(self._cell_source(self._read(probe, need.reads[0])))
            else:
                found.append(self._derived_source(probe, need))
        return tuple(found)

    def _derived_source(self, probe: Probe, need: _Need) -> StateSource:
        indices = {read.feature: self._read(probe, read) for read in need.reads}
        if not need.feature.each:
            cells = {read: self._cell_source(some) for read, some in indices.items()}
            return self._derived.source(need.feature, cells, probe.per_call)
        by_owner = zip(*(self._by_owner(probe, some) for some in indices.values()), strict=True)
        of_owners = (dict(zip(indices, of_one, strict=True)) for of_one in by_owner)
        return EachSource(
            tuple([self._derived.source(need.feature, one, False) for one in of_owners])
        )

    def _by_owner(self, probe: Probe, indices: tuple[int, ...]) -> tuple[CellSource, ...]:
        """Return the cells of each module's own parameters, in the order of the model."""
        owned: dict[object, list[int]] = {}
        of_used = _is_of_used(probe.quantity)
        for slot, index in zip(self._slots(probe.place, True, of_used), indices, strict=True):
            owned.setdefault(slot.owner, []).append(index)
        return tuple(CellSource(tuple(those)) for those in owned.values())

    def _cell_source(self, indices: tuple[int, ...]) -> CellSource:
        found = self._sources_of_cells.get(indices)
        if found is None:
            found = self._sources_of_cells[indices] = CellSource(indices)
        return found

    def _need(self, quantity: Quantity, per_call: bool, feature: Feature) -> _Need:
        if is_of_step(feature.tensor):
            return _Need(feature, step_source(feature.tensor), (), False)
        measured = self._derived.measured(feature)
        reads = tuple([self._reading(quantity, per_call, one) for one in measured])
        is_read = measured == (feature,) and not feature.each and self._derived.is_plain(feature)
        return _Need(feature, None, reads, is_read)

    def _reading(self, quantity: Quantity, per_call: bool, feature: Feature) -> _Reading:
        tensor, reduction = feature.tensor, self._derived.reduction(feature)
        of_all = of_used = False
        moment = moment_of(tensor)
        key: str = moment if moment in ("batch", "replay") else "call"
        if not (tensor in CALL or moment in ("batch", "replay")):
            of_all, of_used, key = is_of_all(feature), _is_of_used(quantity), "parameters"
        is_difference = tensor == "update" and reduction is STAT
        kind = DifferenceCell if is_difference else CallCell if per_call else Cell
        return _Reading(
            feature=feature,
            reduction=reduction,
            cell=kind,
            plans=self._plans.setdefault((key, of_all, of_used), {}),
            cells=self._cells.setdefault((per_call, tensor, reduction.parts), {}),
            of_all=of_all,
            of_used=of_used,
        )

    def _read(self, probe: Probe, read: _Reading) -> tuple[int, ...]:
        """Plan a reading for a probe; returns the indices of the cells that it fills."""
        plans = read.plans.get(probe.place)
        if plans is None:
            plans = read.plans[probe.place] = self._plans_of(probe.place, read)
        cells, part, indices = read.cells, read.feature.part, []
        for plan in plans:
            cell = cells.get(plan)
            if cell is None:
                cell = cells[plan] = self._new_cell(plan, read)
            elif part not in cell.wanted:
                cell.wanted = self._union(cell.wanted, part)
            plan.join(probe)
            cell.probes.append(probe)
            indices.append(cell.index)
        return tuple(indices)

    def _new_cell(self, plan: ReadingPlan, read: _Reading) -> MeasuringCell:
        wanted, tensor = self._union(frozenset(), read.feature.part), read.feature.tensor
        if read.cell is DifferenceCell:
            difference = DifferenceCell(self._new_state(), wanted)
            plan.differences.append(difference)
            return difference
        kind = CallCell if read.cell is CallCell else Cell
        cell = kind(self._new_state(), read.reduction, wanted)
        plan.cells.setdefault(tensor, []).append(cell)
        return cell

    def _union(self, wanted: frozenset[str], part: str) -> frozenset[str]:
        """Return one set for all cells of which the same parts are wanted."""
        key = wanted, part
        if key not in self._unions:
            self._unions[key] = wanted | {part}
        return self._unions[key]

    def _new_state(self) -> int:
        self._n_states += 1
        return self._n_states - 1

    # ---------------------------------------------------------------- places

    def _plans_of(self, place: str, read: _Reading) -> tuple[ReadingPlan, ...]:
        tensor = read.feature.tensor
        if tensor in REPLAY:
            return (self._replay.setdefault(place, ReadingPlan()),)
        if tensor in CALL:
            return (self._plan_of_call(place),)
        if moment_of(tensor) == "batch":
            return (self._batch,)
        return tuple(map(self._plan_of_slot, self._slots(place, read.of_all, read.of_used)))

    def _slots(self, place: str, of_all: bool, of_used: bool) -> tuple[Slot, ...]:
        """Return the slots of a place's parameters; for weights alone those of the used weight."""
        return (self._map.weights if of_used else self._map.slots)(place, below=of_all)

    def _plans_of_function(self, probe: Probe) -> dict[Slot | None, ReadingPlan]:
        """Return the plans that call a function: for calls of its module, or for each parameter."""
        if is_of_calls(probe):
            return {None: self._plan_of_call(probe.place)}
        if probe.quantity.moment == "batch":
            return {None: self._batch}
        if probe.quantity.moment == "replay":
            return {None: self._replay.setdefault(probe.place, ReadingPlan())}
        if probe.quantity.needs == ("module",):
            module = self._map.by_every_path.get(probe.place)
            plan = ReadingPlan()
            self._owners += [(weakref.ref(module), plan)] if module is not None else []
            return {None: plan}
        of_used = _is_of_used(probe.quantity)
        slots = self._slots(probe.place, probe.quantity.is_of_all, of_used)
        return {slot: self._plan_of_slot(slot) for slot in slots}

    def _plan_of_call(self, place: str) -> ReadingPlan:
        found = self._calls.get(place)
        if found is None:
            found = self._calls[place] = ReadingPlan()
        return found

    def _plan_of_slot(self, slot: Slot) -> ReadingPlan:
        found = self._parameters.get(slot)
        if found is None:
            found = self._parameters[slot] = ReadingPlan()
        return found


def _is_of_used(quantity: Quantity) -> bool:
    """Return whether a quantity is of weights alone, and so of those that a forward uses."""
    return "weight" in quantity.needs and set(quantity.needs) <= OF_WEIGHTS


@uncollected
def readings(
    model_map: ModelMap,
    due: tuple[Probe, ...],
    sampled: tuple[Probe, ...],
    buffers: dict[Slot, WeightCopy],
) -> Readings:
    """Work out what to read for the due probes, and for windows that take a sample only."""
    return _Builder(model_map).build(due, sampled, buffers)
