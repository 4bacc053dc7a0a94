"""Readings of one run inside compiled graphs: what graphs read, when, and where it goes.

A graph has two variants, one that reads all there is to read and one that reads nothing. One
attribute decides, between two steps, which of them runs; both stay compiled.
"""

from __future__ import annotations

import hashlib
import itertools
import time
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import CodeType
from typing import Any, Protocol

import torch
from torch import Tensor, nn
from torch._C._dynamo import eval_frame
from torch._dynamo import config

from notebook_probe.probes.due.readings import DueFrame, Readings
from notebook_probe.probes.inside.handed_out import CallSums, HandedOut
from notebook_probe.probes.inside.model_parts import ModelParts
from notebook_probe.probes.inside.plain_graphs import guard_plain_graphs
from notebook_probe.probes.inside.traced import (
    COUNTED,
    GraphTap,
    Sums,
    SumsOrigin,
    can_trace,
    keepers,
    reading_text,
)
from notebook_probe.probes.reading.cells import Cell
from notebook_probe.probes.reading.plan import ReadingPlan
from notebook_probe.probes.step.compiled import compiled_region, has_compiled, n_compiled
from notebook_probe.probes.step.passes import BackwardPasses
from notebook_probe.probes.step.probe import Probe
from notebook_probe.quantities.reduce.device_stat import NOTHING
from notebook_probe.quantities.reduce.features import Moment
from notebook_probe.quantities.reduce.measure import STAT
from notebook_probe.quantities.reduce.reductions import Derived, parts

__all__ = ["GraphReadings", "can_read"]

READ = ("output", "input", "grad_output")
"""Tensors whose sums a graph can hand out."""

SPARE = 2
"""Variants that are left to the user's own recompilations of a function."""


class StepHolder(Protocol):
    """Protocol of the owner of the open step.

    `StepSequence`, which imports this module, is one.
    """

    has_to_prepare: bool
    """Each update is to be noted, and the step after it prepared."""

    @property
    def frame(self) -> DueFrame | None:
        """The open step."""

    @property
    def has_ended(self) -> bool:
        """True if the update of the open step has happened: what comes is of the next one."""


def can_read(probe: Probe) -> bool:
    """Return whether graphs can hand out all that a probe of calls needs."""
    features = probe.quantity.features
    return not probe.per_call and all(
        feature.tensor in READ and _is_traced(feature.part) for feature in features
    )


def _is_traced(part: str) -> bool:
    """Return whether graphs can hand out what a part is, or is derived from."""
    if not part:
        return False
    found = parts[part]
    if isinstance(found, Derived):
        return all(map(_is_traced, found.needs))
    return found.traced is not None


def _traceable(plan: ReadingPlan, tensor: str) -> frozenset[str]:
    """Return the parts that a graph can hand out of a tensor of calls; empty if none.

    Those of several calls that are kept apart cannot be: a graph does not number its calls.
    """
    return frozenset(itertools.chain(*(cell.wanted for cell in _cells(plan, tensor))))


def _cells(plan: ReadingPlan, tensor: str) -> Iterator[Cell]:
    for cell in plan.cells.get(tensor, ()):
        if type(cell) is Cell and cell.reduction.traced is not None:
            yield cell


class GraphReadings:
    """Readings of one model in its compiled graphs.

    Parameters
    ----------
    model : nn.Module
        Held weakly.
    steps : StepHolder, optional
        Held weakly; without one, every gradient is of a step that has not begun.

    Attributes
    ----------
    wanted : bool
        Calls of compiled modules are read in their graphs.
    variant : str
        What the graphs of the coming step read, as a digest; empty for nothing.
    is_full : bool
        A function has so many variants that no other one is compiled for readings.
    refusal : str
        Error with which a backend refused to compile readings; empty if none did.
    n_ambiguous : int
        Steps of which nothing was taken, as some calls had a backward and others had none.
    """

    def __init__(self, model: nn.Module, steps: StepHolder | None = None) -> None:
        self.wanted = self.is_full = False
        self.n_ambiguous, self.variant, self.refusal = 0, "", ""
        self.training: Callable[[], nn.Module | None] = weakref.ref(model)
        self._steps = weakref.ref(steps) if steps is not None else lambda: None
        self._seconds = 0.0  # spent on what was handed out
        self._taps: dict[str, GraphTap] = {}
        self._rows: dict[str, int] = {}
        self._places: list[str] = []  # by their rows
        self._plans: weakref.WeakKeyDictionary[Readings, bool] = weakref.WeakKeyDictionary()
        self._calls, self._passes = HandedOut(), BackwardPasses()
        self._ended = HandedOut()
        self._full, self._compiled = "", set[str]()
        self._n_compiled = -1
        self._parts = ModelParts(self.training)
        self._number, self._has_guarded = "", False
        self._read, self._tried = set[str](), set[str]()
        self.last_step = -1
        """Last step of which a graph has handed out anything."""

    @property
    def acts(self) -> bool:
        """True if there is anything to switch between two steps."""
        return self.wanted and bool(self._taps)

    @property
    def has_work(self) -> bool:
        """True if graphs may have handed out something of the step that ends."""
        return self.acts or len(self._ended) > 0

    def tap(self, place: str, module: Callable[[], nn.Module | None]) -> GraphTap:
        """Return what the hooks of a module read in a graph."""
        known = self._taps.get(place)
        if known is None or known.module() is not module():
            known = self._taps[place] = GraphTap(self, module)
        return known

    def set_places(self, readings: Readings) -> None:
        """Read what these readings of all probes need, from the next step on."""
        if not (self.wanted and can_trace()):
            self.variant = self._full = ""
            for tap in self._taps.values():
                tap.input = tap.output = ""
            return
        if not self._number:
            self._number = next(n for n in map(str, itertools.count()) if n not in keepers)
            keepers[self._number] = self
        self._parts.forget()
        self.look_at_compiled()
        plans = {place: plan for place, plan in readings.calls.items() if place and _is_read(plan)}
        counts = _witnesses(plans)
        for place, tap in self._taps.items():
            plan = plans.get(place)
            tap.input, tap.output = self._texts(place, plan, place in counts) if plan else ("", "")
        texts = sorted((tap.input, tap.output) for tap in self._taps.values() if tap.output)
        self._full = hashlib.sha256(repr(texts).encode()).hexdigest()[:16]

    def _texts(self, place: str, plan: ReadingPlan, is_counted: bool) -> tuple[str, str]:
        if place not in self._rows:
            self._rows[place] = len(self._places)
            self._places.append(place)
        row = 2 * self._rows[place]
        given, nothing = _traceable(plan, "input"), frozenset[str]()
        of_gradient = _traceable(plan, "grad_output") or frozenset({COUNTED} if is_counted else ())
        output = reading_text(self._number, row, _traceable(plan, "output"), of_gradient)
        return reading_text(self._number, row + 1, given, nothing) if given else "", output

    def look_at_compiled(self) -> None:
        """Guard what was compiled since the last look, perhaps before there were hooks."""
        if self.wanted and self._n_compiled != (n := n_compiled()):
            self._n_compiled = n
            self._has_guarded |= guard_plain_graphs() > 0

    def reads_in(self, module: nn.Module) -> bool:
        """Implement the SumsKeeper."""
        model = self.training()
        if not self.variant or model is None or not model.training:
            return False
        return torch.is_grad_enabled() and self._parts.are_in(module)

    def refuse(self, error: Exception) -> None:
        """Implement the SumsKeeper."""
        self.refusal = self.refusal or f"{type(error).__name__}: {error}".splitlines()[0]

    def look_for_unread(self, frame: DueFrame, modules: Mapping[str, nn.Module]) -> None:
        """Compile the graphs of a part again if they do not know its hooks.

        Where graphs without hooks were found they are compiled for readings anyway. Once for each
        part, which perhaps is not called.
        """
        has_guarded, self._has_guarded = self._has_guarded, False
        if not self.variant or has_guarded or self.refusal:
            return
        unread, read = set[str](), set[str]()
        for place in filter(self._rows.__contains__, frame.plan.calls):
            region = compiled_region(place, modules)
            if region is None and frame.is_unseen:
                region = ""
            if region is not None:
                seen = frame.calls[frame.plan.calls[place].counter] or place in self._read
                (read if seen else unread).add(region)
        if new := unread - read - self._tried:
            self._tried |= new
            self._compile_again()

    def _compile_again(self) -> None:
        model = self.training()
        for code in _forwards(model) if model is not None and self.wanted else ():
            eval_frame.reset_code(code)

    def prepare(self, upcoming: Readings | None) -> None:
        """Choose the variant of the coming step, called between two steps.

        It reads everything where what is due is not known, as while the model runs uncompiled.
        """
        self.look_at_compiled()
        variant = self._full if upcoming is None or self.reads(upcoming) else ""
        if variant and variant not in self._compiled:
            self.is_full = self._is_full()
            if not self.is_full:
                self._compiled.add(variant)
        self.variant = "" if self.is_full else variant

    def reads(self, readings: Readings) -> bool:
        """Return whether a graph has anything to read for these."""
        if readings not in self._plans:
            self._plans[readings] = any(map(_is_read, readings.calls.values()))
        return self._plans[readings]

    def _is_full(self) -> bool:
        """Return whether a function of the model has nearly as many variants as Dynamo allows."""
        model = self.training() if has_compiled() else None
        count = eval_frame._debug_get_cache_entry_list
        codes = _forwards(model) if model is not None else ()
        most = max((len(count(code)) for code in codes), default=0)
        return most + SPARE > config.recompile_limit

    # ---------------------------------------------------------------- what graphs hand out

    def module_of(self, row: int) -> nn.Module | None:
        """Implement the SumsKeeper."""
        return self._taps[self._places[row]].module()

    def keep(self, sums: Tensor, n: int, where: SumsOrigin) -> None:
        """Implement the SumsKeeper."""
        begun = time.perf_counter()
        found = CallSums(where, _states(sums, n, where), not sums.is_cpu)
        passes = self._passes_now()
        if where.what != "gradient":
            self._calls.take_call(found, passes)
        elif torch._C._current_graph_task_id() != -1:
            self._calls.take_gradient(found, passes)
        self._seconds += time.perf_counter() - begun

    def _passes_now(self) -> BackwardPasses:
        steps = self._steps()
        if steps is None:
            return self._passes
        steps.has_to_prepare = True  # what nothing has compiled before is compiled now
        return self._passes if steps.has_ended or steps.frame is None else steps.frame.passes

    def end_update(self) -> None:
        """Note that an optimizer has stepped: what was handed out so far is of the open step."""
        self._ended.extend(self._calls)
        self._calls = HandedOut()
        if self._passes.have_come:
            self._passes.apply(lambda parameter: True)
            self._passes = BackwardPasses()

    def join(self, frame: DueFrame) -> None:
        """Note that a step opens: what was handed out before is of this step."""
        if self._passes.have_come:
            frame.passes, self._passes = self._passes, BackwardPasses()

    def fill(self, frame: DueFrame) -> dict[str, bool]:
        """Fill a step that ends; return the places that were called, and which await gradients."""
        calls, self._ended = self._ended, HandedOut()
        if not len(calls):
            return {}
        found = calls.counted()
        if found is None:
            self.n_ambiguous += 1
            return {}
        begun = time.perf_counter()
        frame.settle()
        self.last_step = frame.step
        called = dict[str, bool]()
        read: list[tuple[ReadingPlan, Moment]] = []
        for one in found:
            where = one.where
            place = self._places[where.row // 2]
            plan = frame.plan.calls.get(place)
            if plan is None:
                continue
            is_gradient = where.what == "gradient"
            if where.nth == 0 and where.row % 2 == 0 and not is_gradient:
                frame.calls[plan.counter] += 1
                called[place] = called.get(place, False) or where.what == "awaited"
            if one.states:
                _fill(frame, plan, one)
                read.append((plan, "backward" if is_gradient else "forward"))
        self._spend(frame, read, time.perf_counter() - begun)
        self._read |= called.keys()
        return called

    def _spend(
        self, frame: DueFrame, read: Sequence[tuple[ReadingPlan, Moment]], seconds: float
    ) -> None:
        """Count the time spent outside of the graphs; what they take themselves is not known."""
        seconds += self._seconds
        self._seconds = 0.0
        frame.seconds += seconds
        for plan, moment in read:
            plan.spent(moment, seconds / len(read))

    def has_read(self, place: str) -> bool:
        """Return whether a graph has ever read calls of a place."""
        return place in self._read

    def forget(self) -> None:
        """Forget what was handed out of a step that is dropped."""
        self._calls, self._passes, self._ended = HandedOut(), BackwardPasses(), HandedOut()

    def close(self) -> None:
        """Read no more, and leave nothing on the model."""
        self.wanted, self.variant = False, ""
        self.forget()
        keepers.pop(self._number, None)
        self._taps, self._number = {}, ""


def _forwards(model: nn.Module) -> list[CodeType]:
    """Return the code of every forward of a model's classes, to which Dynamo ties its graphs."""
    kinds = {type(module): None for module in model.modules()}
    # One that is scripted has none.
    codes = (getattr(getattr(kind, "forward", None), "__code__", None) for kind in kinds)
    return [code for code in codes if code is not None]


def _is_read(plan: ReadingPlan) -> bool:
    return any(_traceable(plan, tensor) for tensor in READ)


def _witnesses(plans: Mapping[str, ReadingPlan]) -> set[str]:
    """Return places whose gradients tell whether calls had a backward, where none is read."""
    if any(_traceable(plan, "grad_output") for plan in plans.values()):
        return set()
    return {*[*plans][:1], *[*plans][-1:]}


def _states(sums: Tensor, n: int, where: SumsOrigin) -> list[tuple[Sums, Any]]:
    """Return what a graph has handed out, with the state that it is."""
    # The memory is the graph's, which may write over it; of these on a CPU only numbers are kept.
    is_plain = sums.is_cpu and all(one.reduction is STAT for one in where.sums)
    pieces = (sums if is_plain else sums.clone()).split([one.length for one in where.sums])
    return [
        (one, NOTHING if not n else one.reduction.traced.state(piece, n, one.parts))
        for one, piece in zip(where.sums, pieces, strict=True)
        if one.reduction.traced is not None
    ]


def _fill(frame: DueFrame, plan: ReadingPlan, read: CallSums) -> None:
    where = read.where
    is_input = where.row % 2
    tensor = "grad_output" if where.what == "gradient" else "input" if is_input else "output"
    for cell in _cells(plan, tensor):
        for one, state in read.states:
            if cell.reduction is one.reduction and cell.wanted <= one.parts:
                cell.take(frame, state, read.on_device)
