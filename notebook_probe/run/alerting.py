"""The alerts of a live run: rules are applied on the writer's thread, before each flush."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from functools import partial

from notebook_probe.alerts import Alert, Rule, Watcher, read_alerts, read_remarks
from notebook_probe.alerts.alert import ALERT, REMARK
from notebook_probe.alerts.track import Onset
from notebook_probe.probes.reading.closed_steps import ClosedSteps
from notebook_probe.record.write.writer import RecordWriter
from notebook_probe.run.attach.probe_set import ProbeSet
from notebook_probe.run.attach.whole_steps import WholeSteps
from notebook_probe.run.breakpoints.breakpoints import Breakpoints
from notebook_probe.run.facts.reference_watch import ReferenceWatch
from notebook_probe.run.flight.recorder import FlightRecorder
from notebook_probe.run.gate import Gate
from notebook_probe.run.health.probe_statuses import ProbeStatuses
from notebook_probe.run.health.stale_probes import StaleProbes
from notebook_probe.run.looks.kept_batches import KeptBatches
from notebook_probe.run.output.kept_output import KeptOutput
from notebook_probe.uninterrupted import whole

__all__ = ["Alarm"]

PROBES_S = 5.0
"""Seconds between two checks of the probes."""
SHARE = 0.01
"""Share of a core that checking the probes may take."""


class Alarm:
    """Apply the rules to recorded rows, and store their findings as events.

    Parameters
    ----------
    writer : RecordWriter
    steps : ClosedSteps
    probes : ProbeSet
    statuses : ProbeStatuses
        Status of each probe.
    found : mapping of str to callable
        By rule: returns the findings on the training thread since the last call.
    facts : callable
        Returns the facts found since the last call, each with the name of its rule.
    may_be_meant : callable
        Tells whether a rule's trouble at a step is expected, so that what begins there is a remark.
    gate : Gate
        Has the open step.
    rules : mapping of str to Rule
        Rules that are followed; may be edited.
    breakpoints : Breakpoints
        Receive each alert.
    flight : FlightRecorder
        Writes what it keeps at each.
    whole : WholeSteps
        Asked to measure the steps after each.
    references : ReferenceWatch
        Compares the rows with good runs.
    batches : KeptBatches
        Records the batches of alerts.
    output : KeptOutput
        Records what is printed.
    """

    def __init__(
        self,
        writer: RecordWriter,
        steps: ClosedSteps,
        probes: ProbeSet,
        statuses: ProbeStatuses,
        found: Mapping[str, Callable[[], list[Onset]]],
        facts: Callable[[], list[tuple[str, Onset]]],
        may_be_meant: Callable[[str, int], bool],
        gate: Gate,
        rules: Mapping[str, Rule],
        breakpoints: Breakpoints,
        flight: FlightRecorder,
        whole: WholeSteps,
        references: ReferenceWatch,
        batches: KeptBatches,
        output: KeptOutput,
    ) -> None:
        self._writer, self._steps = writer, steps
        self._probes, self._statuses, self._gate = probes, statuses, gate
        self._found, self._facts = found, facts
        self._rules, self._breakpoints, self._flight = rules, breakpoints, flight
        self._whole = whole
        self._watcher = Watcher(
            writer.source,
            rules,
            self._keep,
            failed=lambda step, text: writer.event(step, "error", text),
            first_step=writer.first_step,
            earlier=[*read_alerts(writer.source.events), *read_remarks(writer.source.events)],
            may_be_meant=may_be_meant,
        )
        self._references, self._batches, self._output = references, batches, output
        self._stale = StaleProbes()
        self._next_look = time.monotonic() + PROBES_S

    def bring(self) -> None:
        """Hand over the rows that wait, and look at them; called before each flush."""
        self._steps.record()
        self._references.look_in_turn()
        self._take_found()
        self._watcher.look(wait=False)
        self._batches.learn()
        self._output.record()
        if time.monotonic() > self._next_look:
            self.look_at_probes()

    @whole
    def look(self, *, whole: bool = False) -> None:
        """Check everything recorded so far."""
        self._take_found()
        self._watcher.look(whole=whole)

    def states(self) -> dict[str, str]:
        """Return the state of each rule, as text."""
        return self._watcher.states()

    def look_at_probes(self) -> None:
        """Find the probes that have fallen silent."""
        begun_s = time.thread_time()
        rule = self._rules.get("stale_probe")
        if rule is not None:
            probes, step = self._probes.wanted, self._gate.step
            statuses = self._statuses.of(probes, step)
            self._watcher.ask(rule, lambda: self._stale.look(probes, statuses, step, rule))
        cost_s = time.thread_time() - begun_s
        self._next_look = time.monotonic() + max(PROBES_S, cost_s / SHARE)

    def look_at_references(self) -> None:
        """Compare everything recorded so far with the references."""
        self._references.look()

    def _take_found(self) -> None:
        """Report the findings of the training thread, which know more than the rows of a step."""
        for name, take in self._found.items():
            rule, found = self._rules.get(name), take()
            if rule is not None and found:
                self._watcher.ask(rule, partial(list, found))
        for name, fact in self._facts():
            rule = self._rules.get(name)
            if rule is not None:
                self._watcher.ask(rule, partial(list, [fact]))

    def _keep(self, alert: Alert) -> None:
        kind = REMARK if alert.is_remark else ALERT
        self._writer.event(alert.step, kind, alert.text, alert.detail)
        self._whole.ask(alert.step, f"{alert.rule} was found at step {alert.step}")
        if alert.is_remark:
            return
        self._batches.told(alert)
        self._breakpoints.told(alert)
        self._flight.happened(f"{alert.rule} fired at step {alert.step}")
