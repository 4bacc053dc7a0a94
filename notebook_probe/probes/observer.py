"""The observer of one model: hooks, clock, phase and the open step, put together.

Hooks call it on the training thread. It holds the model weakly and the hooks hold the observer
weakly: dropping the model or the run frees both.

At each boundary, in this order: the open step closes and goes to the sink; the gate may apply
requests, wait while paused, or raise to stop; the next step opens and every probe's schedule is
asked once.
"""

from __future__ import annotations

import threading
import time
import weakref
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from notebook_probe.model.changes import registrations
from notebook_probe.model.map import ModelMap
from notebook_probe.model.parameter_slots import Slot
from notebook_probe.probes.around_optimizer import Updates
from notebook_probe.probes.calibration import calibrate
from notebook_probe.probes.calls.collect import collect_for
from notebook_probe.probes.calls.forwards import Forwards
from notebook_probe.probes.calls.root_hooks import hook_root
from notebook_probe.probes.calls.sampler import CallSampler
from notebook_probe.probes.calls.taps import Taps
from notebook_probe.probes.calls.unswitched import Unswitched
from notebook_probe.probes.due.building import readings
from notebook_probe.probes.due.due_probes import DueProbes
from notebook_probe.probes.due.readings import DueFrame, Readings
from notebook_probe.probes.inside.graph_readings import GraphReadings
from notebook_probe.probes.loss.kept_calls import KeptCalls
from notebook_probe.probes.parameters.accumulations import AccumulationHooks
from notebook_probe.probes.reading.loop_values import take
from notebook_probe.probes.reading.plan import is_of_calls
from notebook_probe.probes.replay.probe_batch import ProbeBatch
from notebook_probe.probes.replay.replay import Replay
from notebook_probe.probes.step.budget import Budget
from notebook_probe.probes.step.calling import seconds_of_a_call
from notebook_probe.probes.step.compiled import EagerSteps, has_compiled
from notebook_probe.probes.step.forks import silence_in_children
from notebook_probe.probes.step.frame import StepFrame
from notebook_probe.probes.step.optimizer_steps import StepClock
from notebook_probe.probes.step.phase import Phase, PhaseOfThread
from notebook_probe.probes.step.probe import Probe
from notebook_probe.probes.step.sink import OpenGate, StepGate, StepSink
from notebook_probe.quantities.define.quantity import Combine
from notebook_probe.quantities.reduce.stat import Number
from notebook_probe.uninterrupted import uninterrupted, whole

__all__ = ["Observer"]

LOOK_EVERY = 64
"""Steps after which the gate looks for work that was not announced, such as a full record."""


class Observer:
    """Observer of one model, which measures due probes step by step, from `hook` on.

    Parameters
    ----------
    model : nn.Module
        Held weakly.
    model_map : ModelMap
        Its map, until `set_probes` brings another.
    clock : StepClock
        At the step that opens first.
    sink : StepSink
        Receives each closed `StepFrame`.
    budget : Budget
        Makes schedules due less often when watching costs too much.
    last_evaluated : int
        The last state of which there is an evaluation; -1 when there is none.
    """

    def __init__(
        self,
        model: nn.Module,
        model_map: ModelMap,
        clock: StepClock,
        sink: StepSink,
        budget: Budget,
        last_evaluated: int = -1,
    ) -> None:
        self.clock, self.eager = clock, EagerSteps()
        self.phase, self.forwards, self.unswitched = PhaseOfThread(), Forwards(), Unswitched()
        self.training = DueProbes(self._build, sink.publish, budget)
        self.evaluation = DueProbes(self._build, sink.evaluated, Budget())
        self.evaluation.last_step = last_evaluated
        self.in_graphs = GraphReadings(model, self)
        self.taps, self.replay, self.calls = Taps(self, self.in_graphs), Replay(model), KeptCalls()
        self._model, self.model_map = weakref.ref(model), model_map
        self.is_silent = False
        """In a forked child: the parent goes on recording."""
        silence_in_children(self)
        self._gated, self._is_opening = -1, False  # opening: a step opens next, and arms
        self.gate: StepGate = OpenGate()
        self._sink, self.announce = sink, sink.announce
        self._n_registered = -1
        """Modules and parameters registered in this process when the gate was last passed."""
        self._buffers: dict[Slot, Tensor] = {}
        self.updates = Updates(model, self)
        self._accumulations = AccumulationHooks(self.updates)
        self._call_s = 0.0
        """Hidden cost of a call of one of the root's hooks."""
        self._reads_raw = self._reads_batches = self.has_to_prepare = False
        self.n_forwards = self.most_forwards = 0
        """Training calls of the root in the open step, and the most of any before."""
        self.batch_names: set[str] = set()
        """Names under which the loop has ever handed something over."""
        self.samplers: dict[Phase, CallSampler] = {}
        """Samplers of the next call of the root in each phase."""
        self._sampled: tuple[int, CallSampler] | None = None
        self.was_rooted = False
        """A training call of the root was ever seen."""
        self._turn = threading.RLock()  # two threads may train one model
        self._ends: list[Callable[[], None]] = []

    @whole
    def hook(self, gate: StepGate) -> None:
        """Put the hooks on: from now on calls and updates are seen, and pass the gate."""
        calibrate()
        self._call_s = seconds_of_a_call("forward")
        self.gate = gate
        model = self._model()
        if model is not None:
            self._ends = [handle.remove for handle in hook_root(model, self)]
            self._ends += [*self.updates.listen(), collect_for(self)]

    @whole
    def close(self) -> None:
        """Publish the open step if its update happened, and take every hook off."""
        with self._turn:  # no step opens meanwhile on a thread that trains
            for end in self._ends:
                end()
            self.settle()
            self.taps.remove()
            self._accumulations.remove()
            self.eager.end()
            self.in_graphs.close()
            self.training.set_probes(())
            self.evaluation.set_probes(())
            self._buffers.clear()
            self.calls.wanted = False
            self.calls.by_thread.clear()

    def set_probes(self, probes: Iterable[Probe], model_map: ModelMap) -> None:
        """Measure exactly these from the next step on; only between steps."""
        probes, self.model_map = tuple(probes), model_map
        self._reads_batches = any(probe.quantity.is_of_batch for probe in probes)
        self.training.set_probes(probe for probe in probes if probe.phase == "training")
        self.evaluation.set_probes(probe for probe in probes if probe.phase == "eval")
        self._buffers = {}
        called = {probe.place for probe in self.training.probes if is_of_calls(probe)}
        evaluated = {probe.place for probe in self.evaluation.probes}
        self.taps.set_places(model_map, called, evaluated)
        self._plan_graphs()
        if self._is_opening:
            self.taps.arm_evaluation(None)
        else:
            self._arm()
        self._reads_raw = any(probe.accumulations for probe in self.training.probes)
        self.has_to_prepare = self._reads_raw or self.eager.wanted or self.eager.acts
        self.has_to_prepare |= self.in_graphs.wanted
        self.prepare()

    def _plan_graphs(self) -> None:
        """Plan what compiled graphs read: all that is ever due, so that few graphs are needed."""
        wanted = self.training.probes if self.in_graphs.wanted else ()
        live = tuple(probe for probe in wanted if not probe.disabled and is_of_calls(probe))
        self.in_graphs.set_places(readings(self.model_map, live, (), {}))

    def keep_batch(self, batch: ProbeBatch) -> None:
        """Run the model on this one from now on, and compare with nothing of an earlier one."""
        self.replay.batch = batch
        self.training.forget_replays()

    def between_steps(self, act: Callable[[], None]) -> None:
        """Do something now if no step is open, and let none open meanwhile."""
        with self._turn:
            if self.training.frame is None:
                act()

    @property
    def probes(self) -> tuple[Probe, ...]:
        """Probes that are measured."""
        return (*self.training.probes, *self.evaluation.probes)

    @property
    def frame(self) -> DueFrame | None:
        """The open training step."""
        return self.training.frame

    @property
    def has_ended(self) -> bool:
        """True if the update of the open step has happened."""
        return self.training.frame is not None and self.clock.ready

    def watches(self, module: nn.Module) -> bool:
        """Return whether it is the watched model, not a shallow copy with the same hooks."""
        return self._model() is module

    def open_frame(self, rooted: bool = False) -> DueFrame:
        """Return the open step; open it when there is none, ``rooted`` at a call of the root."""
        frame = self.training.frame
        if frame is None:
            with self._turn:
                prepare = partial(self._prepare_step, rooted)
                frame = self.training.frame or self.training.open(self.clock.step, prepare)
                frame.is_unseen = not rooted
                self.in_graphs.join(frame)
            if frame.plan.replay:
                self.replay.read(frame, frame.plan.replay, self.model_map)
        return frame

    def _follow_at_rest(self, now: float) -> bool:
        """Continue from a step in which nothing was due to another one, if nothing waits.

        Called where the root's call begins it, at the time ``now``. Return False, with nothing
        done, where any party may have work.
        """
        training, clock, frame = self.training, self.clock, self.training.frame
        step = clock.step + 1
        if (
            frame is None
            or self.gate.waits
            or not (frame.plan is training.at_rest is self.taps.at_root)
            or step not in training.rests
            or step % LOOK_EVERY == 0
            or registrations.n != self._n_registered
            or self.evaluation.frame is not None
            or not clock.stepped
            or clock.explicit
            or not frame.is_untouched
        ):
            return False
        with self._turn, uninterrupted:
            if training.frame is not frame or not self._sink.pass_by(frame, now):
                return False
            training.follow(frame, now)
            clock.step, clock.stepped, self._gated = step, [], step
            self.most_forwards, self.n_forwards = max(self.most_forwards, self.n_forwards), 0
            self.updates.begin(at_rest=True)
        self.gate.reach(step)
        return True

    def boundary(self, rooted: bool = False) -> None:
        """Close the open step, let the gate act, open the next."""
        with self._turn:
            self._close_before_next()
        begun = time.perf_counter()
        held = self._pass_gate(to_open=True)
        frame = self.open_frame(rooted)
        spent = time.perf_counter() - begun - held - frame.seconds  # which it has counted itself
        frame.seconds += spent
        frame.begun -= spent
        optimizer = self.clock.inside
        if optimizer is not None:  # its closure's forward: it began before this step was open
            self.updates.read_before(self.clock, frame, optimizer)

    def end_step(self) -> None:
        """Close the step whose update has happened, and let the gate act; open none."""
        if self.ignores_updates:
            return
        if self.clock.ready:
            with self._turn:
                self._close_before_next()
        if self.training.frame is None:
            self._pass_gate()
            self.training.interval.begin()

    def settle(self) -> None:
        """Close the open step if an optimizer has stepped in it, and the evaluation."""
        with self._turn:
            self.clock.catch_up()
            if self.clock.has_stepped:
                self._close_frame()
            self.evaluation.close()
            self._sink.settled()
            self.training.interval.forget()

    def read_state(self, probes: Iterable[Probe]) -> DueFrame:
        """Read what these probes need of the state after the last update, if nothing else."""
        with self._turn:
            frame = self._build(tuple(probes), ()).frame(self.clock.step)
            frame.plan.reader.read_before(frame, None, set())
            frame.close()
        return frame

    def _close_before_next(self) -> None:
        if self.clock.has_stepped:
            self._close_frame()
        elif self.clock.has_raised:  # what was read for that update is forgotten
            self.clock.has_raised, self.n_forwards = False, 0
            self.updates.loss.begin_again()
            self.training.drop()
            self.in_graphs.forget()
        if self.evaluation.frame is not None:
            self.evaluation.close_before(self.clock.upcoming)

    def step(self) -> None:
        """Close the open step by hand; from then on steps close only so."""
        self.clock.explicit = True
        frame = self.open_frame()
        if not self.clock.has_stepped:  # no optimizer told us of this step
            self.updates.read_by_hand(frame)
            self.in_graphs.end_update()
        with self._turn:
            self._close_frame()
            self._close_before_next()
        self.prepare()
        self._pass_gate()

    @property
    def ignores_updates(self) -> bool:
        """True if optimizers and backward passes on this thread are ignored."""
        return self.is_silent or self.phase.is_past

    def _pass_gate(self, to_open: bool = False) -> float:
        """Pass the gate once per step, at its end or before the next; return the seconds held."""
        if self._gated == self.clock.step:
            return 0.0
        try:
            self._gated, self._is_opening = self.clock.step, to_open
            self._n_registered = registrations.n
            return self.gate.pass_to(self.clock.step)
        except BaseException:  # no step opens now; whoever trains on passes the gate again
            self._gated = -1
            self._arm()
            raise
        finally:
            self._is_opening = False

    @whole
    def _close_frame(self) -> None:
        self.clock.advance()
        self.most_forwards, self.n_forwards = max(self.most_forwards, self.n_forwards), 0
        if self.training.frame is not None and self.in_graphs.has_work:
            self._take_from_graphs(self.training.frame)
        self.training.close()

    def _take_from_graphs(self, frame: DueFrame) -> None:
        """Take what compiled graphs have read in the step that ends."""
        self.taps.called_in_graphs(self.in_graphs.fill(frame), frame.step)
        if has_compiled():
            self.in_graphs.look_for_unread(frame, self.model_map.by_every_path)

    def _prepare_step(self, rooted: bool, due: Readings) -> None:
        self._arm(due, everywhere=not rooted)
        self.updates.begin(due.are_none)

    def _build(self, due: tuple[Probe, ...], sampled: tuple[Probe, ...]) -> Readings:
        return readings(self.model_map, due, sampled, self._buffers)

    def _arm(self, due: Readings | None = None, everywhere: bool = True) -> None:
        """Put hooks where something is due; everywhere, while the root may not be called."""
        self.taps.arm(due, everywhere)
        self._accumulations.set(due.raw if due is not None else {})

    def update_is_over(self) -> None:
        """Note that an optimizer has stepped, and prepare for the next step."""
        self.in_graphs.end_update()
        self.prepare()

    def prepare(self) -> None:
        """Prepare for the next step: run it eagerly, if required, and hear of its gradients."""
        if self.eager.acts and self.phase.now is None:  # never while a call of the model runs
            self.eager.prepare(lambda: bool(self.training.upcoming(self.clock.upcoming).calls))
        if self.in_graphs.acts and self.phase.now is None:
            frame = self.training.frame
            is_unseen = frame is not None and frame.is_unseen
            # Else no schedule need be asked ahead.
            is_hidden = has_compiled() and (is_unseen or self.taps.may_be_compiled)
            upcoming = self.training.upcoming(self.clock.upcoming) if is_hidden else None
            self.in_graphs.prepare(upcoming)
        if self._reads_raw:
            self._accumulations.add(self.training.upcoming(self.clock.upcoming).raw)

    def leave(self, output: object) -> None:
        """Note that a call of the root ends; without an output if it raised."""
        begun, phase, frame = time.perf_counter(), self.phase, self.training.frame
        phase.now = phase.outer.pop() if phase.outer else None
        if phase.now is None and self.forwards.part is not None:
            self.forwards.end(output)
        if phase.now is None and self._sampled is not None:
            self._end_sampled(output)
        if output is None and self.calls.wanted:
            self.calls.forget_last()
        if frame is not None:
            frame.seconds += time.perf_counter() - begun + self._call_s

    def enter(self, root: nn.Module, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
        """Note that a call of the root begins, with these arguments."""
        if self.is_silent:
            return
        begun = time.perf_counter()
        if not self.phase.enter(root):
            return
        self.forwards.part = None
        if self._sampled is not None:  # torch runs no hook after a call that was interrupted
            self._end_sampled(None)
        if self.phase.now != "training":
            self._enter_untrained(root, args, kwargs)
            return
        self.unswitched.n_trained = 0
        clock = self.clock
        is_over = clock.stepped and clock.begun is None and not clock.explicit  # nearly always
        if self.training.frame is None or is_over or clock.ready:
            self.calls.by_thread.clear()
            try:
                if not self._follow_at_rest(begun):
                    before = time.perf_counter() - begun
                    self.boundary(rooted=True)  # it counts itself, and a pause is no cost
                    begun = time.perf_counter() - before
            except BaseException:
                self.phase.leave()
                raise
        self.n_forwards, self.was_rooted = self.n_forwards + 1, True
        frame = self.training.frame or self.open_frame(rooted=True)
        frame.is_unseen = False
        if self.calls.wanted:
            self.calls.keep(args, kwargs, self.model_map)
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
            self.gate.wake()  # for those who look at evaluations
            self._open_evaluation()
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

    def called(self, module: nn.Module) -> tuple[Phase | None, StepFrame | None]:
        """Phase and frame of a call of ``module``, also where the root was not entered."""
        if self.is_silent:
            return None, None
        phase = root_phase = self.phase.now
        if phase is None or (phase == "training") != torch.is_grad_enabled():
            phase = self._phase_without_root(module)
            root_phase = self.phase.now
        if phase == "evaluation":
            return phase, self._open_evaluation()
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
                self.boundary()
        return phase

    def _open_evaluation(self) -> DueFrame | None:
        """Open the frame of the present evaluation: the state after so many updates."""
        track, step = self.evaluation, self.clock.upcoming
        if self.phase.is_past or not track.probes:
            return track.frame
        if track.frame is None and step <= track.last_step:  # this state has been recorded
            return None
        if track.frame is None or track.frame.step != step:
            with self._turn:
                track.close()
                track.open(step, self.taps.arm_evaluation)
        return track.frame

    def take_batch(self, values: Mapping[str, Sequence[Tensor]]) -> None:
        """Read what the loop knows of the batch that it trains or evaluates."""
        self.batch_names.update(values)
        if (frame := self._frame_of_batch(values)) is not None:
            take(frame, frame.plan.batch, frame.plan.batch_needs, values)

    def _frame_of_batch(self, values: Mapping[str, Sequence[Tensor]]) -> DueFrame | None:
        """Return the open frame of the batch; a result of a forward belongs to the open step."""
        root = self._model()
        if self.is_silent or root is None or not self._reads_batches:
            return None
        if self.phase.of(root) == "evaluation":
            return self._open_evaluation()
        every = (tensor for some in values.values() for tensor in some)
        is_result = any(tensor.grad_fn is not None for tensor in every)
        if self.training.frame is None or (self.clock.ready and not is_result):
            self.boundary(rooted=self.was_rooted)
        return self.training.frame

    def place_of(self, module: nn.Module) -> str | None:
        """Implement the Collector."""
        return None if self.is_silent else self.taps.place_of(module)

    def collected(
        self, module: nn.Module, place: str, name: str, value: Number, combine: Combine
    ) -> None:
        """Implement the Collector."""
        phase, frame = self.called(module)
        if phase == "training" and frame is not None:
            self.announce(place, name)
            frame.collect(place, name, value, combine)
