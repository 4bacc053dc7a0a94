"""All rules over a source: looks at the rows that have come since, and tells what it finds."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

from notebook_probe.alerts.alert import REMARK, Alert, rule_off, where
from notebook_probe.alerts.dense_loss import meant
from notebook_probe.alerts.flow_order import flow_order
from notebook_probe.alerts.following import names_of
from notebook_probe.alerts.rule import Flow, Rule
from notebook_probe.alerts.track import Indices, Onset, Track
from notebook_probe.record.format.schema import EVALUATION
from notebook_probe.record.format.source import Source, StreamView
from notebook_probe.record.views.branches.branches import IN_ORDER, read_name
from notebook_probe.record.views.branches.turns_taken import TurnsTaken

__all__ = ["Watcher"]


class Watcher:
    """Watch a source from a step on; may be called from any thread, one at a time.

    Rows that were written out of order are ignored.

    Parameters
    ----------
    source : Source
    rules : mapping of str to Rule
        Read at every look: what was changed counts from the rows after it.
    tell : callable
        Receives each alert.
    failed : callable
        ``failed(step, text)`` is called with a rule that raised; the rule is not called again until
        changed.
    first_step : int
        First step of findings.
    earlier : iterable of Alert
        Earlier alerts.
    may_be_meant : callable
        ``may_be_meant(rule, step)`` tells whether trouble of this kind is expected at a step, as in
        an experiment: what began there is a remark, and may be reported again afterwards.
    """

    def __init__(
        self,
        source: Source,
        rules: Mapping[str, Rule],
        tell: Callable[[Alert], None],
        failed: Callable[[int, str], None] = lambda step, text: None,
        first_step: int = 0,
        earlier: Sequence[Alert] = (),
        may_be_meant: Callable[[str, int], bool] = lambda rule, step: False,
    ) -> None:
        self._source, self._rules, self._tell, self._failed = source, rules, tell, failed
        self._next_step, self._may_be_meant = first_step, may_be_meant
        self._reported = _places(one for one in earlier if not one.is_remark)
        self._remarked = _places(one for one in earlier if one.is_remark)
        self._once = {one.rule for one in earlier}
        self._followed: dict[str, _Followed] = {}
        self._turns = TurnsTaken()
        self._orders: dict[tuple[tuple[str, ...], Flow | None], Indices] = {}
        self._n_modules = 0
        # The writer's thread looks before each flush, `Run.alerts` on the caller's thread.
        self._lock = threading.Lock()
        self._problem = ""

    def look(self, *, whole: bool = False, wait: bool = True) -> None:
        """Look at what has come since.

        Parameters
        ----------
        whole : bool
            Nothing more comes at the newest step: look at that as well where a rule compares
            several streams.
        wait : bool
            While another thread looks, wait for it instead of leaving it at that.
        """
        # A flush must not wait for a look on another thread: the next one sees the same rows.
        if self._lock.acquire(blocking=wait):
            try:
                self._look(whole)
                self._problem = ""
            except Exception as error:  # the record cannot be read, but is still written
                self._problem = f"{type(error).__name__}: {error}"
            finally:
                self._lock.release()

    def ask(self, rule: Rule, findings: Callable[[], Iterable[Onset]]) -> None:
        """Report findings from elsewhere, under a rule that has no series."""
        with self._lock:
            self._raise_alerts(rule.name, self._followed_now(rule.name, rule), findings)

    def states(self) -> dict[str, str]:
        """Return the state of each rule, in words."""
        views = _in_order(self._source)
        known = names_of(views)
        rules = [*self._rules.items()]
        return {name: self._stands(name, rule, views, known) for name, rule in rules}

    def _stands(
        self, name: str, rule: Rule, views: Sequence[StreamView], known: frozenset[str]
    ) -> str:
        followed = self._followed.get(name)
        problem = followed.problem if followed is not None and followed.rule is rule else ""
        if problem or self._problem:
            return f"off: {problem or self._problem}"
        missing = [one for one in meant(rule.quantities, views) if one not in known]
        return f"waits for {', '.join(missing)}" if missing else "on"

    def _look(self, whole: bool) -> None:
        views = _in_order(self._source)
        newest = max((_last_step(view) for view in views), default=-1)
        self._turns = TurnsTaken(self._source.events)
        known = [(view, names_of([view])) for view in views]
        for name, rule in [*self._rules.items()]:
            followed = self._followed_now(name, rule)
            if rule.quantities:
                look = partial(self._findings, name, followed, known, None if whole else newest)
                self._raise_alerts(name, followed, look)
        self._next_step = max(self._next_step, newest + 1)

    def _followed_now(self, name: str, rule: Rule) -> _Followed:
        """Return the progress of a rule; empty if it was changed."""
        if name not in self._followed or self._followed[name].rule is not rule:
            self._followed[name] = _Followed(rule)
        return self._followed[name]

    def _findings(
        self,
        name: str,
        followed: _Followed,
        known: Sequence[tuple[StreamView, frozenset[str]]],
        newest: int | None,
    ) -> Iterator[Onset]:
        """Yield the findings in new rows, for each stream of the rule's first quantity.

        Streams are ``known`` with the names of what they have.
        """
        rule, tracks = followed.rule, followed.tracks
        views = [view for view, _ in known]
        series = meant(rule.quantities, views)
        for view, names in known:
            if series[0] not in names:
                continue
            key = view.name, series
            if key not in tracks:  # it, or the rule, is new: there was nothing to say before
                reported = self._reported_of(name)
                order = partial(self._in_order, flow=rule.flow)
                tracks[key] = Track(rule, series, view, self._next_step, reported, order)
            others = [other for other in views if other is not view]
            alone = names.issuperset(series)
            track, before = tracks[key], None if alone else newest
            yield from track.look(view, others, before, self._turns)
            if newest is None:
                yield from track.end(view, others)

    def _in_order(self, labels: tuple[str, ...], flow: Flow | None) -> Indices:
        modules = self._source.modules
        if len(modules) != self._n_modules:  # which are only appended
            self._orders.clear()
            self._n_modules = len(modules)
        if (labels, flow) not in self._orders:  # the same for most rules
            self._orders[labels, flow] = flow_order(labels, modules, flow)
        return self._orders[labels, flow]

    def _raise_alerts(
        self, name: str, followed: _Followed, findings: Callable[[], Iterable[Onset]]
    ) -> None:
        if followed.problem:
            return
        try:
            for finding in findings():
                self._raise_alert(name, followed.rule, finding)
        except Exception as error:  # a user's rule; the other rules continue
            followed.problem = f"{type(error).__name__}: {error}"
            self._failed(self._next_step, rule_off(name, followed.problem))

    def _reported_of(self, name: str) -> frozenset[str]:
        known = self._reported | self._remarked
        return frozenset(module for rule, module in known if rule == name)

    def _raise_alert(self, name: str, rule: Rule, finding: Onset) -> None:
        """Report a finding, unless it was reported before; a remark may become an alert."""
        modules, severity = finding.modules, finding.severity or rule.severity
        known = self._reported | self._remarked if severity == REMARK else self._reported
        if rule.once == "run" and rule.again is None and name in self._once:
            return
        if rule.again is None:
            modules = tuple(one for one in modules if (name, one) not in known)
        if not modules:
            return
        is_meant = self._may_be_meant(name, finding.began[1])
        if not is_meant:
            self._once.add(name)
            told = self._remarked if severity == REMARK else self._reported
            told.update((name, module) for module in modules)
        text = f"{where(modules)}: {finding.sentence}"
        now = time.time_ns() // 1_000_000
        series = meant(rule.quantities, _in_order(self._source))
        of_rule = tuple(map(self._source.recorded_name, series))
        self._tell(
            Alert(
                rule=name,
                step=finding.step,
                text=text,
                modules=modules,
                quantities=finding.quantities or of_rule,
                view=rule.view,
                time_ms=now,
                severity=REMARK if is_meant else severity,
                flow=rule.flow,
                consequence_of=rule.consequence_of,
                began=finding.began,
            )
        )


@dataclass(slots=True)
class _Followed:
    """State of a rule at the last look, and its tracks by stream and series."""

    rule: Rule
    tracks: dict[tuple[str, tuple[str, ...]], Track] = field(default_factory=dict)
    problem: str = ""


def _places(alerts: Iterable[Alert]) -> set[tuple[str, str]]:
    """Return the rule and the module of each alert."""
    return {(one.rule, module) for one in alerts for module in one.modules}


def _in_order(source: Source) -> list[StreamView]:
    """Return the streams whose rows were written in order."""
    return [view for view in source.streams.values() if read_name(view.name).rank == IN_ORDER]


def _last_step(view: StreamView) -> int:
    """Return the last step of a training stream; evaluations belong to the step after it."""
    n = view.n_rows if not view.name.startswith(EVALUATION) else 0
    return int(view.steps(n - 1, n)[0]) if n else -1
