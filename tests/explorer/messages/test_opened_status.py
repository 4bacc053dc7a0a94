"""The status of a record that nobody here is writing: its last loss, and the line behind it."""

from __future__ import annotations

import math
from pathlib import Path

import torch
from matplotlib.text import Text
from torch import nn

import notebook_probe as nbp
from notebook_probe.explorer.conversation import PanelSession
from notebook_probe.explorer.messages.opened_status import OpenedStatus
from notebook_probe.explorer.parse import parse
from notebook_probe.figures import overview
from tests.explorer.fakes import FakeSource, FakeStream


def logged(n_rows: int) -> FakeSource:
    stream = FakeStream("logged", ["(root)"], ["loss"], logged=True)
    stream.append(range(n_rows), loss=[[1.0 / (1 + step)] for step in range(n_rows)])
    return FakeSource(stream)


def test_an_opened_record_tells_its_last_loss_and_those_before() -> None:
    source = logged(200)
    session = PanelSession(source, None)
    session.receive(parse({"v": 1, "type": "hello", "view": "x"}))  # type: ignore[arg-type]
    sent: list[object] = []
    session.publish(lambda message, _: sent.append(message), "pump", session.head())
    [status] = [one for one in sent if isinstance(one, dict) and one["type"] == "status"]
    name, last, recent = status["scalar"]
    assert (name, len(recent)) == ("loss", 90)
    assert math.isclose(last, 1 / 200, rel_tol=1e-6)
    assert math.isclose(recent[0], 1 / 111, rel_tol=1e-3)
    assert math.isclose(recent[-1], 1 / 200, rel_tol=1e-3)


def test_a_record_without_a_logged_number_has_none() -> None:
    stream = FakeStream("every_1", ["a"], ["grad_norm"])
    stream.append(range(3), grad_norm=[[1.0], [2.0], [3.0]])
    assert OpenedStatus(FakeSource(stream)).head().scalars == {}


def test_an_evaluation_after_the_last_step_is_no_step(tmp_path: Path) -> None:
    model = nn.Linear(2, 1)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    with nbp.watch(model, optimizer, store=tmp_path / "run.zarr", probes=None) as run:
        for _ in range(3):
            model(torch.ones(1, 2)).sum().backward()
            optimizer.step()
            run.log(loss=1.0)
        run.log(eval_loss=0.5, phase="eval")
    opened = nbp.open_run(tmp_path / "run.zarr")
    assert opened.series("", "eval_loss").step.values.tolist() == [3]
    assert OpenedStatus(opened).head().step == 3
    words = [text.get_text() for text in overview(opened, "loss").findobj(Text)]
    assert "loss   step 3" in words
