"""The alerts of a live run: rules are asked on the writer's thread, before each flush."""

from __future__ import annotations

import time
from abc import abstractmethod
from collections.abc import Callable

from notebook_probe.alerts import Alert, Alerts, Rule, Rules, Watcher, find_alerts, read_alerts
from notebook_probe.alerts.alert import ALERT
from notebook_probe.probes.reading.closed_steps import ClosedSteps
from notebook_probe.probes.step.probe import Probe
from notebook_probe.record.write.writer import RecordWriter
from notebook_probe.run.health.stale_probes import Stale
from notebook_probe.run.health.status import ProbeStatus
from notebook_probe.run.live_source import LiveSource

__all__ = ["Alarm", "Alerting"]

PROBES_S = 5.0
"""So often the probes themselves are looked at."""


class Alarm:
    """Asks the rules about rows that are handed over, and keeps what they say as events.

    Parameters
    ----------
    writer : RecordWriter
    steps : ClosedSteps
    probes : callable
        Every probe with its status, and the open step.
    """

    def __init__(
        self,
        writer: RecordWriter,
        steps: ClosedSteps,
        probes: Callable[[], tuple[list[Probe], list[ProbeStatus], int]],
    ) -> None:
        self._writer, self._steps, self._probes = writer, steps, probes
        self.rules = Rules(lambda: self._watcher.standing())
        self._watcher = Watcher(
            writer.source,
            self.rules,
            self._keep,
            failed=lambda step, text: writer.event(step, "error", text),
            first_step=writer.first_step,
            told=read_alerts(writer.source.events),
        )
        self._stale = Stale()
        self._asked = time.monotonic()

    def bring(self) -> None:
        """Hand over the rows that wait, and look at them; called before each flush."""
        self._steps.record()
        self._watcher.look(wait=False)
        if time.monotonic() - self._asked > PROBES_S:
            self.look_at_probes()

    def look(self, *, whole: bool = False) -> None:
        """Look at all that was recorded so far."""
        self._watcher.look(whole=whole)

    def look_at_probes(self) -> None:
        """Ask which probes have fallen silent."""
        self._asked = time.monotonic()
        rule = self.rules.get("stale_probe")
        if rule is not None:
            self._watcher.ask(rule, lambda: self._stale.look(*self._probes(), rule))

    def _keep(self, alert: Alert) -> None:
        self._writer.event(alert.step, ALERT, alert.text, alert.detail)


class Alerting(LiveSource):
    """A live Source with its alerts."""

    name: str
    _alarm: Alarm

    @property
    @abstractmethod
    def closed(self) -> bool: ...

    @property
    def alerts(self) -> Alerts:
        """What the rules have found so far: each once, with its step, its place and the numbers.

        They are kept in the record, as events of kind ``"alert"``. The rules are asked every
        second or so while rows are written, off the training thread; asking for the alerts asks
        them now.

        Examples
        --------
        >>> run.alerts  # doctest: +SKIP
        step 412: dead_units at layer2.relu: 63% of the units were never above zero, ...
        """
        if not self.closed:
            self._steps.drain()
            self._alarm.look()
            self._alarm.look_at_probes()
        return read_alerts(self.events)

    @property
    def rules(self) -> Rules:
        """The rules that are followed: every registered one, each of which can be edited.

        What is changed counts from the next rows on; what was said stays said.

        Examples
        --------
        >>> run.rules.edit("dead_units", most=0.3)  # doctest: +SKIP
        >>> del run.rules["lr_high"]  # doctest: +SKIP
        """
        return self._alarm.rules

    def find_alerts(self, *rules: Rule) -> Alerts:
        """What these rules find in all that is recorded; nothing is kept.

        Without rules, those of this run.

        Raises
        ------
        RuleError
            When a rule fails.

        Examples
        --------
        >>> run.find_alerts(run.rules["dead_units"].but(most=0.3))  # doctest: +SKIP
        """
        return find_alerts(self, *(rules or self.rules.values()))
