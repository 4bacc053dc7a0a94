"""The observer of one model: its calls, as the hooks see them, and the steps that they are in.

Hooks call it on the training thread. It holds the model weakly and the hooks hold the observer
weakly: dropping the model or the run frees both.
"""

from __future__ import annotations

import threading
import time
import weakref
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from notebook_probe.model.map import ModelMap
from notebook_probe.probes.calibration import calibrate
from notebook_probe.probes.calls.collect import collect_for
from notebook_probe.probes.calls.forwards import Forwards
from notebook_probe.probes.calls.root_hooks import hook_root
from notebook_probe.probes.calls.sampler import CallSampler
from notebook_probe.probes.calls.unswitched import Unswitched
from notebook_probe.probes.due.readings import DueFrame
from notebook_probe.probes.loss.kept_calls import KeptCalls
from notebook_probe.probes.reading.closed_steps import ClosedSteps
from notebook_probe.probes.reading.loop_values import take
from notebook_probe.probes.step.budget import Budget
from notebook_probe.probes.step.calling import seconds_of_a_call
from notebook_probe.probes.step.part import FramePart
from notebook_probe.probes.step.phase import Phase, aside
from notebook_probe.probes.step.sink import StepGate
from notebook_probe.probes.step_clock import StepClock
from notebook_probe.probes.step_sequence import StepSequence
from notebook_probe.quantities.define.quantity import Combine
from notebook_probe.quantities.reduce.stat import Number
from notebook_probe.uninterrupted import whole

__all__ = ["Observer"]


class Observer:
    """Observer of one model, which measures due probes step by step, from `hook` on.

    Parameters
    ----------
    model : nn.Module
        Held weakly.
    model_map : ModelMap
    clock : StepClock
    sink : ClosedSteps
    budget : Budget
    last_evaluated : int
        Same as in `StepSequence`.

    Attributes
    ----------
    steps : StepSequence
        Opens and closes the steps; its parts ``clock``, ``training``, ``evaluation``, ``phase``,
        ``updates``, ``taps``, ``eager``, ``in_graphs`` and ``replay`` are attributes here, too.
    was_rooted : bool
        A training call of the root was ever seen.
    batch_names : set of str
        Names under which the loop has ever handed something over.
    samplers : dict
        Samplers of the next call of the root in each phase.
    """

    def __init__(
        self,
        model: nn.Module,
        model_map: ModelMap,
        clock: StepClock,
        sink: ClosedSteps,
        budget: Budget,
        last_evaluated: int = -1,
    ) -> None:
        self.steps = steps = StepSequence(
            model, model_map, clock, sink, budget, last_evaluated, listener=self
        )
        self.clock, self.training, self.evaluation = clock, steps.training, steps.evaluation
        self.phase, self.updates, self.taps = steps.phase, steps.updates, steps.taps
        self.eager, self.in_graphs, self.replay = steps.eager, steps.in_graphs, steps.replay
        self.forwards, self.unswitched, self.calls = Forwards(), Unswitched(), KeptCalls()
        self._model = weakref.ref(model)
        self._call_s = 0.0
        """Hidden cost of a call of one of the root's hooks."""
        self.batch_names: set[str] = set()
        self.samplers: dict[Phase, CallSampler] = {}
        self._sampled: tuple[int, CallSampler] | None = None
        self.was_rooted = False
        self._ends: list[Callable[[], None]] = []

    @whole
    def hook(self, gate: StepGate) -> None:
        """Put the hooks on: from now on calls and updates are seen, and pass the gate."""
        calibrate()
        self._call_s = seconds_of_a_call("forward")
        self.steps.gate = gate
        model = self._model()
        if model is not None:
            self._ends = [handle.remove for handle in hook_root(model, self)]
            self._ends += [*self.updates.listen(), collect_for(self)]

    @whole
    def close(self) -> None:
        """Publish the open step if its update happened, and take every hook off."""
        with self.steps.turn:  # no step opens meanwhile on a thread that trains
            for end in self._ends:
                end()
            self.steps.close()
            self.calls.wanted, self.calls.latest = False, None
            self.calls.by_thread.clear()

    def watches(self, module: nn.Module) -> bool:
        """Return whether it is the watched model, not a shallow copy with the same hooks."""
        return self._model() is module

    def leave(self, output: object) -> None:
        """Note that a call of the root ends; without an output if it raised."""
        begun, phase, frame = time.perf_counter(), self.phase, self.training.frame
        phase.now = phase.outer.pop() if phase.outer else None
        if phase.now is None and self.forwards.part is not None:
            self.forwards.end(output)
        if phase.now is None and self._sampled is not None:
            self._end_sampled(output)
        if self.calls.learns:
            self.calls.learn_draws()
        if output is None and self.calls.wanted:
            self.calls.forget_last()
        if frame is not None:
            frame.seconds += time.perf_counter() - begun + self._call_s

    def enter(self, root: nn.Module, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
        """Note that a call of the root begins, with these arguments."""
        steps, phase = self.steps, self.phase
        if steps.is_silent:
            return
        begun = time.perf_counter()
        if (
            phase.now is None
            and root.training
            and torch.is_grad_enabled()
            and torch._C._current_graph_task_id() == -1
            and not (phase.outer or phase.is_past or aside.now)
        ):
            phase.now = "training"  # nearly always: what `enter` would find
        elif not phase.enter(root):
            return
        self.forwards.part = None
        if self._sampled is not None:  # torch runs no hook after a call that was interrupted
            self._end_sampled(None)
        if phase.now != "training":
            self._enter_untrained(root, args, kwargs)
            return
        self.unswitched.n_trained = 0
        clock, frame = self.clock, self.training.frame
        if frame is not None and frame.step > clock.step:
            self.steps.catch_up()
        if clock.begun is not None or clock.explicit:
            is_over = clock.ready
        else:  # nearly always, as `ready`
            is_over = bool(clock.stepped) or clock.has_raised
        if frame is None or is_over:
            self.calls.by_thread.clear()
            try:
                if not self.steps.follow_at_rest(begun):
                    before = time.perf_counter() - begun
                    self.steps.boundary(rooted=True)  # it counts itself, and a pause is no cost
                    begun = time.perf_counter() - before
            except BaseException:
                self.phase.leave()
                raise
        self.steps.n_forwards, self.was_rooted = self.steps.n_forwards + 1, True
        frame = self.training.frame or self.steps.open_frame(rooted=True)
        if frame.is_unseen:
            frame.is_unseen = False
        kept = None
        if self.calls.wanted:
            kept = self.calls.keep(args, kwargs, self.steps.model_map)
        elif not self.calls.has_shapes:  # on an accelerator no call is kept
            self.calls.note_shapes(args, kwargs)
        if self.calls.latest is not None:
            self.calls.keep_latest(frame.step, args, kwargs, kept)
        if "training" in self.samplers:
            self._sample("training", args, kwargs)
        if self.updates.thread != threading.get_ident():
            self.updates.shared.note(frame.step)
        frame.seconds += time.perf_counter() - begun + self._call_s

    def _enter_untrained(
        self, root: nn.Module, args: tuple[Any, ...], kwargs: Mapping[str, Any]
    ) -> None:
        """Note a call of the root that is no training."""
        self.unswitched.called(root, self.phase.now, self.clock.upcoming)
        if self.phase.now == "evaluation":
            self.steps.gate.wake()  # for those who look at evaluations
            self.steps.open_evaluation()
            if "evaluation" in self.samplers:
                self._sample("evaluation", args, kwargs)

    def _sample(self, phase: Phase, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
        sampler = self.samplers.pop(phase, None)  # another thread may have been first
        if sampler is not None and self._sampled is None:
            self._sampled = threading.get_ident(), sampler
            sampler.enters(args, kwargs)

    def _end_sampled(self, output: object) -> None:
        """End the call that is sampled, if it is of this thread: modes of torch are its own."""
        if self._sampled is not None and self._sampled[0] == threading.get_ident():
            (_, sampler), self._sampled = self._sampled, None
            sampler.leaves(output)

    def called(self, module: nn.Module) -> tuple[Phase | None, FramePart | None]:
        """Phase and frame of a call of ``module``, also where the root was not entered."""
        if self.steps.is_silent:
            return None, None
        phase = root_phase = self.phase.now
        if phase is None or (phase == "training") != torch.is_grad_enabled():
            phase = self._phase_without_root(module)
            root_phase = self.phase.now
        if phase == "evaluation":
            return phase, self.steps.open_evaluation()
        part = self.forwards.part
        if part is not None and root_phase == phase == "training" and not part.closed:
            return phase, part  # as below, mostly
        is_of_model = root_phase is not None or self.watches(module)
        return phase, self.forwards.part_of(self.training.frame, phase, is_of_model)

    def _phase_without_root(self, module: nn.Module) -> Phase | None:
        """Return the phase of a call that the root may have no part in."""
        phase, root = self.phase.now, self._model()
        if root is None:
            return None
        if phase is None or self.phase.left(root):
            phase = self.phase.of(module)
            if phase == "training" and (self.training.frame is None or self.clock.ready):
                self.steps.boundary()
        return phase

    def take_batch(self, values: Mapping[str, Sequence[Tensor]]) -> None:
        """Read what the loop knows of the batch that it trains or evaluates."""
        self.batch_names.update(values)
        if (frame := self._frame_of_batch(values)) is not None:
            take(frame, frame.plan.batch, frame.plan.batch_needs, values)

    def _frame_of_batch(self, values: Mapping[str, Sequence[Tensor]]) -> DueFrame | None:
        """Return the open frame of the batch; a result of a forward belongs to the open step."""
        root = self._model()
        if self.steps.is_silent or root is None or not self.steps.reads_batches:
            return None
        if self.phase.of(root) == "evaluation":
            return self.steps.open_evaluation()
        every = (tensor for some in values.values() for tensor in some)
        is_result = any(tensor.grad_fn is not None for tensor in every)
        if self.training.frame is None or (self.clock.ready and not is_result):
            self.steps.boundary(rooted=self.was_rooted)
        return self.training.frame

    def place_of(self, module: nn.Module) -> str | None:
        """Implement the Collector."""
        return None if self.steps.is_silent else self.taps.place_of(module)

    def collected(
        self, module: nn.Module, place: str, name: str, value: Number, combine: Combine
    ) -> None:
        """Implement the Collector."""
        phase, frame = self.called(module)
        if phase == "training" and frame is not None:
            self.steps.announce(place, name)
            frame.collect(place, name, value, combine)
