"""Explanation of a training in a few lines: causes, remarks, the other rules."""

from __future__ import annotations

import html
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from notebook_probe.alerts.alert import read_rules_off
from notebook_probe.alerts.causes import Cause
from notebook_probe.alerts.dense_loss import meant
from notebook_probe.alerts.find import find_all
from notebook_probe.alerts.following import has
from notebook_probe.alerts.listing import Alerts, read_alerts, read_remarks
from notebook_probe.alerts.rule import Rule
from notebook_probe.checks import is_whole
from notebook_probe.printable import counted, printable
from notebook_probe.record.format.source import Source, StreamView
from notebook_probe.record.views.branches.branches import IN_ORDER, read_name

__all__ = ["Explanation", "explain"]

MOST_LINES = 40
MOST_CAUSES, MOST_BELOW, MOST_REMARKS, MOST_MISSING, MOST_OFF = 4, 2, 3, 8, 3
WIDTH = 110
UNWATCHED = ("a watched training",)
"""Requirement of rules about the training itself, which look at it while it runs."""
UNTRAINED = ("a step of training",)
"""Requirement of every rule."""


@dataclass(frozen=True, slots=True)
class Explanation:
    """Causes with their evidence, remarks, and which rules found nothing or could not judge.

    Attributes
    ----------
    title : str
    causes : tuple of Cause
        Alerts that no other explains, each with its consequences.
    remarks : Alerts
        Findings that may be intended.
    well : tuple of str
        Rules whose series are recorded, and which found nothing.
    unknown : mapping of tuple of str to tuple of str
        By the series that are missing: the rules that could not judge.
    off : mapping of str to str
        Error of each rule whose condition raised one, by its name.
    """

    title: str
    causes: tuple[Cause, ...]
    remarks: Alerts
    well: tuple[str, ...]
    unknown: dict[tuple[str, ...], tuple[str, ...]]
    off: dict[str, str] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """Return all of it as plain values, for JSON."""
        return {
            "title": self.title,
            "causes": [_as_dict(one) for one in self.causes],
            "remarks": [str(one) for one in self.remarks],
            "well": [*self.well],
            "unknown": [
                {"missing": [*missing], "rules": [*rules]}
                for missing, rules in self.unknown.items()
            ],
            "off": dict(self.off),
        }

    def lines(self) -> Iterator[str]:
        """Yield the report, a cause before its consequences."""
        yield self.title
        for cause in self.causes[:MOST_CAUSES]:
            yield f"- {cause}"
            for below in cause.below[:MOST_BELOW]:
                yield f"    then step {below.alert.step}: {below.alert.rule} {below.where}"
            yield from _more(len(cause.below) - MOST_BELOW, "    ", "consequences")
        yield from _more(len(self.causes) - MOST_CAUSES, "", "causes")
        if self.remarks:
            yield "may be intended:"
            yield from (f"- {one}" for one in self.remarks[:MOST_REMARKS])
            yield from _more(len(self.remarks) - MOST_REMARKS, "", "remarks")
        if self.off:
            yield "off, as the rule raised an error:"
            yield from (f"  {name}: {why}" for name, why in [*self.off.items()][:MOST_OFF])
            yield from _more(len(self.off) - MOST_OFF, "  ", "rules")
        if self.well:
            yield f"looked at, nothing found ({len(self.well)} rules):"
            yield from _wrapped(self.well)
        if self.unknown:
            yield "not judged, as nothing was measured:"
            for missing, rules in [*self.unknown.items()][:MOST_MISSING]:
                named = [line.strip() for line in _wrapped(rules)]
                yield from (f"  {line}" for line in named[:-1])
                yield f"  {named[-1]}: needs {', '.join(missing)}"
            yield from _more(len(self.unknown) - MOST_MISSING, "  ", "series")
            yield '  try: nbp.watch(model, optimizer, probes=["default", "alerts"])'

    def __repr__(self) -> str:
        return "\n".join(map(printable, [*self.lines()][:MOST_LINES]))

    def _repr_html_(self) -> str:
        return f"<pre>{html.escape(repr(self))}</pre>"


def explain(
    source: Source, rules: Iterable[Rule], last: int | None = None, *, was_watched: bool = True
) -> Explanation:
    """Return an explanation of everything recorded so far, or up to a last step.

    No rule has looked at a run that was not watched, as one of another tool: those about series are
    applied now, and those about the training itself could not judge.

    Raises
    ------
    ValueError
        The last step is not recorded.
    """
    rules, events = tuple(rules), source.events
    alerts, remarks = read_alerts(events), read_remarks(events)
    if not was_watched:
        applied = find_all(source, *(rule for rule in rules if rule.quantities))
        alerts = Alerts([*alerts, *(one for one in applied if not one.is_remark)])
        remarks = Alerts([*remarks, *(one for one in applied if one.is_remark)])
    views = [one for one in source.streams.values() if read_name(one.name).rank == IN_ORDER]
    n_steps = max(
        (int(view.steps(view.n_rows - 1)[0]) + 1 for view in views if view.n_rows), default=0
    )
    if last is not None:
        if not is_whole(last) or not 0 <= last < n_steps:
            known = f"recorded steps are 0 to {n_steps - 1}" if n_steps else "no step is recorded"
            raise ValueError(f"step={last!r}; {known}")
        alerts, remarks = alerts.until(last), remarks.until(last)
        views = [one for one in views if one.n_rows and int(one.steps(0, 1)[0]) <= last]
        n_steps = last + 1
    found = {one.rule for one in (*alerts, *remarks)}
    well: list[str] = []
    unknown: defaultdict[tuple[str, ...], list[str]] = defaultdict(list)
    off = read_rules_off(events)
    for rule in (one for one in rules if one.name not in off):
        missing = _missing(rule, views) if rule.quantities or was_watched else UNWATCHED
        if not n_steps:
            missing = () if rule.name in found else UNTRAINED
        if missing:
            unknown[missing].append(rule.name)
        elif rule.name not in found:
            well.append(rule.name)
    causes = alerts.causes
    explained = {one for cause in causes for one in cause}
    rest = Alerts(one for one in remarks if one not in explained)
    title = (
        f"{counted(n_steps, 'step')}: {_counted(len(causes), 'cause')}, "
        f"{_counted(len(rest), 'remark')}"
    )
    by_missing = {key: tuple(names) for key, names in unknown.items()}
    return Explanation(title, causes, rest, tuple(well), by_missing, off)


def _missing(rule: Rule, views: Sequence[StreamView]) -> tuple[str, ...]:
    series = meant(rule.quantities, views)
    return tuple(name for name in series if not any(has(view, name) for view in views))


def _counted(n: int, what: str) -> str:
    return counted(n, what) if n else f"no {what}s"


def _more(n: int, indent: str, what: str) -> Iterator[str]:
    if n > 0:
        yield f"{indent}and {n} more {what}"


def _wrapped(names: Sequence[str]) -> Iterator[str]:
    line = " "
    for i, name in enumerate(names):
        word = f" {name}{',' if i + 1 < len(names) else ''}"
        if len(line) + len(word) > WIDTH:
            yield line
            line = " "
        line += word
    yield line


def _as_dict(cause: Cause) -> dict[str, Any]:
    one = cause.alert
    return {
        "rule": one.rule,
        "step": one.step,
        "modules": [*cause.modules],
        "sentence": one.sentence,
        "severity": one.severity,
        "consequences": [_as_dict(below) for below in cause.consequences],
    }
