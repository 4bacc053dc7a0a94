"""Parts of a run, each with one job, complete before the model is hooked."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any, Self

import torch
from torch import nn

from notebook_probe.alerts import Rules
from notebook_probe.errors import ProbeError
from notebook_probe.model.map import ModelMap
from notebook_probe.probes.observer import Observer
from notebook_probe.probes.reading.closed_steps import ClosedSteps
from notebook_probe.probes.step_clock import StepClock
from notebook_probe.record.views.xarray_views import RunSource
from notebook_probe.record.write.writer import RecordWriter
from notebook_probe.run.alerting import Alarm
from notebook_probe.run.attach.attachment import Attachment
from notebook_probe.run.attach.flight_probes import flight_probes
from notebook_probe.run.attach.looking_back import LookingBack
from notebook_probe.run.attach.probe_set import ProbeSet
from notebook_probe.run.attach.requests import Control, LookAt, Request, Ticket
from notebook_probe.run.attach.whole_steps import OTHER_PROBES, WholeSteps
from notebook_probe.run.backfill import PastSteps
from notebook_probe.run.background import Background
from notebook_probe.run.breakpoints.breakpoints import Breakpoints
from notebook_probe.run.facts.facts import Facts
from notebook_probe.run.facts.reference_watch import ReferenceWatch
from notebook_probe.run.flight.recorder import FlightRecorder
from notebook_probe.run.from_call.examinations import Examinations
from notebook_probe.run.from_call.graphs import Graphs
from notebook_probe.run.gate import Gate
from notebook_probe.run.going_back.way_back import WayBack
from notebook_probe.run.health.catalogue import QuantityCatalogue
from notebook_probe.run.health.meter import Meter
from notebook_probe.run.health.probe_statuses import ProbeStatuses
from notebook_probe.run.health.state import WANTED, RunState
from notebook_probe.run.live_source import LiveSource
from notebook_probe.run.looks.looks import Looks
from notebook_probe.run.loop.loop_log import LoopLog
from notebook_probe.run.loop.passes import DataPasses
from notebook_probe.run.mirror.mirror import Mirrors
from notebook_probe.run.output.kept_output import KeptOutput
from notebook_probe.run.rows.row_keeper import RowKeeper
from notebook_probe.run.settings.settings import Settings
from notebook_probe.run.stages import ControlParts, MeasuringParts, RecordingParts
from notebook_probe.uninterrupted import uninterrupted

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
    examinations : Examinations
        Checks of the model, made on request.
    whole : WholeSteps
        Measures the next steps whole once something has happened.
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
    output : KeptOutput
        Keeps what is printed.
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
    references : ReferenceWatch
        Compares the run with good ones.
    """

    writer: RecordWriter
    meter: Meter
    rows: RowKeeper
    steps: ClosedSteps
    observer: Observer
    probes: ProbeSet
    looking_back: LookingBack
    settings: Settings
    looks: Looks
    graphs: Graphs
    examinations: Examinations
    gate: Gate
    whole: WholeSteps
    probe_statuses: ProbeStatuses
    catalogue: QuantityCatalogue
    state: RunState
    source: LiveSource
    past: PastSteps
    loop_log: LoopLog
    passes: DataPasses
    rules: Rules
    alarm: Alarm
    output: KeptOutput
    mirrors: Mirrors
    breakpoints: Breakpoints
    flight: FlightRecorder
    way_back: WayBack
    facts: Facts
    references: ReferenceWatch

    @classmethod
    def of(
        cls,
        model: nn.Module,
        model_map: ModelMap,
        writer: RecordWriter,
        percent: float | None,
        rank: int | None = None,
        n_flight: int = 0,
        references: Sequence[RunSource] = (),
    ) -> Self:
        """Make the parts of a run that records ``model``, at so much per cent of step time.

        Nothing is hooked.
        """
        clock = StepClock(writer.first_step)
        recording = RecordingParts.of(writer, clock, percent, n_flight, acts_here=not rank)
        measuring = MeasuringParts.of(model, model_map, clock, recording)
        control = ControlParts.of(model, recording, measuring, references)
        return cls(
            writer=writer,
            meter=recording.meter,
            rows=recording.rows,
            steps=recording.steps,
            observer=measuring.observer,
            probes=measuring.probes,
            looking_back=LookingBack(
                measuring.probes, measuring.observer, recording.steps, writer, control.gate
            ),
            settings=measuring.settings,
            looks=measuring.looks,
            graphs=control.graphs,
            examinations=control.examinations,
            gate=control.gate,
            whole=control.whole,
            probe_statuses=measuring.statuses,
            catalogue=QuantityCatalogue(),
            state=control.state,
            source=LiveSource(writer, recording.rows, recording.steps, measuring.observer),
            past=measuring.past,
            loop_log=LoopLog(recording.rows, recording.steps, measuring.observer, measuring.past),
            passes=DataPasses(writer, lambda: clock.upcoming),
            rules=control.rules,
            alarm=control.alarm,
            output=control.output,
            mirrors=control.mirrors,
            breakpoints=recording.breakpoints,
            flight=recording.flight,
            way_back=control.way_back,
            facts=control.facts,
            references=control.references,
        )

    @property
    def kept_batch(self) -> tuple[tuple[Any, ...], dict[str, Any]] | None:
        """Arguments and keywords of the batch that `Run.probe_batch` has kept; None without one."""
        batch = self.observer.replay.batch
        return None if batch is None else (batch.args, batch.kwargs)

    def put(self, request: Request) -> Ticket:
        """Queue a request from any thread, at the step that a status tells."""
        ticket = Ticket(request, queued_step=self.observer.clock.upcoming)
        if self.way_back.starts_by(request):
            self.gate.answer(ticket)  # no step of a loop that has ended would
        else:
            self.gate.put(ticket)
        return ticket

    def train_in_background(self, function: Callable[[], Any]) -> Background:
        """Train in a thread; raises RuntimeError while an earlier one still runs."""
        # Two trainings of one model at a time would mix their steps.
        if self.state.trains_in_background:
            raise RuntimeError("training already runs in the background; press Stop or wait()")
        self.state.background = Background(
            function,
            on_end=self.end_loop,
            stop=partial(self.put, Control("stop")),  # not of a run, which may be dropped
            on_error=self.loop_raised,
            reached=self.gate.reached,
        )
        # Kept first: a request at one of its first steps asks whether the training is one.
        return self.state.background.start()

    def put_between_steps(self, request: Request) -> Ticket:
        """Queue a request; it acts at once when no step is open, after those before it."""
        ticket = self.put(request)
        if not self.gate.is_elsewhere:
            clock = self.observer.clock
            self.observer.steps.between_steps(lambda: self.gate.do_waiting(clock.step))
        return ticket

    def put_at_rest(self, request: Request) -> Ticket:
        """Answer a request at once if no step is under way, else queue it."""
        ticket = Ticket(request, queued_step=self.observer.clock.upcoming)
        self.observer.steps.at_rest(lambda: self.gate.answer(ticket))
        if ticket.state == "queued":
            self.gate.put(ticket)
        return ticket

    def look_at_rest(self, request: LookAt) -> Ticket | None:
        """Look now if no step is under way and the last inputs still exist; else return None."""
        done: list[str] = []
        with suppress(ProbeError), uninterrupted:  # a refusal is given where it is queued
            self.observer.steps.at_rest(lambda: done.append(self.looks.at_rest(request)))
        if not any(done):
            return None
        step = self.observer.clock.upcoming
        return Ticket(request, queued_step=step, state="applied", applied_step=step, text=done[0])

    def loop_raised(self, error: BaseException) -> None:
        """Pause a training that has raised, if requested, before it ends; Stop is no error."""
        if isinstance(error, KeyboardInterrupt):
            self._check_gradient_mode()
        if not isinstance(error, WANTED):
            self.gate.pause_on_error(self.observer.clock.upcoming, error)

    def end_loop(self, error: BaseException | None) -> None:
        """Close the last step of a loop that has ended, normally or by an error."""
        self.observer.steps.settle()
        self.steps.drain()
        self.looks.finish_all(self.observer.clock.step)
        self.graphs.finish(self.observer.clock.step)
        self.examinations.finish(self.observer.clock.step)
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
            self.writer.event(first, "resume", "training continues")
        self.references.begin(first)
        self.probes.add(first_probes)
        if self.flight.n_steps:
            self.probes.add(Attachment.resolved(flight_probes, self.probes.model_map))
        if resumed:
            self.looking_back.await_step(self.writer.source)
        self.alarm.look()  # back at what a resumed record holds
        self.writer.feed(self.alarm.bring)
        self.observer.hook(self.gate)
        self.facts.begin()
        self.observer.steps.between_steps(lambda: self.probes.begin(first, resumed))

    def change_between_steps(self) -> None:
        """Apply changes now if no step is open; else the gate does at the next boundary."""
        if not self.gate.is_elsewhere:
            clock = self.observer.clock
            self.observer.steps.between_steps(lambda: self._change_probes(clock.step))

    def _change_probes(self, step: int) -> None:
        if self.probes.change(step):
            self.whole.ask(step, OTHER_PROBES)
