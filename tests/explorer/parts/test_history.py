"""The checkpoints that a panel is told of."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from notebook_probe.alerts import Alert
from notebook_probe.explorer.conversation import PanelSession
from notebook_probe.explorer.parse import parse
from notebook_probe.record.format.source import Event
from notebook_probe.record.read.reader import OpenedRecord, open_record
from notebook_probe.record.views.xarray_views import RunSource
from tests.explorer.fakes import FakeControls, FakeSource
from tests.record.build import GRAD, new_writer, row


def saved(step: int, path: str, loss: float | None = 0.5) -> Event:
    detail = {"step": step, "bytes": 12, "path": path, "loss": loss}
    return Event(step, 1000 * step, "checkpoint", f"checkpoint of step {step}", json.dumps(detail))


def told(session: PanelSession) -> list[Mapping[str, Any]]:
    sent: list[Mapping[str, Any]] = []
    head = FakeControls().status_head()
    session.publish(lambda message, _: sent.append(message), "pump", head)
    return [message for message in sent if message["type"] == "history"]


def test_they_stand_in_the_order_of_steps_and_say_which_file_is_gone(tmp_path: Path) -> None:
    there = tmp_path / "200.pt"
    there.write_bytes(b"x")
    source = FakeSource()
    session = PanelSession(source, FakeControls())
    session.receive(parse({"v": 1, "type": "hello", "view": "x"}))  # type: ignore[arg-type]
    assert told(session)[0]["checkpoints"] == []
    source.events = (
        saved(400, str(tmp_path / "gone.pt"), None),
        saved(200, str(there)),
        saved(300, "s3://bucket/300.pt"),
    )
    [message] = told(session)
    rows = [(row["step"], row["gone"], row["loss"]) for row in message["checkpoints"]]
    assert rows == [(200, False, 0.5), (300, False, 0.5), (400, True, None)]
    assert message["checkpoints"][0]["time_ms"] == 200_000
    assert told(session) == []


def branched(place: Path) -> None:
    """Three branches, of which each went astray; the second began at 10, the third at 5."""
    for resume, first, stop in ((None, 0, 20), ("branch(10)", 10, 18), ("branch(5)", 5, 8)):
        with new_writer(place, resume=resume) as writer:
            stream = writer.stream("every_1")
            stream.extend(["conv1"], [GRAD])
            for step in range(first, stop):
                stream.record(step, 0, row(stream, step))
            found = Alert("mine", stop - 2, "conv1: went astray", ("conv1",), ("grad_norm",))
            writer.event(found.step, "alert", found.text, found.detail)
            kept = saved(stop - 1, f"s3://bucket/{stop - 1}.pt")
            writer.event(kept.step, kept.kind, kept.text, kept.detail)


def heard_of(source: RunSource) -> dict[str, Mapping[str, Any]]:
    session = PanelSession(source, None)
    session.receive(parse({"v": 1, "type": "hello", "view": "x"}))  # type: ignore[arg-type]
    session.receive(parse({"v": 1, "type": "visible", "view": "x", "visible": True}))  # type: ignore[arg-type]
    heard: dict[str, Mapping[str, Any]] = {}
    session.publish(lambda one, _: heard.update({one["type"]: one}), "pump", session.head())
    return heard


@pytest.mark.slow
def test_a_record_tells_of_the_branch_that_was_left_and_of_its_alerts(tmp_path: Path) -> None:
    branched(tmp_path / "record")
    heard = heard_of(open_record(tmp_path / "record"))
    told = heard["history"]
    assert (told["branch"], told["fork"], told["left"]["to"]) == (3, 5, 18)
    assert [one["step"] for one in told["checkpoints"]] == [7]
    assert [one["step"] for one in told["left"]["checkpoints"]] == [17]
    assert [one["step"] for one in heard["alerts"]["rows"]] == [6]
    assert [one["step"] for one in heard["left"]["rows"]] == [16]
    assert heard["left_heat"]["last_step"] == 17
    first = heard_of(OpenedRecord(tmp_path / "record", 1))
    assert (first["history"]["branch"], first["history"]["left"]) == (1, None)
    assert first["left"]["rows"] == []
    assert "left_heat" not in first
