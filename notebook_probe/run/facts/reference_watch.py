"""Comparison of a live run with its references, on the writer's thread."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Mapping, Sequence

from notebook_probe.alerts import Rule, read_alerts
from notebook_probe.alerts.builtin.references import DIFFERS
from notebook_probe.alerts.track import Onset
from notebook_probe.compare.deviation import told
from notebook_probe.compare.reference import (
    ReferenceDifferences,
    ReferenceSearch,
    absolute,
)
from notebook_probe.compare.reference.opening import MOST
from notebook_probe.probes.step.sink import EventSink
from notebook_probe.record.format.notes import REFERENCE
from notebook_probe.record.format.source import ROOT
from notebook_probe.record.read.reader import OpenedRecord
from notebook_probe.record.store.location import stem
from notebook_probe.record.views.xarray_views import RunSource

__all__ = ["ReferenceWatch"]

PERIOD_S = 2.0
"""Seconds between two comparisons, at least."""
SHARE = 0.02
"""Share of a core that comparing may take."""


class ReferenceWatch:
    """Look for the first difference of a run from its references; may be called from any thread.

    Parameters
    ----------
    source : Source
        The rows of the live run.
    references : sequence of Source
        None or up to four.
    rules : mapping of str to Rule
        Nothing is compared without the rule.
    events : EventSink
        Has the references, and the reason why nothing is compared any more.

    Attributes
    ----------
    chosen : tuple of str
        Locations of the references.
    """

    def __init__(
        self,
        source: RunSource,
        references: Sequence[RunSource],
        rules: Mapping[str, Rule],
        events: EventSink,
    ) -> None:
        self._source, self._references, self._rules = source, tuple(references), rules
        self._events = events
        self._step = 0
        self.chosen = tuple(absolute(run.location) for run in references)
        # The writer's thread compares in turn, and any thread may choose other references.
        self._lock = threading.Lock()
        self._search: ReferenceSearch | None = None
        self._factor = 0.0
        self._is_over, self._has_told_modules = not references, False
        self._next_look = time.monotonic() + PERIOD_S
        self._found: list[Onset] = []

    @property
    def references(self) -> tuple[RunSource, ...]:
        """The references, opened."""
        if self.chosen and not self._references:
            self._references = tuple(OpenedRecord(one) for one in self.chosen)
        return self._references

    def choose(self, runs: Sequence[str], step: int) -> str:
        """Compare with these runs from now on, also what is recorded already.

        They are opened on the writer's thread.

        Raises
        ------
        ValueError
            There are too many.
        """
        if len(runs) > MOST:
            raise ValueError(f"{len(runs)} references; allowed: up to {MOST}")
        with self._lock:
            self.chosen, self._references = tuple(absolute(one) for one in runs), ()
            self._is_over, self._has_told_modules = not runs, False
            self._search, self._next_look = None, time.monotonic()
        names = ", ".join(stem(one) for one in runs) or "no run"
        return self._note(step, names)

    def look_in_turn(self) -> None:
        """Compare the new rows if that is due and no other thread does; on the writer's thread."""
        if self._is_over or time.monotonic() < self._next_look:
            return
        if self._lock.acquire(blocking=False):
            try:
                begun_s = time.thread_time()
                self._look()
                cost_s = time.thread_time() - begun_s
                self._next_look = time.monotonic() + max(PERIOD_S, cost_s / SHARE)
            finally:
                self._lock.release()

    def look(self) -> None:
        """Compare all rows so far."""
        if not self._is_over:
            with self._lock:
                self._look()

    def take(self) -> list[Onset]:
        """Return and forget the findings."""
        found, self._found = self._found, []
        return found

    def _look(self) -> None:
        rule = self._rules.get(DIFFERS)
        if rule is None or self._is_over:
            return
        try:
            found = self._search_with(rule).found()
        except Exception as error:  # a reference was removed: training and recording continue
            self._is_over, self._search = True, None
            why = f"references are not compared: {type(error).__name__}: {error}"
            self._events.event(self._step, "error", why)
            return
        if found.modules and not self._has_told_modules:
            self._has_told_modules = True
            self._found.append(_of_modules(found))
        if found.first is not None:
            self._found.append(_of_numbers(found, rule))
            self._is_over, self._search = True, None  # what follows from it differs, too

    def _search_with(self, rule: Rule) -> ReferenceSearch:
        """Return the search, a new one if the rule was changed; none is needed after an alert."""
        factor = rule.thresholds["factor"]
        if self._search is None or factor != self._factor:
            self._factor = factor
            self._search = ReferenceSearch(self._source, self.references, factor=factor or None)
        return self._search

    def begin(self, step: int) -> None:
        """Note the references in the record; a resumed one that has the alert has no second one."""
        if self.chosen:
            self._note(step, ", ".join(run.name for run in self.references))
            self._is_over = self._is_over or bool(read_alerts(self._source.events).of(DIFFERS))

    def _note(self, step: int, names: str) -> str:
        """Note in the record with what it is compared from now on, and return that."""
        self._step, text = step, f"compared with {names}"
        self._events.event(step, REFERENCE, text, json.dumps({"runs": [*self.chosen]}))
        return text


def _of_numbers(found: ReferenceDifferences, rule: Rule) -> Onset:
    """Return the finding for the first difference, with the other modules of its kind and step."""
    [first, *rest] = found
    alike = [one for one in rest if (one.step, one.quantity) == (first.step, first.quantity)]
    modules = dict.fromkeys(one.module for one in (first, *alike))
    rank = f"the first of {len(found)} differences" if rest else "the only difference so far"
    if first.is_absent:
        what = f"{first.quantity} has no value ({first.there:.3g} in {found.named})"
    else:
        values = f"({first.here:.3g} against {first.there:.3g})"
        what = f"{first.quantity} is {told(first.distance)} that of {found.named} {values}"
    sentence = rule.says.format(what=what, since=first.step, rank=rank)
    began = (first.began, first.step)
    return Onset(first.step, (*modules,), sentence, began, quantities=(first.quantity,))


def _of_modules(found: ReferenceDifferences) -> Onset:
    """Return the remark that the models differ."""
    first, *rest = found.modules
    more = f", and {len(rest)} more modules differ" if rest else ""
    return Onset(0, (ROOT,), f"{first}{more}", (0, 0), severity="remark")
