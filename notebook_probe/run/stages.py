"""Parts of a run in the order in which they are made: each stage uses the ones before it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Self

from torch import nn

from notebook_probe.alerts import Rules
from notebook_probe.alerts.builtin.references import DIFFERS
from notebook_probe.model.map import ModelMap
from notebook_probe.probes.observer import Observer
from notebook_probe.probes.reading.closed_steps import ClosedSteps
from notebook_probe.probes.step.budget import Budget
from notebook_probe.probes.step.compiled import is_compiled
from notebook_probe.probes.step_clock import StepClock
from notebook_probe.record.views.xarray_views import RunSource
from notebook_probe.record.write.writer import RecordWriter
from notebook_probe.run.alerting import Alarm
from notebook_probe.run.attach.attachment import denser
from notebook_probe.run.attach.probe_requests import ProbeRequests
from notebook_probe.run.attach.probe_set import ProbeSet
from notebook_probe.run.attach.requests import (
    BuildGraph,
    CompareWith,
    EditRule,
    ExamineModel,
    LookAt,
    Release,
    Scale,
    Set,
)
from notebook_probe.run.attach.whole_steps import WholeSteps
from notebook_probe.run.backfill import PastSteps
from notebook_probe.run.between_steps import BetweenSteps
from notebook_probe.run.breakpoints.breakpoints import Breakpoints
from notebook_probe.run.breakpoints.check import BreakpointCheck
from notebook_probe.run.breakpoints.following_rows import FollowingRows
from notebook_probe.run.facts.facts import Facts
from notebook_probe.run.facts.reference_watch import ReferenceWatch
from notebook_probe.run.flight.recorder import FlightRecorder
from notebook_probe.run.from_call.examinations import Examinations
from notebook_probe.run.from_call.graphs import Graphs
from notebook_probe.run.gate import Gate
from notebook_probe.run.going_back.requests import EvaluateAt, GoBack, SaveCheckpoint
from notebook_probe.run.going_back.way_back import WayBack
from notebook_probe.run.health.forgotten_lines import (
    NeverCleared,
    TrainedUnswitched,
    UnswitchedMode,
)
from notebook_probe.run.health.meter import Meter
from notebook_probe.run.health.probe_statuses import ProbeStatuses
from notebook_probe.run.health.state import RunState
from notebook_probe.run.health.training_check import TrainingCheck
from notebook_probe.run.health.untrained import Untrained
from notebook_probe.run.health.why_silent import WhySilent
from notebook_probe.run.looks.kept_batches import KeptBatches
from notebook_probe.run.looks.looks import Looks
from notebook_probe.run.mirror.mirror import Mirrors
from notebook_probe.run.output.kept_output import KeptOutput
from notebook_probe.run.rows.row_keeper import RowKeeper
from notebook_probe.run.settings.rule_edits import edit, note_edit
from notebook_probe.run.settings.settings import Settings

__all__ = ["ControlParts", "MeasuringParts", "RecordingParts"]


@dataclass(frozen=True, eq=False, slots=True)
class RecordingParts:
    """Parts that make rows of what was measured."""

    writer: RecordWriter
    meter: Meter
    budget: Budget
    rows: RowKeeper
    breakpoints: Breakpoints
    flight: FlightRecorder
    steps: ClosedSteps

    @classmethod
    def of(
        cls,
        writer: RecordWriter,
        clock: StepClock,
        percent: float | None,
        n_flight: int,
        *,
        acts_here: bool,
    ) -> Self:
        budget, rows = Budget(writer, percent), RowKeeper(writer)
        meter = Meter(budget)
        breakpoints = Breakpoints(
            writer, lambda: clock.upcoming, rows.own_names, acts_here=acts_here
        )
        flight = FlightRecorder(rows, writer, n_flight, lambda: rows.in_memory, rows.own_names)
        steps = ClosedSteps(FollowingRows(flight, breakpoints), meter)
        flight.bring = steps.drain
        return cls(
            writer=writer,
            meter=meter,
            budget=budget,
            rows=rows,
            breakpoints=breakpoints,
            flight=flight,
            steps=steps,
        )


@dataclass(frozen=True, eq=False, slots=True)
class MeasuringParts:
    """Parts that measure the model, and change what is measured."""

    observer: Observer
    probes: ProbeSet
    settings: Settings
    looks: Looks
    past: PastSteps
    statuses: ProbeStatuses

    @classmethod
    def of(
        cls, model: nn.Module, model_map: ModelMap, clock: StepClock, recording: RecordingParts
    ) -> Self:
        writer, rows, steps = recording.writer, recording.rows, recording.steps
        observer = Observer(model, model_map, clock, steps, recording.budget, writer.last_evaluated)
        observer.taps.is_static = is_compiled(model)
        probes = ProbeSet(model, model_map, observer, rows, writer)
        return cls(
            observer,
            probes,
            Settings(lambda: observer.updates.optimizers, writer),
            Looks(probes, writer, lambda: writer.source.events, observer.calls),
            PastSteps(writer, rows, steps, observer),
            ProbeStatuses(model, observer, WhySilent(model, observer, steps.scalars)),
        )


@dataclass(frozen=True, eq=False, slots=True)
class ControlParts:
    """Parts that act between two steps, and those that judge what was recorded."""

    gate: Gate
    whole: WholeSteps
    graphs: Graphs
    examinations: Examinations
    rules: Rules
    facts: Facts
    alarm: Alarm
    output: KeptOutput
    mirrors: Mirrors
    state: RunState
    way_back: WayBack
    references: ReferenceWatch

    @classmethod
    def of(
        cls,
        model: nn.Module,
        recording: RecordingParts,
        measuring: MeasuringParts,
        references: Sequence[RunSource],
    ) -> Self:
        writer, steps, breakpoints = recording.writer, recording.steps, recording.breakpoints
        observer, probes, flight = measuring.observer, measuring.probes, recording.flight
        whole = WholeSteps(observer.training, writer)
        between = BetweenSteps(probes, measuring.looks, flight, whole)
        gate = Gate(writer.first_step, between)
        whole.wake = gate.wake
        breakpoints.wake = gate.wake
        graphs = Graphs(
            probes,
            observer,
            writer,
            lambda: writer.source.events,
            gate.excuse,
            lambda: recording.meter.is_moving,
        )
        examinations = Examinations(probes, observer, writer, gate.excuse)
        rules = Rules(changed=lambda *edited: note_edit(writer, gate.step, *edited))
        batches = KeptBatches(measuring.looks, writer, observer.calls, rules)
        facts = Facts(model, observer, writer, rules, whole, batches)
        checks: tuple[TrainingCheck, ...] = (
            Untrained(model, observer.updates, rules),
            NeverCleared(observer.updates.uncleared, rules),
            UnswitchedMode(observer.unswitched, rules),
            TrainedUnswitched(model, observer.unswitched, rules),
        )
        compared = ReferenceWatch(writer.source, references, rules, writer)
        found = {DIFFERS: compared.take, **{check.rule: check.take for check in checks}}
        between.lookers += *(check.look for check in checks), facts.look
        between.lookers += graphs.finish, examinations.finish
        clock = observer.clock  # alone: a stream may hold it longer than the run is held
        output = KeptOutput(writer, lambda: clock.upcoming)
        alarm = Alarm(
            writer=writer,
            steps=steps,
            probes=probes,
            statuses=measuring.statuses,
            found=found,
            facts=facts.take,
            may_be_meant=facts.may_be_meant,
            gate=gate,
            rules=rules,
            breakpoints=breakpoints,
            flight=flight,
            whole=whole,
            references=compared,
            batches=batches,
            output=output,
        )
        rules.show_states(alarm.states)
        look = partial(alarm.look, whole=True)
        gate.ask(
            BreakpointCheck(
                breakpoints,
                steps,
                look,
                lambda: gate.is_followed,
                lambda: gate.resumed_by,
                batches,
            )
        )
        mirrors = Mirrors(writer, steps.drain)
        state = RunState(
            writer=writer,
            rows=recording.rows,
            steps=steps,
            observer=observer,
            gate=gate,
            meter=recording.meter,
            budget=recording.budget,
            mirrors=mirrors,
            breakpoints=breakpoints,
            flight=flight,
        )
        way_back = WayBack(
            lambda: gate.is_pausing or state.trains_in_background,
            gate.leave,
            lambda request: denser(request, probes.model_map),
        )
        between.acts |= {
            **ProbeRequests(probes, observer.training.limit).acts(),
            **dict.fromkeys((Set, Scale, Release), measuring.settings.apply),
            LookAt: measuring.looks.apply,
            BuildGraph: graphs.apply,
            ExamineModel: examinations.apply,
            EditRule: lambda request, step: edit(rules, request),
            CompareWith: lambda request, step: compared.choose(request.runs, step),
            **breakpoints.acts(),
            **dict.fromkeys((GoBack, EvaluateAt), way_back.apply),
            SaveCheckpoint: way_back.save,
        }
        return cls(
            gate=gate,
            whole=whole,
            graphs=graphs,
            examinations=examinations,
            rules=rules,
            facts=facts,
            alarm=alarm,
            output=output,
            mirrors=mirrors,
            state=state,
            way_back=way_back,
            references=compared,
        )
