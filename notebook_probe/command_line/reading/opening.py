"""Opening the run that a command names, and its part of the answer."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from typing import Any, cast

from notebook_probe.alerts.alert import Alert, began_at
from notebook_probe.alerts.rule import SEVERITIES
from notebook_probe.command_line.asked import RUN, add_catalogue, location_of
from notebook_probe.command_line.reading.answers import AlertLine, AnswerOfRun, RunState
from notebook_probe.command_line.reading.printing import add_output
from notebook_probe.lineage.progress import n_steps, state_of
from notebook_probe.opened import OpenedRun, open_run
from notebook_probe.printable import counted

__all__ = [
    "add_run",
    "alert_line",
    "alert_text",
    "heading",
    "opened_run",
    "run_state",
    "severity_rank",
    "title_line",
]


def add_run(parser: ArgumentParser) -> None:
    """Add the argument RUN, and the options of every command that reads one run."""
    parser.add_argument("run", metavar="RUN", help=RUN)
    add_output(parser)
    add_catalogue(parser)


def opened_run(asked: Namespace) -> OpenedRun:
    """Open the run; one that another process is training grows."""
    return open_run(location_of(asked.run, asked))


def heading(run: OpenedRun) -> dict[str, Any]:
    """Return the fields of `AnswerOfRun`."""
    return {
        "run": run.location,
        "name": run.name,
        "state": run_state(run, run.is_written),
        "steps": n_steps(run),
        "problems": tuple(map(str, run.problems)),
    }


def run_state(run: OpenedRun, is_written: bool) -> RunState:
    """Return the state of a run, given whether a process writes its record."""
    return cast(RunState, state_of(run.finished, is_written))


def severity_rank(text: str) -> int:
    """Return the place of a severity; the heaviest has the greatest."""
    return list[str](SEVERITIES).index(text)


def title_line(answer: AnswerOfRun) -> str:
    """Return the first line of a text: name, state and number of steps."""
    return f"{answer.name}: {answer.state}, {counted(answer.steps, 'step')}"


def alert_line(alert: Alert) -> AlertLine:
    """Return the plain values of an alert."""
    return AlertLine(
        step=alert.step,
        severity=alert.severity,
        rule=alert.rule,
        where=began_at(alert.modules, alert.flow),
        sentence=alert.sentence,
        modules=alert.modules,
        quantities=alert.quantities,
        began=alert.began,
    )


def alert_text(line: AlertLine) -> str:
    """Return a finding in one line."""
    return f"step {line.step}: {line.severity}: {line.rule} {line.where}: {line.sentence}"
