"""``alerts``: findings of the rules, oldest first; with ``--fail-on`` a test of a run."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Iterator
from operator import attrgetter

from notebook_probe.alerts.rule import SEVERITIES
from notebook_probe.command_line.asked import count
from notebook_probe.command_line.reading.answers import AlertsAnswer, OffLine
from notebook_probe.command_line.reading.opening import (
    add_run,
    alert_line,
    alert_text,
    heading,
    opened_run,
    severity_rank,
    title_line,
)
from notebook_probe.command_line.reading.printing import (
    fitting_items,
    left_line,
    print_answer,
    tokens,
)

__all__ = ["MET", "add"]

MET = 3
"""Exit code of a condition that is met."""


def add(parser: ArgumentParser) -> None:
    """Add the options."""
    add_run(parser)
    parser.add_argument("--since", type=count, default=0, metavar="STEP", help="first step")
    parser.add_argument(
        "--fail-on",
        choices=SEVERITIES,
        metavar="LEVEL",
        help=f"exit code {MET} if a finding is at least so severe: {', '.join(SEVERITIES)}",
    )
    parser.set_defaults(do=do)


def do(asked: Namespace) -> int:
    """Print the alerts and remarks."""
    run = opened_run(asked)
    alerts = run.alerts
    every = [one for one in (*alerts, *run.remarks) if one.step >= asked.since]
    every.sort(key=attrgetter("step"))
    lines, left_out = fitting_items(
        every, alert_line, lambda one: [alert_text(one)], asked.limit, tokens(run.name)
    )
    least = len(SEVERITIES) if asked.fail_on is None else severity_rank(asked.fail_on)
    failed = any(severity_rank(one.severity) >= least for one in every)
    off = tuple(OffLine(*one) for one in alerts.off.items())
    answer = AlertsAnswer(**heading(run), alerts=lines, off=off, left_out=left_out, failed=failed)
    print_answer(answer, _text(answer), asked)
    return MET if failed else 0


def _text(answer: AlertsAnswer) -> Iterator[str]:
    yield title_line(answer)
    yield from map(alert_text, answer.alerts)
    if not answer.alerts:
        yield "no alerts"
    yield from left_line(answer.left_out, "alerts")
    yield from (f"rule {one.rule} is off: {one.error}" for one in answer.off)
