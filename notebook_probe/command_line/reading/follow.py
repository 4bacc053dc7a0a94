"""``follow``: news of a run, one JSON object per line, until a condition or a time limit."""

from __future__ import annotations

import signal
import threading
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from time import monotonic, sleep

from notebook_probe.alerts.alert import ALERT, REMARK, alert_of
from notebook_probe.alerts.rule import SEVERITIES, Severity
from notebook_probe.command_line.asked import RUN, add_catalogue, count
from notebook_probe.command_line.printed import json_text
from notebook_probe.command_line.reading.alerts import MET
from notebook_probe.command_line.reading.answers import (
    EndLine,
    EndReason,
    EventLine,
    FollowedAlertLine,
    FollowLine,
    ProgressLine,
    StartLine,
)
from notebook_probe.command_line.reading.opening import (
    alert_line,
    opened_run,
    run_state,
)
from notebook_probe.command_line.reading.printing import seconds
from notebook_probe.command_line.reading.until import FollowedState, met, parse_until
from notebook_probe.errors import ProbeError, RecordFormatError, UnknownNameError
from notebook_probe.lineage.progress import loss_of, n_steps
from notebook_probe.opened import OpenedRun
from notebook_probe.record.format.source import Event

__all__ = ["add"]

TIMEOUT_S, EVERY_S, POLL_S = 60, 10, 0.2


def add(parser: ArgumentParser) -> None:
    """Add the options."""
    parser.add_argument("run", metavar="RUN", help=RUN)
    parser.add_argument(
        "--until",
        metavar="CONDITION",
        help="end when one is met: 'alert|step>=500|finished'; also remark, warning, severe. "
        f"Exit code {MET} if one is met",
    )
    parser.add_argument(
        "--timeout",
        type=seconds,
        default=TIMEOUT_S,
        metavar="S",
        help="maximum seconds, %(default)s by default",
    )
    parser.add_argument(
        "--every", type=seconds, default=EVERY_S, metavar="S", help="seconds between progress lines"
    )
    parser.add_argument(
        "--since", type=count, default=0, metavar="STEP", help="report alerts from this step on"
    )
    parser.add_argument(
        "--wait",
        type=seconds,
        default=0,
        metavar="S",
        help="seconds to wait for a run that has not started",
    )
    add_catalogue(parser)
    parser.set_defaults(do=do)


def do(asked: Namespace) -> int:
    """Print the lines; the last one says why it ends."""
    words = parse_until(asked.until) if asked.until is not None else ()
    run = _opened(asked)
    follower = RunFollower(run, words, asked)
    try:
        with _terminated_as_interrupted():
            reason, condition = follower.follow()
    except KeyboardInterrupt:
        follower.end("interrupted")
        raise
    except (ProbeError, OSError):
        follower.end("unreadable")
        raise
    follower.end(reason, condition)
    return MET if condition else 0


def _opened(asked: Namespace) -> OpenedRun:
    """Open the run, as soon as it exists."""
    end = monotonic() + asked.wait
    while True:
        try:
            return opened_run(asked)
        except (UnknownNameError, RecordFormatError):
            if monotonic() >= end:
                raise
        sleep(POLL_S)


class RunFollower:
    """Looks for news of one run, and prints each once."""

    def __init__(self, run: OpenedRun, until: tuple[str, ...], asked: Namespace) -> None:
        self._run, self._until = run, until
        self._since, self._every, self._timeout = asked.since, asked.every, asked.timeout
        self._started = monotonic()
        self._told_at, self._told_steps = self._started, n_steps(run)
        self._seen = {one for one in run.events if one.kind not in (ALERT, REMARK)}
        self._worst: Severity | None = None
        self._state = run_state(run, run.is_written)

    def follow(self) -> tuple[EndReason, str | None]:
        """Print news until the end; return its reason, and the condition that was met."""
        run = self._run
        _print(StartLine(run.location, run.name, self._state, n_steps(run)))
        while True:
            is_written = run.is_written  # before reading: what it wrote last is read below
            run.revision  # noqa: B018  reads the newest commit
            self._state = run_state(run, is_written)
            self._print_events()
            now = FollowedState(n_steps(run), self._worst, self._state == "finished")
            condition = met(self._until, now)
            left_s = self._timeout - self._seconds
            reason = _reason(condition, self._state, left_s)
            self._print_progress(now.steps, is_last=reason is not None)
            if reason is not None:
                return reason, condition
            sleep(min(POLL_S, left_s))

    def end(self, reason: EndReason, condition: str | None = None) -> None:
        """Print the last line."""
        steps, duration_s = n_steps(self._run), round(self._seconds, 3)
        _print(EndLine(reason, condition, self._state, steps, duration_s))

    @property
    def _seconds(self) -> float:
        return monotonic() - self._started

    def _print_events(self) -> None:
        for event in self._run.events:
            if event not in self._seen:
                self._seen.add(event)
                self._print_event(event)

    def _print_event(self, event: Event) -> None:
        if event.kind not in (ALERT, REMARK):
            _print(EventLine(event.step, event.kind, event.text))
        elif event.step >= self._since:
            alert = alert_of(event)
            known = self._worst or alert.severity
            self._worst = max(known, alert.severity, key=SEVERITIES.index)
            _print(FollowedAlertLine(alert_line(alert)))

    def _print_progress(self, steps: int, *, is_last: bool) -> None:
        is_due = is_last or monotonic() - self._told_at >= self._every
        if is_due and steps != self._told_steps:
            self._told_at, self._told_steps = monotonic(), steps
            loss = loss_of(self._run).last
            _print(ProgressLine(steps, loss))


def _reason(condition: str | None, state: str, left_s: float) -> EndReason | None:
    if condition is not None:
        return "until"
    if state == "finished":
        return "finished"
    if state == "killed":
        return "killed"
    return "timeout" if left_s <= 0 else None


def _print(line: FollowLine) -> None:
    print(json_text({"kind": line.kind, **asdict(line)}), flush=True)


@contextmanager
def _terminated_as_interrupted() -> Iterator[None]:
    """Raise KeyboardInterrupt on a request to terminate, so that a last line is printed."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
