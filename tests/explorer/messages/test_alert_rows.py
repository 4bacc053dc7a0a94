"""An alert reaches the panel once, with its rule, its places, its quantities and its view."""

from __future__ import annotations

import json

from notebook_probe.alerts import Alert
from notebook_probe.explorer.messages.alert_rows import MOST, AlertMessages
from notebook_probe.record.format.source import Event

DEAD = Alert("dead_units", 40, "fc1 and 1 more: 60 % dead", ("fc1", "fc2"), ("dead",), "heat")


def event(alert: Alert) -> Event:
    return Event(alert.step, 0, "alert", alert.text, alert.detail)


def test_a_new_view_gets_all_alerts_and_later_only_those_that_are_new() -> None:
    alerts = AlertMessages()
    attach = Event(0, 0, "attach", "grad_norm at fc1")
    first = alerts.message([attach, event(DEAD)])
    assert first is not None
    assert first["whole"]
    assert first["rows"] == [
        {
            "rule": "dead_units",
            "step": 40,
            "modules": ["fc1", "fc2"],
            "quantities": ["dead"],
            "view": "heat",
            "text": "fc1 and 1 more: 60 % dead",
            "severity": "warning",
        }
    ]
    assert json.loads(json.dumps(first)) == first
    assert alerts.message([attach, event(DEAD), attach]) is None
    other = Alert("lr_high", 50, "the model: too high", ("(root)",), ("lr",))
    news = alerts.message([attach, event(DEAD), attach, event(other)])
    assert news is not None
    assert (news["whole"], [row["rule"] for row in news["rows"]]) == (False, ["lr_high"])
    alerts.forget()
    again = alerts.message([attach, event(DEAD), attach, event(other)])
    assert again is not None
    assert (again["whole"], len(again["rows"])) == (True, 2)


def test_a_new_view_gets_the_newest_of_very_many() -> None:
    events = [event(Alert("r", step, "fc: x", ("fc",))) for step in range(3 * MOST)]
    message = AlertMessages().message(events)
    assert message is not None
    assert [row["step"] for row in message["rows"]] == list(range(2 * MOST, 3 * MOST))


def test_of_an_alert_that_cannot_be_read_its_sentence_is_left() -> None:
    message = AlertMessages().message([Event(3, 0, "alert", "something", "{")])
    assert message is not None
    [row] = message["rows"]
    assert (row["rule"], row["text"], row["modules"]) == ("unknown", "something", [])
