"""Steps of one model, put together: each opens with what is due, closes, and passes the gate.

At each boundary, in this order: the open step closes and goes to the sink; the gate, if something
waits there, applies requests, waits while paused, or raises to stop; the next step opens and every
probe's schedule is asked once. An `Observer` sees the model's calls, and asks for boundaries.

While nothing is due and nothing waits at the gate, steps are at rest, and there is no boundary:

    forward      `follow_at_rest`: the frame moves on, and leaves its loss and costs in
                 ``passed`` of the sink; `KeptCalls` keeps the arguments
    backward     `backwards` checks the loss, and passes it to `StepLoss`
    update       `Updates.update_comes` and `step_ends`: the loss is applied, the step counts

Every quarter of a second the sink accounts for the steps that have passed. Whatever needs more,
such as a request, a logged number, an evaluation or an exception, is found by a flag or by a
missing condition, and the next boundary is a whole one.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable
from functools import partial

from torch import nn

from notebook_probe.model.changes import registrations
from notebook_probe.model.map import ModelMap
from notebook_probe.model.parameter_slots import Slot
from notebook_probe.probes.around_optimizer import Updates
from notebook_probe.probes.calls.tap import CallListener
from notebook_probe.probes.calls.taps import Taps
from notebook_probe.probes.due.building import readings
from notebook_probe.probes.due.due_probes import DueProbes
from notebook_probe.probes.due.readings import DueFrame, Readings
from notebook_probe.probes.inside.graph_readings import GraphReadings
from notebook_probe.probes.parameters.accumulations import AccumulationHooks
from notebook_probe.probes.parameters.weight_copy import WeightCopy
from notebook_probe.probes.reading.closed_steps import KEEP_S, ClosedSteps
from notebook_probe.probes.reading.plan import is_of_calls
from notebook_probe.probes.replay.probe_batch import ProbeBatch
from notebook_probe.probes.replay.replay import Replay
from notebook_probe.probes.step.budget import Budget
from notebook_probe.probes.step.compiled import EagerSteps, has_compiled
from notebook_probe.probes.step.forks import silence_in_children
from notebook_probe.probes.step.phase import PhaseOfThread
from notebook_probe.probes.step.probe import Probe
from notebook_probe.probes.step.sink import OpenGate, StepGate
from notebook_probe.probes.step_clock import StepClock
from notebook_probe.uninterrupted import whole

__all__ = ["StepSequence"]

MOST_PASSED = 512
"""Steps at rest that may wait until they are accounted for."""
LOOK_EVERY = 64
"""Steps after which the gate looks for work that was not announced, such as a full record."""
FIRST_LOOKS, LOOK_S = 1024, 0.5
"""Number of first steps with such looks, and seconds between two later ones: of short steps they
would cost as much as all the rest."""


class StepSequence:
    """Training steps and evaluations of one model, at most one of each open at a time.

    Parameters
    ----------
    model : nn.Module
        Held weakly.
    model_map : ModelMap
        Map of the model, until `set_probes` sets another.
    clock : StepClock
        At the step that opens first.
    sink : ClosedSteps
        Receives each closed `StepFrame`.
    budget : Budget
        Makes schedules due less often when watching costs too much.
    last_evaluated : int
        The last state of which there is an evaluation; -1 when there is none.
    listener : CallListener
        Notified of the calls of modules that are read; held weakly.

    Attributes
    ----------
    training, evaluation : DueProbes
        The probes of each phase, and the frame that is open for them.
    gate : StepGate
        Passed between two steps.
    turn : RLock
        Held while a step opens or closes: two threads may train one model.
    is_silent : bool
        True in a forked child: only the parent records.
    n_forwards, most_forwards : int
        Training calls of the root in the open step, and the most of any before.
    reads_batches : bool
        A probe reads what the loop hands over of its batches.
    has_to_prepare : bool
        `update_is_over` has work to do.
    look_before : frozenset of int
        Steps before which the gate is passed though nothing was announced.
    """

    def __init__(
        self,
        model: nn.Module,
        model_map: ModelMap,
        clock: StepClock,
        sink: ClosedSteps,
        budget: Budget,
        last_evaluated: int,
        listener: CallListener,
    ) -> None:
        self.model_map, self.clock = model_map, clock
        self.phase, self.eager = PhaseOfThread(), EagerSteps()
        self.training = DueProbes(self._build, sink.publish, budget)
        self.evaluation = DueProbes(self._build, sink.evaluated, Budget())
        self.evaluation.last_step = last_evaluated
        self.in_graphs = GraphReadings(model, self)
        self.taps, self.replay = Taps(listener, self.in_graphs), Replay(model)
        self.is_silent = False
        silence_in_children(self)
        self._gated, self._is_opening = -1, False  # opening: a step opens next, and arms
        self.gate: StepGate = OpenGate()
        self._sink, self.announce = sink, sink.announce
        self._n_registered = -1
        """Modules and parameters registered in this process when the gate was last passed."""
        self._looked_s = 0.0
        self._buffers: dict[Slot, WeightCopy] = {}
        self.updates = Updates(model, self)
        self._accumulations = AccumulationHooks(self.updates)
        self._reads_raw = self.reads_batches = self.has_to_prepare = False
        self.n_forwards = self.most_forwards = 0
        self.look_before: frozenset[int] = frozenset()
        self.turn = threading.RLock()

    @whole
    def close(self) -> None:
        """Publish the open step if its update happened, and measure nothing from now on."""
        self.settle()
        self.taps.remove()
        self._accumulations.remove()
        self.eager.end()
        self.in_graphs.close()
        self.training.set_probes(())
        self.evaluation.set_probes(())
        self._buffers.clear()

    def between_steps(self, act: Callable[[], None]) -> None:
        """Do something now if no step is open, and let none open meanwhile."""
        with self.turn:
            if self.training.frame is None:
                act()

    def at_rest(self, act: Callable[[], None]) -> None:
        """Do something now if no step is open but one whose update has happened.

        The last step of a training in a cell stays open until the next one begins.
        """
        with self.turn:
            if self.training.frame is None or self.has_ended:
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

    @property
    def ignores_updates(self) -> bool:
        """True if optimizers and backward passes on this thread are ignored."""
        return self.is_silent or self.phase.is_past

    def open_frame(self, rooted: bool = False) -> DueFrame:
        """Return the open step; open it when there is none, ``rooted`` at a call of the root."""
        frame = self.training.frame
        if frame is None:
            with self.turn:
                prepare = partial(self._prepare_step, rooted)
                frame = self.training.frame or self.training.open(self.clock.step, prepare)
                frame.is_unseen = not rooted
                self.in_graphs.join(frame)
            if frame.plan.replay:
                self.replay.read(frame, frame.plan.replay, self.model_map)
        return frame

    def _prepare_step(self, rooted: bool, due: Readings) -> None:
        self._arm(due, everywhere=not rooted)
        self.updates.begin(due.are_none)

    def follow_at_rest(self, now: float) -> bool:
        """Continue from a step in which nothing was due to another one, if nothing waits.

        Called where the root's call begins it, or an optimizer that will call a closure, at the
        time ``now``. Return False, with nothing done, where any party may have work.
        """
        training, clock, frame = self.training, self.clock, self.training.frame
        sink, step = self._sink, clock.step + 1
        if (
            frame is None
            or self.gate.waits
            or not (frame.plan is training.at_rest is self.taps.at_root)
            or step not in training.rests
            or (step % LOOK_EVERY == 0 and self._looks_before(step, now))
            or step in self.look_before
            or registrations.n != self._n_registered
            or self.evaluation.frame is not None
            or not clock.stepped
            or clock.explicit
            or sink.apart.early
            or sink.apart.state is not None
        ):
            return False
        with self.turn:
            begun = frame.begun
            if training.frame is not frame or not frame.moves_on(now, sink.passed):
                return False
            clock.stepped, self._gated = [], step
            clock.step = step
        if now - sink.recorded_s > KEEP_S or len(sink.passed) >= MOST_PASSED:
            sink.account_passed()
            if training.is_to_regroup:
                self.gate.wake()
        training.last_step = step - 1
        training.closed_s += now - begun
        frame.plan.n_steps += 1
        if self.n_forwards > self.most_forwards:
            self.most_forwards = self.n_forwards
        self.n_forwards = 0
        if frame.is_over:
            frame.is_over = False
            training.interval.forget()
        reached, updates = self.gate.reached, self.updates
        reached.step = step  # before the look: a thread that begins to wait does the reverse
        if step >= reached.first:
            reached.wake()
        if updates.thread != threading.get_ident():  # a training may continue on another thread
            self.gate.reach(step)
            updates.begin(at_rest=True)
        elif updates.loss.listens:
            updates.loss.witnesses.begin()
        return True

    def _has_work_between(self, step: int) -> bool:
        """Return whether the gate has work before ``step``: announced, or looked for in a while."""
        # `follow_at_rest` asks the same in place: a call more would be felt in steps at rest.
        return (
            self.gate.waits
            or step in self.look_before
            or registrations.n != self._n_registered
            or (step % LOOK_EVERY == 0 and self._looks_before(step, time.perf_counter()))
        )

    def _looks_before(self, step: int, now: float) -> bool:
        return step <= FIRST_LOOKS or now - self._looked_s > LOOK_S

    def catch_up(self) -> None:
        """Open the step of a frame that is a step ahead.

        No interrupt is deferred while a step follows another at rest, which would take as long as
        everything else. One may come in between.
        """
        frame = self.training.frame
        if frame is not None and frame.step > self.clock.step:
            self.clock.stepped, self._gated = [], frame.step
            self.clock.step = frame.step

    def open_evaluation(self) -> DueFrame | None:
        """Open the frame of the current evaluation: the state after a number of updates."""
        track, step = self.evaluation, self.clock.upcoming
        if self.phase.is_past or not track.probes:
            return track.frame
        if track.frame is None and step <= track.last_step:  # this state has been recorded
            return None
        if track.frame is None or track.frame.step != step:
            with self.turn:
                track.close()
                track.open(step, self.taps.arm_evaluation)
        return track.frame

    def boundary(self, rooted: bool = False) -> None:
        """Close the open step, let the gate act, open the next."""
        with self.turn:
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
        """Close the step whose update has happened, and let the gate act; open none.

        A step at rest stays open until the next forward if nothing waits.
        """
        if self.ignores_updates:
            return
        self.catch_up()
        frame = self.training.frame
        if frame is not None and self._stays_open(frame):
            self._gated = self.clock.step + 1
            self.gate.reach(self._gated)
            frame.is_over = True
            self.training.interval.begin()
            return
        if self.clock.ready:
            with self.turn:
                self._close_before_next()
        if self.training.frame is None:
            self._pass_gate()
            self.training.interval.begin()

    def _stays_open(self, frame: DueFrame) -> bool:
        """Return whether nothing has to be done between the step that is over and the next."""
        training, step = self.training, self.clock.step + 1
        return (
            frame.plan is training.at_rest
            and step in training.rests
            and self.clock.ready
            and not self.clock.explicit
            and self.evaluation.frame is None
            and not self._has_work_between(step)
        )

    def step(self) -> None:
        """Close the open step by hand; from then on steps close only so."""
        self.clock.explicit = True
        frame = self.open_frame()
        if not self.clock.has_stepped:  # no optimizer has reported this step
            self.updates.read_by_hand(frame)
            self.in_graphs.end_update()
        with self.turn:
            self._close_frame()
            self._close_before_next()
        self.prepare()
        self._pass_gate()

    def settle(self) -> None:
        """Close the open step if an optimizer has stepped in it, and the evaluation."""
        with self.turn:
            self.catch_up()
            self.clock.catch_up()
            if self.clock.has_stepped:
                self._close_frame()
            self.evaluation.close()
            self._sink.settled()
            self.training.interval.forget()

    def read_state(self, probes: Iterable[Probe]) -> DueFrame:
        """Read what these probes need of the state after the last update, if nothing else."""
        with self.turn:
            frame = self._build(tuple(probes), ()).frame(self.clock.step)
            frame.plan.reader.read_before(frame, None, set())
            frame.close()
        return frame

    def _pass_gate(self, to_open: bool = False) -> float:
        """Pass the gate once per step, at its end or before the next; return the seconds held."""
        step = self.clock.step
        if self._gated == step:
            return 0.0
        if to_open and not self._has_work_between(step):
            self._gated = step
            self.gate.reach(step)
            return 0.0
        try:
            self._gated, self._is_opening = step, to_open
            self._n_registered, self._looked_s = registrations.n, time.perf_counter()
            return self.gate.pass_to(step)
        except BaseException:  # no step opens now; the next call passes the gate again
            self._gated = -1
            self._arm()
            raise
        finally:
            self._is_opening = False

    def _close_before_next(self) -> None:
        frame = self.training.frame
        if frame is not None and frame.step > self.clock.step:
            self.catch_up()
        if self.clock.stepped:
            self._close_frame()
        elif self.clock.has_raised:  # what was read for that update is forgotten
            self.clock.has_raised, self.n_forwards = False, 0
            self.updates.loss.begin_again()
            self.training.drop()
            self.in_graphs.forget()
        if self.evaluation.frame is not None:
            self.evaluation.close_before(self.clock.upcoming)

    @whole
    def _close_frame(self) -> None:
        self.clock.advance()
        self.most_forwards, self.n_forwards = max(self.most_forwards, self.n_forwards), 0
        if self.training.frame is not None and self.in_graphs.has_work:
            self._take_from_graphs(self.training.frame)
        self.training.close()

    def _take_from_graphs(self, frame: DueFrame) -> None:
        """Take the readings of compiled graphs in the step that ends."""
        is_hidden = frame.is_unseen or (self.taps.may_be_compiled and not frame.has_parts)
        self.taps.called_in_graphs(self.in_graphs.fill(frame), frame.step)
        if self.in_graphs.last_step == frame.step:
            self.training.note_graphs()
        if has_compiled():
            self.in_graphs.look_for_unread(frame, self.model_map.by_every_path, is_hidden)

    def set_probes(self, probes: Iterable[Probe], model_map: ModelMap) -> None:
        """Measure exactly these from the next step on; only between steps."""
        probes, self.model_map = tuple(probes), model_map
        self.reads_batches = any(probe.quantity.is_of_batch for probe in probes)
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
        self._look_what_to_prepare()
        self.prepare()

    def _plan_graphs(self) -> None:
        """Plan what compiled graphs read: all that is ever due, so that few graphs are needed."""
        wanted = self.training.probes if self.in_graphs.wanted else ()
        live = tuple(probe for probe in wanted if not probe.disabled and is_of_calls(probe))
        self.in_graphs.set_places(readings(self.model_map, live, (), {}))

    def _build(self, due: tuple[Probe, ...], sampled: tuple[Probe, ...]) -> Readings:
        return readings(self.model_map, due, sampled, self._buffers)

    def _arm(self, due: Readings | None = None, everywhere: bool = True) -> None:
        """Put hooks where something is due; everywhere, while the root may not be called."""
        self.taps.arm(due, everywhere)
        self._accumulations.set(due.raw if due is not None else {})
        if self.in_graphs.wanted:
            self.in_graphs.look_at_compiled()
            self._look_what_to_prepare()

    def _look_what_to_prepare(self) -> None:
        """Note whether steps have to be prepared, as those of a model that may be compiled have."""
        is_compiled = self.in_graphs.wanted and self.taps.stay
        self.has_to_prepare = self._reads_raw or self.eager.acts or is_compiled

    def keep_batch(self, batch: ProbeBatch) -> None:
        """Run the model on this one from now on, and compare with nothing of an earlier one."""
        self.replay.batch = batch
        self.training.forget_replays()

    def update_is_over(self) -> None:
        """Note that an optimizer has stepped, and prepare for the next step."""
        self.in_graphs.end_update()
        self.prepare()

    def prepare(self) -> None:
        """Prepare for the next step: run it eagerly if required, and hook its gradients."""
        if self.eager.acts and self.phase.now is None:  # never while a call of the model runs
            self.eager.prepare(lambda: bool(self.training.upcoming(self.clock.upcoming).calls))
            if self.eager.wanted:
                self.in_graphs.rest()
        # The call that opens a step enters its graphs only after that.
        if self.in_graphs.acts and (self.phase.now is None or self._is_opening):
            frame = self.training.frame
            is_unseen = frame is not None and frame.is_unseen
            # Else no schedule need be asked ahead.
            is_hidden = has_compiled() and (is_unseen or self.taps.may_be_compiled)
            upcoming = self.training.upcoming(self.clock.upcoming) if is_hidden else None
            self.in_graphs.prepare(upcoming)
        if self._reads_raw:
            self._accumulations.add(self.training.upcoming(self.clock.upcoming).raw)
