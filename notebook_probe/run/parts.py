"""What a run is composed of: parts with one job each, made whole before the model is hooked."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

from torch import nn

from notebook_probe.model.map import ModelMap
from notebook_probe.probes.observer import Observer
from notebook_probe.probes.reading.closed_steps import ClosedSteps
from notebook_probe.probes.step.budget import Budget
from notebook_probe.probes.step.compiled import is_compiled
from notebook_probe.record.write.writer import RecordWriter
from notebook_probe.run.alerting import Alarm
from notebook_probe.run.attach.probe_set import Attachment, ProbeSet
from notebook_probe.run.attach.requests import Request, Ticket
from notebook_probe.run.backfill import PastSteps
from notebook_probe.run.between_steps import BetweenSteps
from notebook_probe.run.costs import CostAccount
from notebook_probe.run.gate import Gate
from notebook_probe.run.health.catalogue import QuantityCatalogue
from notebook_probe.run.health.meter import Meter
from notebook_probe.run.health.probe_statuses import ProbeStatuses
from notebook_probe.run.health.state import RunState
from notebook_probe.run.health.why_silent import WhySilent
from notebook_probe.run.live_source import LiveSource
from notebook_probe.run.loop_log import LoopLog
from notebook_probe.run.mirror.mirror import Mirrors
from notebook_probe.run.rows.row_keeper import RowKeeper
from notebook_probe.run.settings.settings import Settings

__all__ = ["RunParts"]


@dataclass(frozen=True, eq=False, slots=True)
class RunParts:
    """The parts of one run; all hold the model weakly, and none knows the run.

    Attributes
    ----------
    writer : RecordWriter
        Keeps the record.
    meter : Meter
        How fast steps come, and what watching costs of them.
    costs : CostAccount
        Takes in the time of each step.
    rows : RowKeeper
        Makes rows of measured steps.
    steps : ClosedSteps
        Makes numbers of closed steps.
    observer : Observer
        Measures, step by step.
    probes : ProbeSet
        What is wanted, and between two steps what is measured.
    settings : Settings
        What can be set while it trains.
    gate : Gate
        Where requests act, and training waits.
    probe_statuses : ProbeStatuses
        What became of each probe, and why one is silent.
    catalogue : QuantityCatalogue
        What can be attached.
    state : RunState
        How the run does.
    source : LiveSource
        What was recorded, and the open step.
    past : PastSteps
        Writes into steps that have passed.
    loop_log : LoopLog
        Puts what is logged where it belongs.
    alarm : Alarm
        Applies the rules to what is recorded.
    mirrors : Mirrors
        Hand on what is recorded.
    """

    writer: RecordWriter
    meter: Meter
    costs: CostAccount
    rows: RowKeeper
    steps: ClosedSteps
    observer: Observer
    probes: ProbeSet
    settings: Settings
    gate: Gate
    probe_statuses: ProbeStatuses
    catalogue: QuantityCatalogue
    state: RunState
    source: LiveSource
    past: PastSteps
    loop_log: LoopLog
    alarm: Alarm
    mirrors: Mirrors

    @classmethod
    def of(
        cls,
        model: nn.Module,
        model_map: ModelMap,
        writer: RecordWriter,
        percent: float | None,
    ) -> Self:
        """Make the parts of a run that records ``model``, at so much per cent of step time.

        Nothing is hooked.
        """
        meter, budget = Meter(), Budget(writer, percent)
        costs = CostAccount(meter, budget)
        rows = RowKeeper(writer)
        steps = ClosedSteps(rows, costs)
        observer = Observer(
            model, model_map, writer.first_step, steps, budget, writer.last_evaluated
        )
        observer.taps.is_static = is_compiled(model)
        probes = ProbeSet(model, model_map, observer, rows, writer)
        settings = Settings(lambda: observer.updates.optimizers, writer)
        gate = Gate(writer.first_step, BetweenSteps(probes, settings))
        past = PastSteps(writer, rows, steps, observer)
        why_silent = WhySilent(model, observer, steps.scalars)
        probe_statuses = ProbeStatuses(model, observer, why_silent)
        mirrors = Mirrors(writer, steps.drain)
        return cls(
            writer=writer,
            meter=meter,
            costs=costs,
            rows=rows,
            steps=steps,
            observer=observer,
            probes=probes,
            settings=settings,
            gate=gate,
            probe_statuses=probe_statuses,
            catalogue=QuantityCatalogue(),
            state=RunState(writer, rows, steps, observer, gate, meter, budget, mirrors),
            source=LiveSource(writer, rows, steps, observer),
            past=past,
            loop_log=LoopLog(rows, steps, observer, past),
            alarm=Alarm(writer, steps, probes, probe_statuses, gate),
            mirrors=mirrors,
        )

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

    def end_loop(self, error: BaseException | None) -> None:
        """Close the last step of a loop that has come to its end, or was ended by an error."""
        self.observer.settle()
        self.steps.drain()
        self.state.rest(error)

    def begin(self, first_probes: Attachment) -> None:
        """Hook the model and measure these probes; the last thing that is done.

        Where another thread is in the midst of a step, measuring begins with the next one.
        """
        first, resumed = self.writer.first_step, self.writer.continued
        if resumed:
            self.writer.event(first, "resume", "the training goes on")
        self.probes.add(first_probes)
        self.alarm.look()  # back at what a resumed record holds
        self.writer.feed(self.alarm.bring)
        self.observer.hook(self.gate)
        self.observer.between_steps(lambda: self.probes.begin(first, resumed))

    def change_between_steps(self) -> None:
        """Let what is wanted act now when no step is open; else the gate does, at the next one."""
        if not self.gate.is_elsewhere:
            clock = self.observer.clock
            self.observer.between_steps(lambda: self.probes.change(clock.step))
