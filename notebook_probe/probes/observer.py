"""The observer of one model: hooks, clock, phase and the open step, put together.

Only the training thread calls it (through hooks), so nothing here is locked. It holds the model
weakly and the hooks hold the observer weakly: whoever drops the model or the run frees both.

At each boundary, in this order: the open step closes and goes to ``publish``; ``gate`` may apply
requests, wait while paused, or raise to stop; the next step opens and every probe's schedule is
asked once.
"""

from __future__ import annotations

import os
import time
import weakref
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn
from torch.optim import Optimizer

from notebook_probe.probes.clock import StepClock, listen
from notebook_probe.probes.frame import StepFrame
from notebook_probe.probes.parameters import MOMENTS, ParameterReader, Slot
from notebook_probe.probes.phase import Phase, PhaseOfThread, phase_of, quiet
from notebook_probe.probes.plan import PlacePlan, plan
from notebook_probe.probes.probe import Probe
from notebook_probe.probes.tap import Inert, Tap
from notebook_probe.schedules import Schedule

__all__ = ["Observer"]


class _RootHook:
    """Marks the beginning or the end of a call of the root; inert in copies and pickles."""

    __slots__ = ("_begins", "_observer")

    def __init__(self, observer: Observer, begins: bool) -> None:
        self._observer = weakref.ref(observer)
        self._begins = begins

    def __call__(self, module: nn.Module, *call: Any) -> None:
        if torch.compiler.is_compiling():  # folds away in a compiled region
            return
        observer = self._observer()
        if observer is None or quiet():
            return
        if self._begins:
            observer.enter(module)
        else:
            observer.phase.leave()

    def __deepcopy__(self, memo: object) -> Inert:
        return Inert()

    def __reduce__(self) -> tuple[type[Inert], tuple[()]]:
        return Inert, ()


@dataclass(frozen=True, slots=True)
class _Readings:
    """What one set of due schedules measures, and where."""

    due: tuple[Probe, ...]
    plans: dict[str, PlacePlan]
    reader: ParameterReader


class Observer:
    """Measures the due probes of one model, step by step.

    Parameters
    ----------
    model : nn.Module
        Held weakly.
    first_step : int
        Number of the step that opens first.
    publish : callable
        Receives each closed `StepFrame`.
    gate : callable
        Called between two steps with the number of the next one; may block, may raise a
        BaseException that ends the training loop.
    """

    def __init__(
        self,
        model: nn.Module,
        first_step: int,
        publish: Callable[[StepFrame], None],
        gate: Callable[[int], None],
    ) -> None:
        self.clock = StepClock(first_step)
        self.phase = PhaseOfThread()
        self.frame: StepFrame | None = None
        self.probes: tuple[Probe, ...] = ()
        self._model = weakref.ref(model)
        self._pid = os.getpid()  # a forked child is silent
        self._gated = -1
        self._root_entered = False
        self._publish, self._gate = publish, gate
        self._taps: dict[str, Tap] = {}
        self._schedules: dict[Schedule, tuple[Probe, ...]] = {}
        self._readings: dict[frozenset[Schedule], _Readings] = {}
        self._now = _Readings((), {}, ParameterReader(model, {}, {}))
        self._buffers: dict[Slot, torch.Tensor] = {}
        self._own: dict[int, weakref.ref[nn.Parameter]] = {}
        self._strangers: weakref.WeakKeyDictionary[Optimizer, int] = weakref.WeakKeyDictionary()
        self._weights_read = False
        self._root_handles = [
            model.register_forward_pre_hook(_RootHook(self, begins=True)),
            model.register_forward_hook(_RootHook(self, begins=False), always_call=True),
        ]
        self._deafen = listen(self)

    # ---------------------------------------------------------------- life

    def close(self) -> None:
        """Publish the open step if its update happened, and take every hook off."""
        self._deafen()
        self.settle()
        for handle in self._root_handles:
            handle.remove()
        taps, self._taps = self._taps, {}
        for tap in taps.values():
            tap.remove()
        self.probes, self._schedules, self._readings = (), {}, {}
        self._buffers.clear()

    def set_probes(self, probes: Iterable[Probe]) -> None:
        """Measure exactly these from the next step on; only between steps."""
        self.probes = tuple(probes)
        self._leave_out_disabled()
        self._buffers = {}
        model = self._model()
        if model is None:
            return
        modules = dict(model.named_modules(remove_duplicate=False))
        everything = plan(self.probes)
        tapped = {
            place: needs
            for place, needs in everything.items()
            if place in modules and needs.reads("input", "output", "grad_output")
        }
        before, after = self._taps, {}
        for place, needs in tapped.items():
            after[place] = before.get(place) or Tap(place, self)
            after[place].hook(modules[place], reads_input=needs.reads("input"))
        self._taps = after  # replaced, not changed: a step may be opening on another thread
        for place in before.keys() - after.keys():
            before[place].remove()

    def n_calls(self, place: str) -> int:
        """Training calls seen at a place while something was due there."""
        tap = self._taps.get(place)
        return tap.n_calls if tap is not None else 0

    # ---------------------------------------------------------------- steps

    def open_frame(self) -> StepFrame:
        """The open step; opens it when there is none."""
        if self.frame is None:
            self._use(self._ask_schedules())
            self.frame = StepFrame(self.clock.step, self._now.due)
            self._weights_read = self._root_entered = False
        return self.frame

    def boundary(self) -> None:
        """Close the open step, let the gate act, open the next."""
        self.settle()
        self._pass_gate()
        self.open_frame()

    def settle(self) -> None:
        """Close the open step if an optimizer has stepped in it."""
        if self.clock.has_stepped:
            self._close_frame()

    def step(self) -> None:
        """Close the open step by hand; from then on steps close only so."""
        self.clock.explicit = True
        frame = self.open_frame()
        if not self.clock.has_stepped:  # no optimizer told us of this step
            self._timed(lambda: self._read_without_optimizer(frame))
        self._close_frame()
        self._pass_gate()

    def _pass_gate(self) -> None:
        """Once per step: by hand at its end, or at the forward that opens the next."""
        if self._gated != self.clock.step:
            self._gated = self.clock.step
            self._gate(self.clock.step)

    def _close_frame(self) -> None:
        frame, self.frame = self.frame, None
        self.clock.advance()
        if frame is not None:
            frame.closed = True
            self._publish(frame)
            if frame.has_failures:
                self._leave_out_disabled()

    def _ask_schedules(self) -> frozenset[Schedule]:
        due = []
        for schedule, probes in self._schedules.items():
            try:
                if schedule(self.clock.step):
                    due.append(schedule)
            except Exception as error:  # a user's callable
                for probe in probes:
                    probe.failed(error, self.clock.step)
                self._leave_out_disabled()
        return frozenset(due)

    def _leave_out_disabled(self) -> None:
        """Ask and read no more for a probe that has failed too often."""
        live = [probe for probe in self.probes if not probe.disabled]
        self._schedules = {
            schedule: tuple(probe for probe in live if probe.schedule == schedule)
            for schedule in dict.fromkeys(probe.schedule for probe in live)
        }
        self._readings = {}

    def _use(self, due: frozenset[Schedule]) -> None:
        """Tell every tap what is due now; worked out once for each set of due schedules."""
        readings = self._readings.get(due)
        if readings is None:
            live = (probe for probe in self.probes if not probe.disabled)
            probes = tuple(probe for probe in live if probe.schedule in due)
            plans = plan(probes)
            model = self._model()
            reader = ParameterReader(model, plans, self._buffers) if model else self._now.reader
            readings = self._readings[due] = _Readings(probes, plans, reader)
            for probe in probes:
                probe.was_due = True
        if readings is not self._now or not self._root_entered:
            self._now = readings
            for place, tap in self._taps.items():
                tap.plan = readings.plans.get(place)

    # ---------------------------------------------------------------- forward calls

    def enter(self, root: nn.Module) -> None:
        """A call of the root begins."""
        if os.getpid() != self._pid:
            return
        begun = time.perf_counter()
        outermost = self.phase.enter(root)
        if not outermost or self.phase.now != "training":
            return
        if self.frame is None or self.clock.ready:
            try:
                self.boundary()
            except BaseException:
                self.phase.leave()
                raise
            begun = time.perf_counter()  # a pause is no cost
        self._root_entered = True
        self.open_frame().seconds += time.perf_counter() - begun

    def called(self, module: nn.Module) -> tuple[Phase | None, StepFrame | None]:
        """Phase and step of a call of ``module``, also where the root was not entered."""
        if os.getpid() != self._pid:
            return None, None
        phase = self.phase.now
        if phase is None or not torch.is_grad_enabled():
            phase = self._phase_without_root(module)
        return phase, self.frame

    def _phase_without_root(self, module: nn.Module) -> Phase | None:
        """The phase of a call that the root may have no part in."""
        phase, root = self.phase.now, self._model()
        if root is None:
            return None
        if phase == "training" and self.phase.left(root):
            phase = None
        if phase is None:
            phase = phase_of(module)
            if phase == "training" and (self.frame is None or self.clock.ready):
                self.boundary()
        return phase

    # ---------------------------------------------------------------- optimizer steps

    def step_begins(self, optimizer: Optimizer) -> None:
        """The Listener's part: weights, before-copies."""
        if not self._is_ours(optimizer):
            return
        if self.clock.stepped_before(optimizer):
            self.boundary()
        frame = self.open_frame()
        self.clock.enter(optimizer)
        self._timed(lambda: self._read_weights(frame, optimizer))

    def gradients_ready(self, optimizer: Optimizer) -> None:
        """The Listener's part: gradients as they will be applied."""
        frame = self.frame
        if frame is not None and self._is_ours(optimizer):
            self._timed(lambda: self._now.reader.read_gradients(optimizer, frame))

    def step_ends(self, optimizer: Optimizer) -> None:
        """The Listener's part: updates."""
        frame = self.frame
        if frame is not None and self._is_ours(optimizer):
            self.clock.leave(optimizer)
            self._timed(lambda: self._now.reader.read_updates(frame))
            if not self._root_entered:  # then any module's call may open the next step
                for tap in self._taps.values():
                    tap.plan = tap.plan or PlacePlan()

    def _read_weights(self, frame: StepFrame, optimizer: Optimizer) -> None:
        first, self._weights_read = not self._weights_read, True
        self._now.reader.read_weights(optimizer, frame, first)

    def _read_without_optimizer(self, frame: StepFrame) -> None:
        self._now.reader.read_weights(None, frame, first=True)
        self._now.reader.read_gradients(None, frame)

    def _timed(self, read: Callable[[], None]) -> None:
        """Read parameters; whatever they are, the optimizer's step goes on."""
        frame = self.open_frame()
        begun = time.perf_counter()
        try:
            read()
        except Exception as error:
            for place in self._now.plans:
                frame.fail(place, error, MOMENTS)
        frame.seconds += time.perf_counter() - begun

    def _is_ours(self, optimizer: Optimizer) -> bool:
        """Tell whether the optimizer owns a parameter of this model, by identity."""
        if os.getpid() != self._pid:
            return False
        if any(self._knows(value) for value in _parameters(optimizer)):  # usually the first
            return True
        values = list(_parameters(optimizer))
        if self._strangers.get(optimizer) == len(values):
            return False
        model = self._model()
        if model is None:
            return False
        self._own = {id(value): weakref.ref(value) for value in model.parameters()}
        ours = any(self._knows(value) for value in values)
        if not ours:
            self._strangers[optimizer] = len(values)
        return ours

    def _knows(self, value: nn.Parameter) -> bool:
        known = self._own.get(id(value))
        return known is not None and known() is value


def _parameters(optimizer: Optimizer) -> Iterator[nn.Parameter]:
    return (value for group in optimizer.param_groups for value in group["params"])
