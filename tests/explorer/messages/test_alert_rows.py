"""An alert reaches the panel once, with its rule, its places, its quantities and its view."""

from __future__ import annotations

import json
from dataclasses import replace

from notebook_probe.alerts import Alert
from notebook_probe.alerts.causes import NEAR
from notebook_probe.explorer.messages.alert_rows import MOST, AlertMessages
from notebook_probe.record.format.source import Event

DEAD = Alert("dead_units", 40, "fc1 and 1 more: 60 % dead", ("fc1", "fc2"), ("dead",), "heat")


def event(alert: Alert) -> Event:
    kind = "remark" if alert.is_remark else "alert"
    return Event(alert.step, 0, kind, alert.text, alert.detail)


def test_a_new_view_gets_all_alerts_and_later_only_those_that_are_new() -> None:
    alerts = AlertMessages()
    attach = Event(0, 0, "attach", "grad_norm at fc1")
    first = alerts.message([attach, event(DEAD)])
    assert first is not None
    assert first["whole"]
    assert first["rows"] == [
        {
            "number": 0,
            "rule": "dead_units",
            "step": 40,
            "modules": ["fc1", "fc2"],
            "quantities": ["dead"],
            "view": "heat",
            "text": "fc1 and 1 more: 60 % dead",
            "severity": "warning",
        }
    ]
    assert first["findings"] == [
        {
            "first": 0,
            "modules": ["fc1", "fc2"],
            "where": "at fc1 and 1 more",
            "sentence": "60 % dead",
            "cause": None,
            "after": "",
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


def test_remarks_are_sent_in_full_and_never_among_the_alerts() -> None:
    alerts = AlertMessages()
    unused = Alert("unused_output", 20, "pooler: not used", ("pooler",), severity="remark")
    first = alerts.message([event(unused)])
    assert first is not None
    assert (first["rows"], first["findings"]) == ([], [])
    assert first["remarks"] == [
        {"step": 20, "modules": ["pooler"], "where": "at pooler", "sentence": "not used"}
    ]
    assert alerts.message([event(unused)]) is None
    news = alerts.message([event(unused), event(DEAD)])
    assert news is not None
    assert [row["rule"] for row in news["rows"]] == ["dead_units"]
    assert news["remarks"] == first["remarks"]
    jump = Alert("rate_jump", 50, "the model: the rate is 5 times", ("(root)",), severity="remark")
    more = alerts.message([event(unused), event(DEAD), event(jump)])
    assert more is not None
    assert (more["rows"], [one["step"] for one in more["remarks"]]) == ([], [20, 50])


def test_what_came_of_a_cause_is_behind_it_whichever_was_found_first() -> None:
    alerts = AlertMessages()
    dead = replace(DEAD, flow="forward", consequence_of=("lr_high",))
    also = replace(dead, step=50, text="fc3: 70 % dead", modules=("fc3",))
    high = Alert("lr_high", 45, "the model: too high", ("(root)",), ("lr",))
    alone = Alert("loader_bound", 42, "the model: waits", ("(root)",))
    first = alerts.message([event(one) for one in (dead, alone)])
    assert first is not None
    assert [(row["first"], row["cause"]) for row in first["findings"]] == [(0, None), (1, None)]
    news = alerts.message([event(one) for one in (dead, alone, high, also)])
    assert news is not None
    assert [row["number"] for row in news["rows"]] == [2, 3]
    found = [(row["first"], row["cause"], row["where"]) for row in news["findings"]]
    assert found == [
        (1, None, "at the model"),
        (2, None, "at the model"),
        (0, 2, "began at fc1, seen in fc2 and 1 more"),
    ]


def test_a_new_view_gets_the_newest_of_very_many() -> None:
    events = [event(Alert("r", step, "fc: x", ("fc",))) for step in range(3 * MOST)]
    message = AlertMessages().message(events)
    assert message is not None
    assert [row["step"] for row in message["rows"]] == list(range(2 * MOST, 3 * MOST))
    [finding] = message["findings"]
    assert finding["first"] == 2 * MOST


def test_of_an_alert_that_cannot_be_read_its_sentence_is_left() -> None:
    message = AlertMessages().message([Event(3, 0, "alert", "something", "{")])
    assert message is not None
    [row] = message["rows"]
    assert (row["rule"], row["text"], row["modules"]) == ("unknown", "something", [])


def test_a_learning_rate_that_rose_shortly_before_explains_what_it_caused() -> None:
    jump = Alert(
        "rate_jump", 400, "the model: the rate rose 100 times", ("(root)",), severity="remark"
    )
    spike = Alert("loss_spike", 402, "the model: the loss rose", ("(root)",))
    effect = Alert("diverging", 404, "fc: grew", ("fc",), consequence_of=("loss_spike",))
    late = replace(spike, step=402 + 2 * NEAR)
    found = AlertMessages().message([event(one) for one in (jump, spike, effect, late)])
    assert found is not None
    assert [(row["first"], row["cause"], row["after"]) for row in found["findings"]] == [
        (0, None, "the rate rose 100 times"),
        (1, 0, ""),
        (2, None, ""),
    ]
    alone = AlertMessages().message([event(spike)])
    assert alone is not None
    assert [row["after"] for row in alone["findings"]] == [""]
