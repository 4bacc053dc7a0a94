"""What is worth a message is found once, and a healthy training is worth none."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest

from notebook_probe.alerts.alert import Alert
from notebook_probe.record.format.source import Event
from notebook_probe.run.notify.lookout import DEFAULT, Lookout, RunMoment, checked_occasions

START = RunMoment((), 0, False, False, False, "", math.nan, 1000.0)


def event(step: int, rule: str = "loss_spike", severity: Any = "severe") -> Event:
    alert = Alert(rule, step, "the model: 3 times as large", ("(root)",), ("loss",))
    kind = "remark" if severity == "remark" else "alert"
    return Event(step, 0, kind, alert.text, replace(alert, severity=severity).detail)


def lookout(*on: str, first: RunMoment = START) -> Lookout:
    return Lookout("first", checked_occasions(on or DEFAULT), 600.0, 600.0, first)


def at(seconds: float, step: int, **other: Any) -> RunMoment:
    seen = replace(START, step=step, is_under_way=True, step_s=0.1, now_s=1000.0 + seconds)
    return replace(seen, **other)


def test_an_alert_is_sent_once_with_its_run_step_and_sentence() -> None:
    watching = lookout()
    (message,) = watching.messages(at(1, 5, events=(event(4),)))
    assert message.title == "first: loss_spike at step 4"
    assert message.text == "severe: the model: 3 times as large"
    assert message.series == ("(root)", "loss")
    assert watching.messages(at(2, 6, events=(event(4),))) == []


@pytest.mark.parametrize(
    ("on", "sent"),
    [
        ("severe", ["severe"]),
        ("warning", ["warning", "severe"]),
        ("remark", ["remark", "warning", "severe"]),
        ("end", []),
    ],
)
def test_a_severity_includes_those_above_it(on: str, sent: list[str]) -> None:
    every = tuple(event(1, one, one) for one in ("remark", "warning", "severe"))
    assert [one.cause for one in lookout(on).messages(at(1, 2, events=every))] == sent


def test_alerts_of_before_are_no_news() -> None:
    first = replace(START, events=(event(3),))
    assert lookout(first=first).messages(at(1, 4, events=(event(3),))) == []


def test_one_message_of_a_cause_in_ten_minutes_then_with_the_number_of_the_others() -> None:
    watching, sent = lookout(), {}
    events: tuple[Event, ...] = ()
    for n in range(4):
        events = (*events, event(n))
        sent[n] = watching.messages(at(250 * n, n, events=events))
    assert [len(sent[n]) for n in range(4)] == [1, 0, 0, 1]
    assert sent[3][0].text.endswith("\n2 more of this kind since the last message")
    (other,) = watching.messages(at(751, 4, events=(*events, event(4, "dead_units"))))
    assert other.cause == "dead_units"


def test_a_stall_is_sent_once_and_again_after_steps() -> None:
    watching = lookout("stalled")
    assert watching.messages(at(0, 7)) == []
    assert watching.messages(at(599, 7)) == []
    (message,) = watching.messages(at(601, 7))
    assert message.text == "no step for 10 minutes; 7 are complete"
    assert watching.messages(at(2000, 7)) == []
    assert watching.messages(at(2001, 8)) == []
    assert len(watching.messages(at(2700, 8))) == 1


@pytest.mark.parametrize(
    "healthy", [{"is_paused": True}, {"is_under_way": False}, {"step_s": 60.0}]
)
def test_a_pause_the_end_of_a_loop_and_slow_steps_are_no_stall(healthy: dict[str, Any]) -> None:
    watching = lookout("stalled")
    assert watching.messages(at(0, 7, **healthy)) == []
    assert watching.messages(at(1000, 7, **healthy)) == []


def test_the_end_of_a_loop_an_error_and_the_end_of_the_run_are_sent() -> None:
    watching = lookout("end")
    assert watching.messages(at(1, 3)) == []
    (ended,) = watching.messages(at(2, 4, is_under_way=False))
    assert ended.title == "first: ended at step 4"
    failing = lookout("end")
    assert failing.messages(at(1, 3)) == []
    (failed,) = failing.messages(at(2, 4, is_under_way=False, failure="ValueError: nan"))
    assert (failed.title, failed.text) == ("first: failed at step 4", "ValueError: nan")
    closing = lookout("end")
    assert closing.messages(at(1, 3)) == []
    assert [one.step for one in closing.messages(at(2, 4, is_closed=True))] == [4]


def test_a_run_that_has_not_trained_has_no_end() -> None:
    watching = lookout("end")
    assert watching.messages(replace(START, is_closed=True)) == []


@pytest.mark.parametrize(
    ("on", "error", "message"),
    [
        ("severe", TypeError, "a list"),
        (["sever"], ValueError, "close: 'severe'"),
        (["alert"], ValueError, "known: "),
    ],
)
def test_another_occasion_is_refused(on: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        checked_occasions(on)
