"""The checkpoints that a panel is told of."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from notebook_probe.explorer.conversation import PanelSession
from notebook_probe.explorer.parse import parse
from notebook_probe.record.format.source import Event
from tests.explorer.fakes import FakeControls, FakeSource


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
