"""What one set of due probes reads in a step, and how values are made of it; built once."""

from __future__ import annotations

import operator
import weakref
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import chain
from typing import Any

from torch import Tensor, nn

from notebook_probe.model.map import ModelMap
from notebook_probe.model.parameter_slots import Slot
from notebook_probe.probes.due.sources import Sources
from notebook_probe.probes.parameters.reader import ParameterReader
from notebook_probe.probes.parameters.scalers import AT_UPDATE
from notebook_probe.probes.reading.cells import (
    CallCell,
    Cell,
    DifferenceCell,
    FunctionCell,
    WindowCell,
)
from notebook_probe.probes.reading.columns import StreamResults, by_stream
from notebook_probe.probes.reading.plan import Plan, is_of_calls
from notebook_probe.probes.reading.results import (
    CellSource,
    Count,
    EachSource,
    FunctionResult,
    ParametersResult,
    Result,
    StateSource,
    SummaryResult,
)
from notebook_probe.probes.reading.windows import SummaryWindow, TensorWindow, WindowReading
from notebook_probe.probes.step.frame import StepFrame
from notebook_probe.probes.step.measured import StreamValues
from notebook_probe.probes.step.probe import Probe
from notebook_probe.probes.step.step_values import AT_END, step_source
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

__all__ = ["DueFrame", "Readings", "readings"]

ARRIVING = ("grad_output", "grad_input")
"""What a backward brings to a call."""


@dataclass(slots=True, eq=False, weakref_slot=True)
class Readings:
    """The plans of one set of due probes.

    Attributes
    ----------
    due : tuple of Probe
    calls : dict
        Module path -> what is read in its calls.
    parameters : dict
        Slot -> what is read of the parameter.
    replay : dict
        Place -> what is read when the model is run once more.
    raw : dict
        Those of the parameters that are read at each accumulation.
    batch : Plan
        What is read of a batch when the loop hands it over.
    batch_needs : frozenset of str
        What of a batch is needed at all.
    at_end : tuple of str
        Values of the step that are read when it ends.
    at_update : dict
        Values of the step that are read when an optimizer has stepped, and the probes of them.
    reader : ParameterReader
    streams : tuple of StreamResults
        What values are made of for each stream.
    windows : tuple of WindowReading
        Of due probes and of those that only take in a sample.
    n_states, n_counts : int
        The size of a frame.
    are_light : bool
        What a frame holds is small, and values are made of it in no time.
    n_steps : int
        Steps that were read so.
    """

    due: tuple[Probe, ...]
    calls: dict[str, Plan]
    parameters: dict[Slot, Plan]
    replay: dict[str, Plan]
    raw: dict[Slot, Plan]
    batch: Plan
    batch_needs: frozenset[str]
    at_end: tuple[str, ...]
    at_update: dict[str, list[Probe]]
    reader: ParameterReader
    streams: tuple[StreamResults, ...]
    windows: tuple[WindowReading, ...]
    n_states: int
    n_counts: int
    are_light: bool
    n_steps: int = 0

    @property
    def n_rows(self) -> int:
        """Rows of the record that a step comes to."""
        return len(self.streams)

    def frame(self, step: int) -> DueFrame:
        """A frame for one step's readings."""
        self.n_steps += 1
        return DueFrame(step, self)

    @property
    def of_gradients(self) -> frozenset[int]:
        """Which states are of what a backward brings to calls."""
        read = [(plan, tensor) for plan in self.calls.values() for tensor in ARRIVING]
        cells = chain(*(plan.cells.get(tensor, ()) for plan, tensor in read))
        functions = chain(*(plan.at(moment_of(tensor)) for plan, tensor in read))
        return frozenset([*(cell.index for cell in cells), *(one.index for one in functions)])

    def pool(self, frame: StepFrame, part: StepFrame, follows: bool) -> None:
        """Pool what a part of the step has read of calls with what the frame has of them.

        The part is of later calls if it ``follows``, else of the same.
        """
        for plan in self.calls.values():
            n_before = frame.calls[plan.counter] if follows else 0
            for cell in chain(*plan.cells.values()):
                cell.pool(frame, part, n_before)
            for function in chain(*plan.functions.values()):
                function.pool(frame, part, n_before)
        frame.arrivals = [*map(operator.add, frame.arrivals, part.arrivals)]

    def end_windows(self, frame: StepFrame, on_host: bool) -> None:
        """Have windows take in the step: those that need its numbers on the host, or the others."""
        for window in self.windows:
            if window.needs_numbers == on_host:
                window.end(frame)

    def look_at_windows(self, frame: StepFrame) -> None:
        """Make the values that windows had if the step ended now; nothing else changes."""
        for window in self.windows:
            window.look(frame)

    def values(self, frame: StepFrame, is_final: bool) -> list[StreamValues]:
        """The values of the due probes, which count those that are final."""
        return [stream.values(frame, is_final) for stream in self.streams]

    def seconds(self) -> dict[Probe, float]:
        """Time spent for each probe; what several share counts equally."""
        spent: defaultdict[Probe, float] = defaultdict(float)
        for sharing, seconds in self.reader.costs():
            for probe in sharing:
                spent[probe] += seconds / len(sharing)
        plans = (self.calls, self.parameters, self.replay, {"": self.batch})
        for plan in (plan for some in plans for plan in some.values()):
            for moment, seconds in [*plan.seconds.items()]:
                sharing = plan.of(moment)
                for probe in sharing:
                    spent[probe] += seconds / len(sharing)
        return spent


class DueFrame(StepFrame):
    """The frame of a step in which probes are due, with all that is read in it."""

    __slots__ = ("readings",)

    def __init__(self, step: int, readings: Readings) -> None:
        super().__init__(step, readings, readings.n_states, readings.n_counts)
        self.readings = readings


def readings(
    model_map: ModelMap,
    due: tuple[Probe, ...],
    sampled: tuple[Probe, ...],
    buffers: dict[Slot, Tensor],
) -> Readings:
    """Work out what to read for the due probes, and for windows that take a sample only."""
    return _Builder(model_map).build(due, sampled, buffers)


class _Builder:
    def __init__(self, model_map: ModelMap) -> None:
        self._map = model_map
        self._calls: dict[str, Plan] = {}
        self._parameters: dict[Slot, Plan] = {}
        self._batch = Plan()
        self._replay: dict[str, Plan] = {}
        self._shared: dict[tuple[object, ...], int] = {}
        self._known: dict[tuple[Probe, Feature], tuple[int, ...]] = {}
        self._wanted: dict[int, set[str]] = {}
        self._owners: list[tuple[weakref.ref[nn.Module], Plan]] = []
        self._windows: list[WindowReading] = []
        self._n_states = 0
        self._derived = Sources(self._new_state)

    def build(
        self, due: tuple[Probe, ...], sampled: tuple[Probe, ...], buffers: dict[Slot, Tensor]
    ) -> Readings:
        every = (*due, *sampled)
        for probe in every:  # all parts of a reduction must be known before its cell is made
            for feature in probe.quantity.features:
                for read in self._derived.measured(feature):
                    self._known[probe, read] = self._indices(probe, read)
        results = tuple(self._result(probe) for probe in due)
        for probe in sampled:
            self._window(probe, is_due=False)
        counted = (*self._calls.values(), *self._parameters.values())
        for i, plan in enumerate(counted):
            plan.counter = i
        needs = {need for probe in every for need in probe.quantity.needs}
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
            streams=by_stream(results, self._counts(due)),
            windows=tuple(self._windows),
            n_states=self._n_states,
            n_counts=len(counted),
            are_light=not self._windows and all(is_light(probe.quantity.cost) for probe in due),
        )

    def _counts(self, due: tuple[Probe, ...]) -> list[Count]:
        counts: dict[tuple[str, str, str], Count] = {}
        for probe in due:
            key = probe.stream, probe.count, probe.place
            if key in counts:
                continue
            if probe.quantity.is_of_calls:
                indices: tuple[int, ...] = (self._calls[probe.place].counter,)
            elif probe.accumulations:
                below = self._map.slots(probe.place, below=True)
                plans = [self._parameters[slot] for slot in below if slot in self._parameters]
                indices = tuple([plan.counter for plan in plans])
            else:
                continue
            counts[key] = Count(*key, indices)
        return [*counts.values()]

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
        """Have a window take in this step; returns where its value will be."""
        index = self._new_state()
        if probe.quantity.pools:
            self._windows.append(SummaryWindow(probe, self._sources(probe), index, is_due))
            return index
        for slot, plan in self._plans_of_function(probe).items():
            self._call(plan, WindowCell(index, probe, slot))
        self._windows.append(TensorWindow(probe, index, is_due))
        return index

    def _sources(self, probe: Probe) -> tuple[StateSource, ...]:
        return tuple([self._source(probe, feature) for feature in probe.quantity.features])

    def _source(self, probe: Probe, feature: Feature) -> StateSource:
        if is_of_step(feature.tensor):
            return step_source(feature.tensor)
        cells = {}
        for read in self._derived.measured(feature):
            cells[read] = self._known[probe, read]
            self._fill(probe, read, cells[read])
        if not feature.each:
            at_place = {read: CellSource(indices) for read, indices in cells.items()}
            return self._derived.source(feature, at_place, probe.per_call)
        by_owner = zip(*(self._by_owner(probe, indices) for indices in cells.values()), strict=True)
        of_owners = (dict(zip(cells, of_one, strict=True)) for of_one in by_owner)
        return EachSource(tuple([self._derived.source(feature, one, False) for one in of_owners]))

    def _by_owner(self, probe: Probe, indices: tuple[int, ...]) -> tuple[CellSource, ...]:
        """The cells of each module's own parameters, in the order of the model."""
        owned: dict[object, list[int]] = {}
        for slot, index in zip(self._slots(probe, of_all=True), indices, strict=True):
            owned.setdefault(slot.owner, []).append(index)
        return tuple(CellSource(tuple(those)) for those in owned.values())

    def _call(self, plan: Plan, function: FunctionCell) -> None:
        """Have a function called with the tensors of a plan."""
        plan.functions.setdefault(function.probe.quantity.moment, []).append(function)
        plan.join(function.probe)

    def _fill(self, probe: Probe, feature: Feature, indices: tuple[int, ...]) -> None:
        """Have a feature's cells filled; makes those that are new."""
        reduction = self._derived.reduction(feature)
        for plan, index in zip(self._plans(probe, feature), indices, strict=True):
            plan.join(probe)
            self._cell(plan, probe, feature, reduction, index).probes.append(probe)

    def _cell(
        self, plan: Plan, probe: Probe, feature: Feature, reduction: Reduction, index: int
    ) -> Cell | DifferenceCell:
        """The plan's cell of that index, made when it is new."""
        cells = plan.cells.setdefault(feature.tensor, [])
        known: Iterable[Cell | DifferenceCell] = (*cells, *plan.differences)
        for cell in known:
            if cell.index == index:
                return cell
        wanted = frozenset(self._wanted[index])
        if feature.tensor == "update" and reduction is STAT:
            difference = DifferenceCell(index, wanted)
            plan.differences.append(difference)
            return difference
        made = (CallCell if probe.per_call else Cell)(index, reduction, wanted)
        cells.append(made)
        return made

    def _indices(self, probe: Probe, feature: Feature) -> tuple[int, ...]:
        """Indices of the cells that make up a feature; none where it is no summary."""
        if not feature.part:
            return ()
        reduction = self._derived.reduction(feature)
        places = self._places(probe, feature)
        return tuple([self._index(place, probe.per_call, feature, reduction) for place in places])

    def _index(
        self, place: str | Slot | Plan, per_call: bool, feature: Feature, reduction: Reduction
    ) -> int:
        key = (place, per_call, feature.tensor, reduction.parts)
        if key not in self._shared:
            self._shared[key] = self._new_state()
        index = self._shared[key]
        self._wanted.setdefault(index, set()).add(feature.part)
        return index

    def _new_state(self) -> int:
        self._n_states += 1
        return self._n_states - 1

    def _places(self, probe: Probe, feature: Feature) -> tuple[str | Slot | Plan, ...]:
        if feature.tensor in CALL or feature.tensor in REPLAY:
            return (probe.place,)
        if moment_of(feature.tensor) == "batch":
            return (self._batch,)
        return self._slots(probe, is_of_all(feature))

    def _slots(self, probe: Probe, of_all: bool) -> tuple[Slot, ...]:
        return self._map.slots(probe.place, below=of_all)

    def _plans(self, probe: Probe, feature: Feature) -> list[Plan]:
        if feature.tensor in REPLAY:
            return [self._replay.setdefault(probe.place, Plan())]
        return [self._plan(place) for place in self._places(probe, feature)]

    def _plans_of_function(self, probe: Probe) -> dict[Slot | None, Plan]:
        """Where a function is called: in calls of its module, or for one parameter each."""
        if is_of_calls(probe):
            return {None: self._plan(probe.place)}
        if probe.quantity.moment == "batch":
            return {None: self._batch}
        if probe.quantity.moment == "replay":
            return {None: self._replay.setdefault(probe.place, Plan())}
        if probe.quantity.needs == ("module",):
            module = self._map.by_every_path.get(probe.place)
            plan = Plan()
            self._owners += [(weakref.ref(module), plan)] if module is not None else []
            return {None: plan}
        return {slot: self._plan(slot) for slot in self._slots(probe, probe.quantity.is_of_all)}

    def _plan(self, place: str | Slot | Plan) -> Plan:
        if isinstance(place, Plan):
            return place
        plans: dict[Any, Plan] = self._parameters if isinstance(place, Slot) else self._calls
        if place not in plans:
            plans[place] = Plan()
        return plans[place]
