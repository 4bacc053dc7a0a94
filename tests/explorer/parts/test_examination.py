"""The examination in a panel: asked for by a click, and read from the record."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import nn

import notebook_probe as nbp
from notebook_probe.explorer.parts.examination import ExaminationPart
from notebook_probe.record.format.notes import EXAMINATION
from notebook_probe.record.format.source import Event
from tests.explorer.fakes import FakeSource
from tests.explorer.panel_of_run import PanelOfRun
from tests.models import made, mlp
from tests.run.conftest import Watch, watch

__all__ = ["watch"]


ENDED: Any = SimpleNamespace(head=SimpleNamespace(state="finished"))
"""State of a run that has ended, as a part sees it."""


@pytest.fixture
def model() -> nn.Module:
    return made(mlp)


@pytest.fixture
def run(watch: Watch, model: nn.Module) -> nbp.Run:
    return watch(model, probes=None, name="first")


def test_a_click_is_answered_by_a_report_that_the_record_keeps(
    run: nbp.Run, model: nn.Module
) -> None:
    panel = PanelOfRun(run, "examination")
    assert panel.state() == {
        "v": 1, "type": "examination", "live": True, "step": -1, "title": "", "rows": []
    }  # fmt: skip
    panel.hear(type="examine", id="1")
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(3):
        model(torch.ones(2, 4)).sum().backward()
        optimizer.step()
        optimizer.zero_grad()
    found = panel.state()
    assert found["step"] == 2
    assert found["title"].endswith("good")
    assert all(len(row) == 4 for row in found["rows"])
    run.close()
    opened = ExaminationPart(nbp.open_run(Path(run.location)), None)
    seen = opened.state(ENDED)
    assert seen["live"] is False
    assert seen["rows"] == found["rows"]


@pytest.mark.parametrize("detail", ["", "{", "3", "[]", '{"findings": 3}', '{"findings": [{}]}'])
def test_a_malformed_report_has_no_rows(detail: str) -> None:
    source = FakeSource()
    source.events = (Event(3, 0, EXAMINATION, "1 good", detail),)
    seen = ExaminationPart(source, None).state(ENDED)
    assert (seen["step"], seen["title"], seen["rows"]) == (3, "1 good", [])
