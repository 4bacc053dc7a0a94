"""Readings of one run inside compiled graphs: what graphs read, when, and where it goes.

A graph has two variants, one that reads all there is to read and one that reads nothing. One
attribute decides, between two steps, which of them runs; both stay compiled.
"""

from __future__ import annotations

import hashlib
import itertools
import time
import weakref
from collections.abc import Callable, Collection, Hashable, Iterator, Mapping, Sequence
from typing import Any, Protocol

import torch
from torch import Tensor, nn
from torch._dynamo import config

from notebook_probe.model.channel_axes import channel_axis_of
from notebook_probe.probes.due.readings import DueFrame, Readings
from notebook_probe.probes.inside.graphs_of_model import forget_graphs, most_variants
from notebook_probe.probes.inside.handed_out import CallSums, HandedOut
from notebook_probe.probes.inside.handing import keepers
from notebook_probe.probes.inside.origins import COUNTED, MOMENTS, TENSORS, Sums, SumsOrigin
from notebook_probe.probes.inside.plain_graphs import guard_plain_graphs, look_again
from notebook_probe.probes.inside.plans import cells, is_read, traceable, witnesses
from notebook_probe.probes.inside.read_modules import ReadModules
from notebook_probe.probes.inside.signatures import crowded_kinds, has_region_of
from notebook_probe.probes.inside.traced import GraphTap, can_trace, reading_text
from notebook_probe.probes.inside.uncompiled import UnhookedForwards
from notebook_probe.probes.reading.plan import ReadingPlan
from notebook_probe.probes.step.compiled import compiled_region, has_compiled, n_compiled
from notebook_probe.probes.step.passes import BackwardPasses
from notebook_probe.quantities.reduce.device_stat import NOTHING
from notebook_probe.quantities.reduce.features import Moment

__all__ = ["GraphReadings"]

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
    compiles : bool
        Graphs that make readings are being compiled.
    variant : str
        Digest of the readings of the coming step's graphs; empty without readings.
    refusal : str
        Error with which a backend refused to compile readings; empty if none did.
    n_ambiguous : int
        Steps of which nothing was taken, as some calls had a backward and others had none.
    """

    def __init__(self, model: nn.Module, steps: StepHolder | None = None) -> None:
        self.wanted = self.compiles = self._has_no_room = False
        self.n_ambiguous, self.variant, self.refusal = 0, "", ""
        self.training: Callable[[], nn.Module | None] = weakref.ref(model)
        self._steps = weakref.ref(steps) if steps is not None else lambda: None
        self._seconds = 0.0  # spent on the sums that were handed out
        self._taps: dict[str, GraphTap] = {}
        self._rows: dict[str, int] = {}
        self._places: dict[int, str] = {}  # by their rows
        self._kinds: dict[Hashable, int] = {}
        self._plans: weakref.WeakKeyDictionary[Readings, bool] = weakref.WeakKeyDictionary()
        self._calls, self._passes = HandedOut(), BackwardPasses()
        self._ended = HandedOut()
        self._full, self._compiled = "", set[str]()
        self._n_compiled = -1
        self._modules, self._unhooked = ReadModules(self._read_modules), UnhookedForwards()
        self._number, self._has_guarded = "", False
        self._crowded: Collection[type] = ()
        self._is_crowded = False
        self._read, self._tried = set[str](), set[str]()
        self.last_step = -1
        """Last step of which a graph has handed out anything."""

    @property
    def is_full(self) -> bool:
        """True if Dynamo might refuse to compile graphs for readings, so that none is."""
        return self._has_no_room or self._is_crowded

    @property
    def acts(self) -> bool:
        """True if there is anything to switch between two steps."""
        return self.wanted and bool(self._taps)

    @property
    def has_work(self) -> bool:
        """True if graphs may have handed out something of the step that ends."""
        if len(self._ended) > 0:
            return True
        return self.wanted and bool(self._taps) and has_compiled()

    def tap(self, place: str, module: Callable[[], nn.Module | None]) -> GraphTap:
        """Return what the hooks of a module read in a graph."""
        known = self._taps.get(place)
        if known is None or known.module() is not module():
            row = self._rows.setdefault(place, len(self._rows))
            self._places[row] = place
            known = self._taps[place] = GraphTap(self, module, row)
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
        self.look_at_compiled()
        look_again()
        plans = {place: plan for place, plan in readings.calls.items() if place and is_read(plan)}
        counts = witnesses(plans)
        for place, tap in self._taps.items():
            if (module := tap.module()) is not None:
                self._unhooked.add(module)
            plan = plans.get(place)
            tap.input, tap.output = self._texts(place, plan, place in counts) if plan else ("", "")
        self._modules.forget()
        texts = {place: (tap.input, tap.output) for place, tap in self._taps.items() if tap.output}
        self._full = hashlib.sha256(repr(sorted(texts.items())).encode()).hexdigest()[:16]
        model, most = self.training(), config.recompile_limit - SPARE
        self._crowded = crowded_kinds(texts, model, most) if model is not None else ()
        self._look_at_regions()

    def _look_at_regions(self) -> None:
        """Read nothing if parts that are compiled separately read in too many different ways."""
        model = self.training()
        if self._crowded and model is not None:
            self._is_crowded = has_region_of(self._crowded, model)
            self.variant = "" if self._is_crowded else self.variant

    def _texts(self, place: str, plan: ReadingPlan, is_counted: bool) -> tuple[str, str]:
        like = self._like(place)
        given, of_given = traceable(plan, "input"), traceable(plan, "grad_input")
        of_gradient = traceable(plan, "grad_output") or frozenset({COUNTED} if is_counted else ())
        read = traceable(plan, "output")
        output = reading_text(self._number, like, "output", read, of_gradient)
        if not (given or of_given):
            return "", output
        return reading_text(self._number, like, "input", given, of_given), output

    def _like(self, place: str) -> int:
        """Return the number of the first module of the same kind and sizes."""
        module = self._taps[place].module()
        return self._kinds.setdefault(_kind(module), self._rows[place])

    def look_at_compiled(self) -> None:
        """Guard what was compiled since the last look, perhaps before there were hooks."""
        if self._crowded:
            self._look_at_regions()
        if self.wanted and self._n_compiled != (n := n_compiled()):
            self._n_compiled = n
            self._has_guarded |= guard_plain_graphs() > 0

    def _read_modules(self) -> Iterator[nn.Module]:
        """Yield the modules whose calls graphs read."""
        for tap in self._taps.values():
            if tap.output and (module := tap.module()) is not None:
                yield module

    def reads_in(self, module: nn.Module) -> bool:
        """Return whether a module's call is read in its graph."""
        model = self.training()
        if not self.variant or model is None or not model.training:
            return False
        return torch.is_grad_enabled() and self._modules.are_in(module)

    def refuse(self, error: Exception) -> None:
        """Store the error with which a backend refused the readings."""
        self.compiles = False
        self.refusal = self.refusal or f"{type(error).__name__}: {error}".splitlines()[0]

    def look_for_unread(
        self, frame: DueFrame, modules: Mapping[str, nn.Module], is_hidden: bool
    ) -> None:
        """Compile the graphs of a part again if they do not know its hooks.

        The part is the whole model if its calls are perhaps hidden in a graph. Graphs that were
        found without hooks are compiled for readings anyway. Each submodule is compiled again only
        once, because it may not have been called.
        """
        self.look_at_compiled()
        has_guarded, self._has_guarded = self._has_guarded, False
        if not self.variant or has_guarded or self.refusal:
            return
        unread, read = set[str](), set[str]()
        for place in filter(self._rows.__contains__, frame.plan.calls):
            region = compiled_region(place, modules)
            if region is None and is_hidden:
                region = ""
            if region is not None:
                seen = frame.calls[frame.plan.calls[place].counter] or place in self._read
                (read if seen else unread).add(region)
        if new := unread - read - self._tried:
            self._tried |= new
            model = self.training()
            if model is not None:  # a container without modules is false
                forget_graphs(model)

    def prepare(self, upcoming: Readings | None) -> None:
        """Choose the variant of the coming step, called between two steps.

        It reads everything if the due set is unknown, for example while the model runs uncompiled.
        """
        self.look_at_compiled()
        self.compiles = False
        variant = self._full if upcoming is None or self.reads(upcoming) else ""
        if variant:
            self._has_no_room = variant not in self._compiled and self._is_full()
            if not self._has_no_room:
                self._compiled.add(variant)
        self.variant = "" if self.is_full else variant

    def reads(self, readings: Readings) -> bool:
        """Return whether a graph has anything to read for these."""
        if readings not in self._plans:
            self._plans[readings] = any(map(is_read, readings.calls.values()))
        return self._plans[readings]

    def _is_full(self) -> bool:
        """Return whether a function of the model has nearly as many variants as Dynamo allows."""
        model = self.training() if has_compiled() else None
        most = most_variants(model) if model is not None else 0
        return most + SPARE > config.recompile_limit

    # ---------------------------------------------------------------- what graphs hand out

    def module_of(self, row: int) -> nn.Module | None:
        """Return the module that has this row; None if it no longer exists."""
        return self._taps[self._places[row]].module()

    def keep(self, sums: Tensor, n: int, row: int, where: SumsOrigin) -> None:
        """Store the sums that a graph has handed out for one call or gradient."""
        begun, self.compiles = time.perf_counter(), False
        found = CallSums(row, where, _states(sums, n, where), not sums.is_cpu)
        passes = self._passes_now()
        if where.what not in MOMENTS:
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
        """Note that an optimizer has stepped: assign the sums received so far to the open step."""
        self._ended.extend(self._calls)
        self._calls = HandedOut()
        if self._passes.have_come:
            self._passes.apply(lambda parameter: True)
            self._passes = BackwardPasses()

    def join(self, frame: DueFrame) -> None:
        """Note that a step opens: assign the backward passes seen before to this step."""
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
            what = one.where.what
            place = self._places[one.row]
            plan = frame.plan.calls.get(place)
            if plan is None:
                continue
            if one.where.nth == 0 and what in ("output", "awaited"):
                frame.calls[plan.counter] += 1
                called[place] = called.get(place, False) or what == "awaited"
            if one.states:
                _fill(frame, plan, one)
                read.append((plan, MOMENTS.get(what, "forward")))
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
        """Forget the sums of a step that is dropped."""
        self.compiles = False
        self._calls, self._passes, self._ended = HandedOut(), BackwardPasses(), HandedOut()

    def rest(self) -> None:
        """Read no more in graphs, until `wanted` is set again."""
        self.wanted, self.variant = False, ""

    def close(self) -> None:
        """Read no more, and leave nothing on the model."""
        self.rest()
        self.forget()
        self._unhooked.clear()
        keepers.pop(self._number, None)
        self._taps, self._number = {}, ""


def _kind(module: nn.Module | None) -> Hashable:
    """Return the properties of a module that reductions may read."""
    if module is None:
        return None
    try:
        sizes = module.extra_repr()
    except Exception:  # a user's own, which nothing here may need
        sizes = str(id(module))
    return type(module), sizes, channel_axis_of(module)


def _states(sums: Tensor, n: int, where: SumsOrigin) -> list[tuple[Sums, Any]]:
    """Return what a graph has handed out, with the state that it is."""
    if not n:
        return [(one, NOTHING) for one in where.sums]
    if sums.is_cpu and where.is_of_numbers:
        pieces = _split(sums.tolist(), where)
        return [(one, one.of_numbers(numbers, n)) for one, numbers in pieces]
    # The memory is the graph's, which may write over it.
    pieces = _split(sums.clone(), where)
    return [(one, one.traced.state(piece, n, one.parts)) for one, piece in pieces]


def _split(sums: Any, where: SumsOrigin) -> Iterator[tuple[Sums, Any]]:
    """Yield the sums of each reduction, from a tensor or a list."""
    start = 0
    for one in where.sums:
        yield one, sums[start : start + one.length]
        start += one.length


def _fill(frame: DueFrame, plan: ReadingPlan, read: CallSums) -> None:
    for cell in cells(plan, TENSORS[read.where.what]):
        for one, state in read.states:
            if cell.reduction is one.reduction and cell.wanted <= one.parts:
                cell.take(frame, state, read.on_device)
