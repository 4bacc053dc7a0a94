"""Parts of a run, each with one job, complete before the model is hooked."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from functools import partial
from typing import Any, Self

import torch
from torch import nn

from notebook_probe.alerts import Rules
from notebook_probe.model.map import ModelMap
from notebook_probe.probes.observer import Observer
from notebook_probe.probes.reading.closed_steps import ClosedSteps
from notebook_probe.probes.step.budget import Budget
from notebook_probe.probes.step.compiled import is_compiled
from notebook_probe.record.write.writer import RecordWriter
from notebook_probe.run.alerting import Alarm
from notebook_probe.run.attach.attachment import Attachment
from notebook_probe.run.attach.denser import denser
from notebook_probe.run.attach.flight_probes import flight_probes
from notebook_probe.run.attach.looking_back import LookingBack
from notebook_probe.run.attach.probe_set import ProbeSet
from notebook_probe.run.attach.requests import (
    BuildGraph,
    EditRule,
    LookAt,
    Release,
    Request,
    Scale,
    Set,
    Ticket,
)
from notebook_probe.run.backfill import PastSteps
from notebook_probe.run.between_steps import Act, BetweenSteps
from notebook_probe.run.breakpoints.breakpoints import Breakpoints
from notebook_probe.run.breakpoints.check import BreakpointCheck
from notebook_probe.run.breakpoints.following_rows import FollowingRows
from notebook_probe.run.breakpoints.requests import Break, EditBreak, Unbreak
from notebook_probe.run.costs import CostAccount
from notebook_probe.run.facts.facts import Facts
from notebook_probe.run.flight.recorder import FlightRecorder
from notebook_probe.run.gate import Gate
from notebook_probe.run.going_back.requests import EvaluateAt, GoBack
from notebook_probe.run.going_back.way_back import WayBack
from notebook_probe.run.graphs import Graphs
from notebook_probe.run.health.catalogue import QuantityCatalogue
from notebook_probe.run.health.meter import Meter
from notebook_probe.run.health.never_cleared import NeverCleared
from notebook_probe.run.health.probe_statuses import ProbeStatuses
from notebook_probe.run.health.state import WANTED, RunState
from notebook_probe.run.health.unswitched_mode import TrainedUnswitched, UnswitchedMode
from notebook_probe.run.health.untrained import Untrained
from notebook_probe.run.health.why_silent import WhySilent
from notebook_probe.run.live_source import LiveSource
from notebook_probe.run.looks.looks import Looks
from notebook_probe.run.loop.loop_log import LoopLog
from notebook_probe.run.loop.passes import DataPasses
from notebook_probe.run.mirror.mirror import Mirrors
from notebook_probe.run.rows.row_keeper import RowKeeper
from notebook_probe.run.settings.rule_edits import edit, note_edit
from notebook_probe.run.settings.settings import Settings

__all__ = ["RunParts"]

WITHOUT_GRADIENTS = (
    "the interrupt has left torch's gradient mode off, so that backward() will raise; "
    "torch.set_grad_enabled(True) turns it on"
)


@dataclass(frozen=True, eq=False, slots=True)
class RunParts:
    """The parts of one run; all hold the model weakly, and none knows the run.

    Attributes
    ----------
    writer : RecordWriter
        Keeps the record.
    meter : Meter
        Speed of the steps, and the overhead of watching.
    costs : CostAccount
        Account of the time of each step.
    rows : RowKeeper
        Makes rows of measured steps.
    steps : ClosedSteps
        Makes numbers of closed steps.
    observer : Observer
        Measures, step by step.
    probes : ProbeSet
        Wanted probes, and between two steps the measured ones.
    looking_back : LookingBack
        State of quantities that look back at earlier steps.
    settings : Settings
        Settings that can be changed during training.
    looks : Looks
        Tensors of modules that are kept on request.
    graphs : Graphs
        The model's graph, built on request.
    gate : Gate
        Applies requests, and blocks a paused training.
    probe_statuses : ProbeStatuses
        Status of each probe, and why one is silent.
    catalogue : QuantityCatalogue
        Attachable quantities.
    state : RunState
        State of the run.
    source : LiveSource
        Recorded rows, and the open step.
    past : PastSteps
        Writes into steps that have passed.
    loop_log : LoopLog
        Puts what is logged where it belongs.
    passes : DataPasses
        Notes passes through the training data.
    rules : Rules
        Rules for the recorded series.
    alarm : Alarm
        Applies the rules to what is recorded.
    mirrors : Mirrors
        Hand on what is recorded.
    breakpoints : Breakpoints
        Conditions that pause training.
    flight : FlightRecorder
        Keeps the last steps.
    way_back : WayBack
        To earlier steps, where the loop has one.
    facts : Facts
        Facts of execution.
    """

    writer: RecordWriter
    meter: Meter
    costs: CostAccount
    rows: RowKeeper
    steps: ClosedSteps
    observer: Observer
    probes: ProbeSet
    looking_back: LookingBack
    settings: Settings
    looks: Looks
    graphs: Graphs
    gate: Gate
    probe_statuses: ProbeStatuses
    catalogue: QuantityCatalogue
    state: RunState
    source: LiveSource
    past: PastSteps
    loop_log: LoopLog
    passes: DataPasses
    rules: Rules
    alarm: Alarm
    mirrors: Mirrors
    breakpoints: Breakpoints
    flight: FlightRecorder
    way_back: WayBack
    facts: Facts

    @classmethod
    def of(
        cls,
        model: nn.Module,
        model_map: ModelMap,
        writer: RecordWriter,
        percent: float | None,
        rank: int | None = None,
        n_flight: int = 0,
    ) -> Self:
        """Make the parts of a run that records ``model``, at so much per cent of step time.

        Nothing is hooked.
        """
        meter, budget = Meter(), Budget(writer, percent)
        costs = CostAccount(meter, budget)
        rows = RowKeeper(writer)
        breakpoints = Breakpoints(writer, lambda: observer.clock.upcoming, acts_here=not rank)
        flight = FlightRecorder(
            rows, writer, n_flight, lambda: rows.in_memory, lambda: steps.drain()
        )
        steps = ClosedSteps(FollowingRows(flight, breakpoints), costs)
        observer = Observer(
            model, model_map, writer.first_step, steps, budget, writer.last_evaluated
        )
        observer.taps.is_static = is_compiled(model)
        probes = ProbeSet(model, model_map, observer, rows, writer)
        settings = Settings(lambda: observer.updates.optimizers, writer)
        looks = Looks(probes, writer, lambda: writer.source.events)
        graphs = Graphs(
            *(probes, observer, writer, lambda: writer.source.events),
            excuse=lambda seconds: gate.excuse(seconds),
        )
        rules = Rules(lambda: alarm.states(), lambda *edited: note_edit(writer, gate.step, *edited))
        way_back = WayBack(
            lambda: gate.is_pausing or state.trains_in_background,
            lambda by: gate.leave(by),
            lambda request: denser(request, probes.model_map),
        )
        acts: dict[type, Act] = {
            **dict.fromkeys((Set, Scale, Release), settings.apply),
            LookAt: looks.apply,
            BuildGraph: graphs.apply,
            EditRule: lambda request, step: edit(rules, request),
            **dict.fromkeys((Break, EditBreak, Unbreak), breakpoints.apply),
            **dict.fromkeys((GoBack, EvaluateAt), way_back.apply),
        }
        untrained = Untrained(model, observer.updates, rules)
        facts = Facts(model, observer, writer, rules)
        never_cleared = NeverCleared(observer.updates.uncleared, rules)
        unswitched = UnswitchedMode(observer.unswitched, rules)
        trained = TrainedUnswitched(model, observer.unswitched, rules)
        found = {
            "untrained_adapter": untrained.take,
            "uncleared_gradients": never_cleared.take,
            "evaluated_in_training_mode": unswitched.take,
            "trained_in_evaluation_mode": trained.take,
        }
        of_modes = unswitched.look, trained.look
        lookers = untrained.look, never_cleared.look, *of_modes, graphs.finish, facts.look
        gate = Gate(writer.first_step, BetweenSteps(probes, looks, flight, acts, lookers))
        breakpoints.wake = gate.wake
        past = PastSteps(writer, rows, steps, observer)
        why_silent = WhySilent(model, observer, steps.scalars)
        probe_statuses = ProbeStatuses(model, observer, why_silent)
        mirrors = Mirrors(writer, steps.drain)
        alarm = Alarm(
            *(writer, steps, probes, probe_statuses, found, facts.take, gate, rules),
            *(breakpoints, flight),
        )
        state = RunState(
            writer, rows, steps, observer, gate, meter, budget, mirrors, breakpoints, flight
        )
        look = partial(alarm.look, whole=True)
        gate.ask(BreakpointCheck(breakpoints, steps, look, lambda: gate.is_followed))
        return cls(
            writer=writer,
            meter=meter,
            costs=costs,
            rows=rows,
            steps=steps,
            observer=observer,
            probes=probes,
            looking_back=LookingBack(probes, observer, steps, writer, gate),
            settings=settings,
            looks=looks,
            graphs=graphs,
            gate=gate,
            probe_statuses=probe_statuses,
            catalogue=QuantityCatalogue(),
            state=state,
            source=LiveSource(writer, rows, steps, observer),
            past=past,
            loop_log=LoopLog(rows, steps, observer, past),
            passes=DataPasses(writer, lambda: observer.clock.upcoming),
            rules=rules,
            alarm=alarm,
            mirrors=mirrors,
            breakpoints=breakpoints,
            flight=flight,
            way_back=way_back,
            facts=facts,
        )

    @property
    def kept_batch(self) -> tuple[tuple[Any, ...], dict[str, Any]] | None:
        """Arguments and keywords of the batch that `Run.probe_batch` has kept; None without one."""
        batch = self.observer.replay.batch
        return None if batch is None else (batch.args, batch.kwargs)

    def put(self, request: Request) -> Ticket:
        """Queue a request from any thread, at the step that a status tells."""
        ticket = Ticket(request, queued_step=self.observer.clock.upcoming)
        self.gate.put(ticket)
        return ticket

    def put_between_steps(self, request: Request) -> Ticket:
        """Queue a request; it acts at once when no step is open, after those before it."""
        ticket = self.put(request)
        if not self.gate.is_elsewhere:
            clock = self.observer.clock
            self.observer.between_steps(lambda: self.gate.do_waiting(clock.step))
        return ticket

    def loop_raised(self, error: BaseException) -> None:
        """Pause a training that has raised, if requested, before it ends; Stop is no error."""
        if isinstance(error, KeyboardInterrupt):
            self._check_gradient_mode()
        if not isinstance(error, WANTED):
            self.gate.hold_on_error(self.observer.clock.upcoming, error)

    def end_loop(self, error: BaseException | None) -> None:
        """Close the last step of a loop that has ended, normally or by an error."""
        self.observer.settle()
        self.steps.drain()
        self.looks.finish_all(self.observer.clock.step)
        self.graphs.finish(self.observer.clock.step)
        if error is not None and not isinstance(error, WANTED):
            self.flight.happened(f"the loop raised {type(error).__name__}: {error}"[:200])
        if isinstance(error, KeyboardInterrupt):
            self._check_gradient_mode()
        self.flight.write_due()
        self.state.rest(error)

    def _check_gradient_mode(self) -> None:
        """Report that an interrupt within torch's own code has left the gradient mode off."""
        if not torch.is_grad_enabled():
            self.writer.event(self.observer.clock.step, "error", WITHOUT_GRADIENTS)
            warnings.warn(WITHOUT_GRADIENTS, stacklevel=2)

    def begin(self, first_probes: Attachment) -> None:
        """Add the hooks to the model and measure these probes; called last.

        If another thread is within a step, measuring starts with the next one.
        """
        first, resumed = self.writer.first_step, self.writer.continued
        if resumed:
            self.writer.event(first, "resume", "the training goes on")
        self.probes.add(first_probes)
        if self.flight.n_steps:
            self.probes.add(Attachment.resolved(flight_probes, self.probes.model_map))
        if resumed:
            self.looking_back.await_step(self.writer.source)
        self.alarm.look()  # back at what a resumed record holds
        self.writer.feed(self.alarm.bring)
        self.observer.hook(self.gate)
        self.facts.begin()
        self.observer.between_steps(lambda: self.probes.begin(first, resumed))

    def change_between_steps(self) -> None:
        """Apply changes now if no step is open; else the gate does at the next boundary."""
        if not self.gate.is_elsewhere:
            clock = self.observer.clock
            self.observer.between_steps(lambda: self.probes.change(clock.step))
