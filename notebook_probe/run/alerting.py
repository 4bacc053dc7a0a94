"""The alerts of a live run: rules are applied on the writer's thread, before each flush."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from functools import partial

from notebook_probe.alerts import Alert, Rule, Watcher, read_alerts
from notebook_probe.alerts.alert import ALERT
from notebook_probe.alerts.track import Finding
from notebook_probe.probes.reading.closed_steps import ClosedSteps
from notebook_probe.record.write.writer import RecordWriter
from notebook_probe.run.attach.probe_set import ProbeSet
from notebook_probe.run.breakpoints.breakpoints import Breakpoints
from notebook_probe.run.flight.recorder import FlightRecorder
from notebook_probe.run.gate import Gate
from notebook_probe.run.health.probe_statuses import ProbeStatuses
from notebook_probe.run.health.stale_probes import StaleProbes

__all__ = ["Alarm"]

PROBES_S = 5.0
"""So often the probes themselves are looked at."""
SHARE = 0.01
"""Of a core that looking at them may take."""


class Alarm:
    """Applies the rules to rows that are handed over, and keeps what they find as events.

    Parameters
    ----------
    writer : RecordWriter
    steps : ClosedSteps
    probes : ProbeSet
    statuses : ProbeStatuses
        What became of each probe.
    found : mapping of str to callable
        By rule: gives what was found on the training thread since it was called last.
    gate : Gate
        Knows the open step.
    rules : mapping of str to Rule
        Those that are followed; may be edited.
    breakpoints : Breakpoints
        Told of each alert.
    flight : FlightRecorder
        Writes what it keeps at each.
    """

    def __init__(
        self,
        writer: RecordWriter,
        steps: ClosedSteps,
        probes: ProbeSet,
        statuses: ProbeStatuses,
        found: Mapping[str, Callable[[], list[Finding]]],
        gate: Gate,
        rules: Mapping[str, Rule],
        breakpoints: Breakpoints,
        flight: FlightRecorder,
    ) -> None:
        self._writer, self._steps = writer, steps
        self._probes, self._statuses, self._gate = probes, statuses, gate
        self._found = found
        self._rules, self._breakpoints, self._flight = rules, breakpoints, flight
        self._watcher = Watcher(
            writer.source,
            rules,
            self._keep,
            failed=lambda step, text: writer.event(step, "error", text),
            first_step=writer.first_step,
            earlier=read_alerts(writer.source.events),
        )
        self._stale = StaleProbes()
        self._next_look = time.monotonic() + PROBES_S

    def bring(self) -> None:
        """Hand over the rows that wait, and look at them; called before each flush."""
        self._steps.record()
        self._watcher.look(wait=False)
        self._take_found()
        if time.monotonic() > self._next_look:
            self.look_at_probes()

    def look(self, *, whole: bool = False) -> None:
        """Look at all that was recorded so far."""
        self._watcher.look(whole=whole)
        self._take_found()

    def states(self) -> dict[str, str]:
        """What each rule is doing, in words."""
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

    def _take_found(self) -> None:
        """Say what was found on the training thread."""
        for name, take in self._found.items():
            rule, found = self._rules.get(name), take()
            if rule is not None and found:
                self._watcher.ask(rule, partial(list, found))

    def _keep(self, alert: Alert) -> None:
        self._writer.event(alert.step, ALERT, alert.text, alert.detail)
        self._breakpoints.told(alert)
        self._flight.happened(f"{alert.rule} fired at step {alert.step}")
