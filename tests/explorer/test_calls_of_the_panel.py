"""Number of our calls in a click and in a refresh of a panel, on a run that trains."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

import notebook_probe as nbp
from benchmarks.calls import calls_of
from notebook_probe.explorer.conversation import PanelSession
from notebook_probe.explorer.parse import parse
from tests.models import floats, mlp, sgd, train_step

CLICK, REFRESH = 18, 1000


@pytest.fixture
def run(tmp_path: Path) -> Iterator[nbp.Run]:
    model = mlp()
    run = nbp.watch(model, probes=[], store=tmp_path / "run.zarr")
    run.attach("0", "output_norm", nbp.Every(1))
    optimizer = sgd(model)
    for step in range(8):
        train_step(model, optimizer, floats(5, 4)(step))
    run.controls.settle()
    yield run
    run.close()


def says(panel: PanelSession, message_type: str, /, **fields: Any) -> None:
    message = parse({"v": 1, "type": message_type, **fields})
    assert message["type"] != "ping"
    panel.receive(message)


def test_a_click_and_a_refresh_take_few_calls(run: nbp.Run) -> None:
    panel = PanelSession(run, run.controls)
    sent: list[str] = []

    def send(message: Mapping[str, Any], buffers: list[memoryview]) -> None:
        sent.append(message["type"])

    def refresh() -> None:
        panel.publish(send, "own subshell", panel.head())

    says(panel, "hello", view="x")
    for _ in range(3):
        refresh()
    assert min(calls_of(refresh, 1).total() for _ in range(4)) <= REFRESH
    assert "status" in sent
    click = {"where": ["0"], "quantity": "weight_norm", "schedule": "every(1)"}
    clicked = calls_of(lambda: says(panel, "attach", id="1", **click), 1)
    in_the_panel = {file: n for file, n in clicked.items() if not file.endswith("parse.py")}
    assert 0 < sum(in_the_panel.values()) <= CLICK
