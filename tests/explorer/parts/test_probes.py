"""What the panel is told of costs and presets, and what its clicks ask of a run."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import nn

import notebook_probe as nbp
from notebook_probe.explorer.conversation import PanelSession
from notebook_probe.explorer.parse import parse
from notebook_probe.run.attach.requests import AttachPreset, Reschedule
from tests.explorer.fakes import FakeControls, FakeSource


def heard(session: PanelSession, **message: Any) -> None:
    session.receive(parse({"v": 1, **message}))  # type: ignore[arg-type]


def told(session: PanelSession, controls: Any) -> list[Mapping[str, Any]]:
    sent: list[Mapping[str, Any]] = []
    session.publish(lambda message, _: sent.append(message), "pump", controls.status_head())
    return [message for message in sent if message["type"] == "probes"]


def test_a_view_is_told_over_how_many_steps_the_cost_was_taken_and_what_presets_there_are() -> None:
    controls = FakeControls()
    session = PanelSession(FakeSource(), controls)
    heard(session, type="hello", view="x")
    [message] = told(session, controls)
    assert message == {
        "v": 1,
        "type": "probes",
        "n_measured": 0,
        "step_s": 0.013,
        "budget": None,
        "presets": [
            {"name": "gradients", "about": "What gradients do.", "percent": 6.1},
            {"name": "own", "about": "", "percent": None},
        ],
        "flight": "",
    }
    assert told(session, controls) == []


def test_an_opened_record_has_no_account() -> None:
    session = PanelSession(FakeSource(), None)
    heard(session, type="hello", view="x")
    assert told(session, FakeControls()) == []


def test_clicks_ask_what_the_calls_ask() -> None:
    controls = FakeControls()
    session = PanelSession(FakeSource(), controls)
    heard(session, type="reschedule", id="1", where=[], quantity="a", schedule="every(2)")
    heard(session, type="reschedule", id="2", where=["b"], quantity="a", schedule="every(2)")
    heard(session, type="preset", id="3", name="spectra")
    assert controls.requests == [
        Reschedule(None, "a", "every(2)"),
        Reschedule(("b",), "a", "every(2)"),
        AttachPreset("spectra"),
    ]


def test_on_a_run_the_schedule_changes_and_the_budget_and_the_steps_are_told(
    tmp_path: Path,
) -> None:
    model = nn.Linear(2, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with nbp.watch(model, optimizer, tmp_path / "run.zarr", {"": ["output_std"]}) as run:
        session = PanelSession(run, run.controls)
        heard(session, type="hello", view="x")
        heard(session, type="reschedule", id="1", where=[], quantity="output_std", schedule="3")
        heard(session, type="budget", id="2", percent=5.0)
        for _ in range(4):
            model(torch.ones(3, 2)).sum().backward()
            optimizer.step()
        run.boundary()
        assert [probe.schedule for probe in run.probes()] == ["every(3)"]
        [message] = told(session, run.controls)
        assert (message["n_measured"], message["budget"]) == (4, 5.0)
        assert {"default", "gradients"} <= {one["name"] for one in message["presets"]}
