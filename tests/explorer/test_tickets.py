"""Clicks become requests to the run, and each is answered by a ticket."""

from __future__ import annotations

import pytest

from notebook_probe.explorer import conversation
from notebook_probe.explorer.draw import sent_frames
from notebook_probe.run.attach.requests import Attach, Compiled, Control, Detach
from tests.explorer.fakes import FakeControls
from tests.explorer.talk import Talk


def test_an_attach_without_a_schedule_is_refused_before_the_run_is_asked(
    talk: Talk, controls: FakeControls
) -> None:
    talk.says("hello", view="x")
    talk.says("attach", id="1", where=["a"], quantity="grad_norm", schedule=" ")
    talk.is_told()
    [ticket] = talk.last("status")["tickets"]
    assert (ticket["state"], ticket["text"]) == (
        "refused",
        "say when to measure, such as every(10)",
    )
    assert controls.requests == []


def test_clicks_become_requests_with_a_ticket_each(talk: Talk, controls: FakeControls) -> None:
    talk.says("hello", view="x")
    talk.says("attach", id="1", where=["a", "b"], quantity="norm", schedule="every(5)")
    talk.says("detach", id="2", where=["a"], quantity="")
    talk.says("control", id="3", action="pause")
    talk.says("compiled", id="4", steps="eager")
    assert controls.requests == [
        Attach(("a", "b"), "norm", "every(5)"),
        Detach(("a",), ""),
        Control("pause"),
        Compiled("eager"),
    ]
    talk.is_told()
    tickets = talk.last("status")["tickets"]
    assert [(row["id"], row["state"], row["queued_step"]) for row in tickets] == [
        ("1", "queued", 7),
        ("2", "queued", 7),
        ("3", "queued", 7),
        ("4", "queued", 7),
    ]
    controls.apply(8)
    talk.is_told()
    assert {row["applied_step"] for row in talk.last("status")["tickets"]} == {8}


def test_a_click_is_answered_before_the_next_refresh_and_told_once_it_acts(
    talk: Talk, controls: FakeControls
) -> None:
    talk.says("hello", view="x")
    talk.is_told()
    talk.acknowledges()
    answer = talk.says("detach", id="1", where=["a"], quantity="")
    assert answer is not None
    assert (answer["type"], answer["id"], answer["state"]) == ("ticket", "1", "queued")
    assert "ticket" not in talk.is_told()  # it has been
    controls.apply(8)
    talk.stream.append([10], grad_norm=2.0)
    told = talk.is_told()
    assert told[0] == "ticket"  # before anything is read
    assert "heat" in told
    assert (talk.last("ticket")["state"], talk.last("ticket")["applied_step"]) == ("applied", 8)
    assert "ticket" not in talk.is_told()


def test_what_somebody_waits_for_is_let_out_before_the_next_is_made(
    talk: Talk, controls: FakeControls, monkeypatch: pytest.MonkeyPatch
) -> None:
    order: list[str] = []
    for module in (conversation, sent_frames):
        monkeypatch.setattr(module, "yield_io", lambda: order.append("let out"))

    def told() -> list[str]:
        order.clear()
        head = talk.conversation.head()
        talk.conversation.publish(lambda message, _: order.append(message["type"]), "", head)
        for kind in ("heat", "lines"):
            talk.says("ack", view="x", painted={kind: 1_000_000})
        return [one for one in order if one in ("let out", "ticket", "heat", "lines")]

    talk.says("hello", view="x")
    assert told() == ["heat", "let out", "lines", "let out"]
    talk.stream.append([10], grad_norm=2.0)
    assert told() == ["heat", "lines"], "nobody waits for what comes by itself"
    talk.says("detach", id="1", where=["a"], quantity="")
    controls.apply(8)
    talk.selects(cells="mean")
    assert told() == ["ticket", "let out", "heat", "let out", "lines", "let out"]


def test_only_the_newest_tickets_are_told(talk: Talk) -> None:
    talk.says("hello", view="x")
    for click in range(12):
        talk.says("detach", id=str(click), where=["a"], quantity="")
    talk.is_told()
    ids = [row["id"] for row in talk.last("status")["tickets"]]
    assert ids == [str(click) for click in range(4, 12)]


def test_a_click_that_cannot_act_is_refused_with_the_reason(
    talk: Talk, controls: FakeControls
) -> None:
    talk.says("hello", view="x")
    talk.is_told()
    talk.says("control", id="1", action="resume")
    controls.state = "finished"
    talk.is_told()
    talk.says("attach", id="2", where=["a"], quantity="norm", schedule="every(1)")
    assert controls.requests == []
    talk.is_told()
    texts = [(row["state"], row["text"]) for row in talk.last("status")["tickets"]]
    assert texts == [("refused", "not paused"), ("refused", "this run has ended")]


def test_an_opened_record_refuses_requests() -> None:
    talk = Talk(None)
    talk.source.finished = True
    talk.says("hello", view="x")
    talk.says("control", id="1", action="stop")
    talk.is_told()
    assert talk.last("status")["tickets"][0]["text"] == "this run has ended"
    assert not talk.last("model")["live"]
