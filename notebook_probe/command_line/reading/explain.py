"""``explain``: causes with their evidence, remarks, and what could not be judged."""

from __future__ import annotations

import shlex
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator

from notebook_probe.alerts import Alert
from notebook_probe.alerts.causes import Cause
from notebook_probe.alerts.explaining import Explanation
from notebook_probe.command_line.asked import count
from notebook_probe.command_line.reading.against import against_lines, compared_with
from notebook_probe.command_line.reading.answers import (
    CauseLine,
    ConsequenceLine,
    EvidenceLine,
    ExplainAnswer,
    JudgedLine,
    OffLine,
    Point,
)
from notebook_probe.command_line.reading.opening import (
    add_run,
    alert_line,
    alert_text,
    heading,
    opened_run,
    title_line,
)
from notebook_probe.command_line.reading.printing import (
    fitting_items,
    left_line,
    number,
    print_answer,
    tokens,
    wrapped,
)
from notebook_probe.command_line.reading.rows import read_rows
from notebook_probe.lineage.progress import scalar_of
from notebook_probe.opened import OpenedRun
from notebook_probe.record.format.source import ROOT
from notebook_probe.record.views.thinning.zoom import has_series

__all__ = ["add"]

MOST_LINES = 40
N_OWN_LINES = 5
"""Lines of the title, the verdict, the head of remarks, the first of them, and the omitted ones."""
MOST_UNKNOWN = 4
MOST_EVIDENCE = 3
MOST_CONSEQUENCES = 5
NEAR_ROWS = 256
"""Steps before a cause in which its last good row is looked for."""


def add(parser: ArgumentParser) -> None:
    """Add the options."""
    add_run(parser)
    parser.add_argument(
        "--step", type=count, metavar="K", help="explain the state at this step; ignore later ones"
    )
    parser.add_argument(
        "--against",
        action="append",
        metavar="GOOD",
        help="a good run, or a glob of up to four, to compare this one with",
    )
    parser.set_defaults(do=do)


def do(asked: Namespace) -> int:
    """Print the explanation."""
    run = opened_run(asked)
    explanation = run.explain(asked.step)
    against = compared_with(run, asked)
    rest = [*(_below if against is None else _counts)(explanation, asked.limit)]
    above = [] if against is None else [*against_lines(against, asked.limit)]
    used = sum(map(tokens, (run.name, explanation.title, *above, *rest)))
    room = MOST_LINES - N_OWN_LINES - len(above) - len(rest)
    causes, n_causes = fitting_items(
        explanation.causes,
        lambda one: _cause(run, one, asked.step),
        _cause_lines,
        asked.limit,
        used,
        room,
    )
    lines = [line for one in causes for line in _cause_lines(one)]
    used += sum(map(tokens, lines))
    remarks, n_remarks = fitting_items(
        explanation.remarks,
        alert_line,
        lambda one: [alert_text(one)],
        asked.limit,
        used,
        max(1, room - len(lines) + 1),
    )
    answer = ExplainAnswer(
        **heading(run),
        as_of=asked.step,
        verdict=explanation.title,
        causes=causes,
        remarks=remarks,
        well=explanation.well,
        unknown=tuple(JudgedLine(*one) for one in explanation.unknown.items()),
        off=tuple(OffLine(*one) for one in explanation.off.items()),
        against=against,
        left_out=n_causes + n_remarks,
    )
    print_answer(answer, _text(answer, above, rest), asked)
    return 0


def _cause(run: OpenedRun, cause: Cause, last: int | None) -> CauseLine:
    line = alert_line(cause.alert)
    return CauseLine(
        line,
        tuple(_evidence(run, cause.alert, last)),
        tuple(ConsequenceLine(one.alert.step, one.alert.rule, one.where) for one in cause.below),
        tuple(_next(run, cause.alert)),
    )


def _evidence(run: OpenedRun, alert: Alert, end: int | None) -> Iterator[EvidenceLine]:
    """Yield what the series of an alert were before it began, and with it, up to a last step."""
    last, first = alert.began or (alert.step - 1, alert.step)
    for module, quantity in _recorded(run, alert)[:MOST_EVIDENCE]:
        stop = min(last + 1, first)
        before = _point(run, module, quantity, max(0, stop - NEAR_ROWS), stop, -1)
        near = first + NEAR_ROWS
        after = _point(run, module, quantity, first, near if end is None else min(near, end + 1), 0)
        yield EvidenceLine(module, quantity, before, after)


def _point(
    run: OpenedRun, module: str, quantity: str, start: int, stop: int, place: int
) -> Point | None:
    points = read_rows(run, module, quantity, start, stop).points() if start < stop else ()
    return points[place] if points else None


def _recorded(run: OpenedRun, alert: Alert) -> list[tuple[str, str]]:
    """Return the recorded series of an alert, at its first module; without any the loss."""
    streams, loss = [*run.streams.values()], scalar_of(run, only_loss=True)
    names = [(alert.module, name) for name in dict.fromkeys(alert.quantities)]
    found = [name for name in names if any(has_series(one, *name) for one in streams)]
    return found or [(ROOT, loss)] * bool(loss)


def _next(run: OpenedRun, alert: Alert) -> Iterator[str]:
    """Yield commands that show the series around the alert."""
    for module, quantity in _recorded(run, alert)[:1]:
        words = ("series", run.location, module, quantity, "--around", str(alert.step))
        yield f"nbp {shlex.join(words)}"
    yield f"nbp {shlex.join(('alerts', run.location, '--since', str(alert.step)))}"


def _below(explanation: Explanation, limit: int) -> Iterator[str]:
    """Yield the lines below the causes and remarks."""
    if explanation.off:
        yield "off, as the rule raised an error:"
        yield from (f"  {name}: {why}" for name, why in explanation.off.items())
    if explanation.well:
        yield f"looked at, nothing found ({len(explanation.well)} rules):"
        yield from wrapped([*explanation.well])
    if explanation.unknown:
        yield "not judged, as nothing was measured:"
        most = MOST_UNKNOWN if limit else len(explanation.unknown)
        for missing, rules in [*explanation.unknown.items()][:most]:
            yield f"  {', '.join(rules)}: needs {', '.join(missing)}"
        if len(explanation.unknown) > most:
            yield f"  and {len(explanation.unknown) - most} more; --limit 0 prints all"
        yield '  try: nbp.watch(model, optimizer, probes=["default", "alerts"])'


def _counts(explanation: Explanation, limit: int) -> Iterator[str]:
    """Yield the same in one line, below a comparison, which needs the room."""
    n_unknown = sum(map(len, explanation.unknown.values()))
    off = f", {len(explanation.off)} are off" if explanation.off else ""
    yield f"{len(explanation.well)} rules found nothing, {n_unknown} could not judge{off}"


def _text(answer: ExplainAnswer, above: list[str], rest: list[str]) -> Iterator[str]:
    yield title_line(answer)
    yield from above
    yield answer.verdict if answer.as_of is None else f"as of step {answer.as_of}: {answer.verdict}"
    for cause in answer.causes:
        yield from _cause_lines(cause)
    if answer.remarks:
        yield "may be intended:"
        yield from map(alert_text, answer.remarks)
    yield from left_line(answer.left_out, "findings")
    yield from rest


def _cause_lines(cause: CauseLine) -> Iterator[str]:
    yield f"- {alert_text(cause.alert)}"
    if cause.alert.began and len({*cause.alert.began}) > 1:
        yield "  began between step {} and {}".format(*cause.alert.began)
    for one in cause.evidence:
        before, after = _point_text(one.before), _point_text(one.after)
        yield f"  {one.module} {one.quantity}: {before} before, {after} then"
    for below in cause.consequences[:MOST_CONSEQUENCES]:
        yield f"  then step {below.step}: {below.rule} {below.where}"
    if len(cause.consequences) > MOST_CONSEQUENCES:
        yield f"  and {len(cause.consequences) - MOST_CONSEQUENCES} more consequences"
    for command in cause.next:
        yield f"  see: {command}"


def _point_text(point: Point | None) -> str:
    return "not measured" if point is None else f"{number(point[1])} (step {point[0]})"
