"""While a refresh takes long, the panel says what it knows without reading."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from notebook_probe.errors import StoreSilentError
from notebook_probe.explorer import long_turns
from notebook_probe.explorer.conversation import PanelSession
from notebook_probe.explorer.long_turns import LongTurns
from tests.explorer.fakes import FakeControls, FakeSource, FakeStream

PATIENCE_S = 60.0


class FarSource(FakeSource):
    """A source that cannot be read while ``error`` is set."""

    error: Exception | None = None

    @property
    def revision(self) -> int:
        if self.error is not None:
            raise self.error
        return super().revision


class Conversation:
    """A session with one view, and what it was sent."""

    def __init__(self) -> None:
        stream = FakeStream("every_1", ["a", "b"], ["grad_norm"])
        stream.append([0, 1], grad_norm=1.0)
        self.source = FarSource(stream)
        self.controls = FakeControls()
        self.session = PanelSession(self.source, self.controls)
        self.status: dict[str, Any] = {}
        self.kinds: list[str] = []
        self.session.receive({"v": 1, "type": "hello", "view": "x"})

    def send(self, message: Any, buffers: object) -> None:
        self.kinds.append(message["type"])
        if message["type"] == "status":
            self.status |= message

    def publish(self) -> None:
        self.session.publish(self.send, "own subshell", self.session.head())

    def publish_while_reading(self, seconds: float) -> None:
        self.kinds.clear()
        self.session.publish_while_reading(self.send, "own subshell", seconds)

    @property
    def problems(self) -> list[str]:
        return [row["text"] for row in self.status["problems"]]


@pytest.fixture
def talk() -> Conversation:
    talk = Conversation()
    talk.publish()
    return talk


def test_a_store_that_does_not_answer_is_a_problem_until_it_does(talk: Conversation) -> None:
    talk.source.error = StoreSilentError("cannot reach s3://bucket/run: no route")
    for step in (8, 9):
        talk.controls.step = step
        talk.publish()
        assert talk.status["step"] == step, "the training still answers"
        assert talk.problems == ["cannot reach s3://bucket/run: no route"]
    talk.source.error = None
    talk.publish()
    assert talk.problems == []


def test_a_record_without_controls_keeps_its_status_while_its_store_is_silent() -> None:
    talk = Conversation()
    talk.session = PanelSession(talk.source, None)
    talk.session.receive({"v": 1, "type": "hello", "view": "x"})
    talk.publish_while_reading(7.4)
    assert talk.kinds == [], "nothing is known yet"
    talk.publish()
    step = talk.status["step"]
    talk.source.error = StoreSilentError("cannot reach it")
    talk.publish()
    assert (talk.status["step"], talk.problems[0]) == (step, "cannot reach it")
    talk.publish_while_reading(7.4)
    assert talk.kinds == ["status"]
    talk.source.error = None
    talk.publish()
    assert talk.problems == []


def test_another_error_of_a_source_stays_listed(talk: Conversation) -> None:
    talk.session.problem(ValueError("odd"), "refreshing the panel")
    talk.publish()
    talk.publish()
    assert talk.problems == ["refreshing the panel: ValueError: odd"]


def test_the_status_and_clicks_are_told_while_the_record_is_read(talk: Conversation) -> None:
    talk.session.receive({"v": 1, "type": "control", "id": "1", "action": "pause"})
    talk.controls.step = 9
    talk.publish_while_reading(2.0)
    assert talk.status["step"] == 9
    assert [one["state"] for one in talk.status["tickets"]] == ["queued"]
    assert talk.problems == []
    assert set(talk.kinds) <= {"status", "alerts"}, "nothing that needs the record"
    talk.publish_while_reading(7.4)
    assert talk.problems == ["reading the record: no answer of its store for 7 s"]
    talk.publish()
    assert talk.problems == []


def test_nothing_is_told_to_views_that_are_hidden(talk: Conversation) -> None:
    talk.session.receive({"v": 1, "type": "visible", "view": "x", "visible": False})
    talk.publish()
    talk.publish_while_reading(7.4)
    assert talk.kinds == []


def test_a_turn_that_takes_long_is_told_until_it_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(long_turns, "EVERY_S", 0.001)
    monkeypatch.setattr(long_turns, "LATE_S", 0.01)
    told: list[float] = []
    often, ended = threading.Event(), threading.Event()

    def tell(seconds: float) -> bool:
        told.append(seconds)
        if len(told) == 3:
            often.set()
        return not ended.is_set()

    turns = LongTurns(tell)
    with turns.turn():
        assert often.wait(PATIENCE_S)
        assert told == sorted(told)
        assert told[0] > 0.01
        ended.set()
        turns.close()
    turns._thread.join(PATIENCE_S)
    assert not turns._thread.is_alive()
