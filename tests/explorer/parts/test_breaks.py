"""Breakpoints in the panel: sent when they change, changed by clicks, tried on a series."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

import notebook_probe as nbp
from notebook_probe.explorer.conversation import PanelSession
from notebook_probe.explorer.parse import parse
from notebook_probe.run.breakpoints.conditions import (
    AtStep,
    Comparison,
    OnAlert,
    OnError,
    OnNan,
    OnSeries,
    PauseCondition,
)
from notebook_probe.run.breakpoints.requests import (
    AddBreakpoint,
    BreakpointInfo,
    EditBreakpoint,
    RemoveBreakpoint,
)
from tests.explorer.fakes import FakeControls, FakeSource, FakeStream


def heard(session: PanelSession, **message: Any) -> None:
    session.receive(parse({"v": 1, **message}))  # type: ignore[arg-type]


def told(session: PanelSession, controls: Any) -> list[Mapping[str, Any]]:
    sent: list[Mapping[str, Any]] = []
    session.publish(lambda message, _: sent.append(message), "pump", controls.status_head())
    return [message for message in sent if message["type"] == "breaks"]


@pytest.fixture
def controls() -> FakeControls:
    return FakeControls()


@pytest.fixture
def session(controls: FakeControls) -> PanelSession:
    stream = FakeStream("every_1", ["a", "b"], ["grad_norm"])
    stream.append(range(6), grad_norm=[[1, 1], [3, 1], [3, 1], [1, 1], [5, 1], [2, 1]])
    session = PanelSession(FakeSource(stream), controls)
    heard(session, type="hello", view="x")
    return session


HIGH = OnSeries("a", "grad_norm", Comparison(">", 10.0), 2)


def test_each_breakpoint_is_a_row_and_nobody_is_told_twice(
    session: PanelSession, controls: FakeControls
) -> None:
    controls.breaks = [BreakpointInfo(4, HIGH, True, pauses=True, last_step=812, n_met=1)]
    controls.pause_reason = "paused at step 812: a · grad_norm 12.3 > 10 for 2 rows"
    [message] = told(session, controls)
    assert message["rows"] == [
        {
            "id": 4,
            "kind": "series",
            "text": "a · grad_norm > 10 for 2 rows",
            "number": 10.0,
            "armed": True,
            "pauses": True,
            "last_step": 812,
            "module": "a",
            "quantity": "grad_norm",
            "sign": ">",
            "rules": [],
            "note": "",
        }
    ]
    assert message["paused"] == {"text": controls.pause_reason, "step": 812}
    assert (message["live"], message["severe"]) == (True, ["nonfinite_loss", "loss_spike"])
    assert told(session, controls) == []
    controls.state, controls.pause_reason, controls.traceback = "finished", "", "Traceback ..."
    [message] = told(session, controls)
    assert (message["live"], message["paused"], message["traceback"]) == (
        False,
        None,
        "Traceback ...",
    )


@pytest.mark.parametrize("rules", [("severe",), ("dead_units",)])
def test_a_breakpoint_on_alerts_names_its_rules(
    rules: tuple[str, ...], session: PanelSession, controls: FakeControls
) -> None:
    on_alert = OnAlert(rules)
    controls.breaks = [BreakpointInfo(1, on_alert, True, pauses=False, last_step=-1, n_met=0)]
    [message] = told(session, controls)
    assert message["rows"][0]["rules"] == [*rules]


@pytest.mark.parametrize(
    ("given", "condition"),
    [
        ({"kind": "step", "number": 2000}, AtStep(2000)),
        ({"kind": "alert"}, OnAlert()),
        ({"kind": "alert", "rules": ["dead_units"]}, OnAlert(("dead_units",))),
        ({"kind": "series", "for_rows": 2}, HIGH),
        ({"kind": "nan", "before": "update"}, OnNan("update")),
        ({"kind": "error"}, OnError()),
    ],
)
def test_a_click_asks_for_its_condition(
    given: dict[str, Any], condition: PauseCondition, session: PanelSession, controls: FakeControls
) -> None:
    click = {
        "type": "break",
        "id": "1",
        "module": "a",
        "quantity": "grad_norm",
        "sign": ">",
        "number": 10,
        "for_rows": 1,
        "rules": [],
        "before": "step",
    }
    heard(session, **{**click, **given})
    assert controls.requests == [AddBreakpoint(condition)]


def test_clicks_edit_and_remove(session: PanelSession, controls: FakeControls) -> None:
    heard(session, type="edit_break", id="1", which=4, armed=False, number=None)
    heard(session, type="edit_break", id="2", which=4, armed=None, number=3)
    heard(session, type="unbreak", id="3", which=4)
    assert controls.requests == [
        EditBreakpoint(4, False, None),
        EditBreakpoint(4, None, 3.0),
        RemoveBreakpoint(4),
    ]


def test_a_series_that_is_asked_for_is_tried_on_the_record(
    session: PanelSession, controls: FakeControls
) -> None:
    [message] = told(session, controls)
    assert message["trial"] is None
    asked = {"module": "a", "quantity": "grad_norm", "sign": ">", "number": 2, "for_rows": 1}
    heard(session, type="try_break", **asked)
    [message] = told(session, controls)
    assert message["trial"] == {
        "module": "a",
        "quantity": "grad_norm",
        "now": 2.0,
        "usual": 2.5,
        "steps": [1, 4],
        "n_steps": 2,
    }
    heard(session, type="try_break", **{**asked, "number": None})  # none is typed yet
    [message] = told(session, controls)
    trial = message["trial"]
    assert (trial["now"], trial["usual"], trial["steps"], trial["n_steps"]) == (2.0, 2.5, [], None)
    heard(session, type="try_break", **{**asked, "quantity": "nothing"})
    [message] = told(session, controls)
    assert (message["trial"]["now"], message["trial"]["n_steps"]) == (None, 0)
    heard(session, type="try_break", **{**asked, "quantity": ""})
    [message] = told(session, controls)
    assert message["trial"] is None


def test_of_a_real_run_a_click_arms_it_and_the_row_says_so(tmp_path: Path) -> None:
    model = nn.Linear(3, 1)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    with nbp.watch(model, optimizer, store=tmp_path / "r.zarr", probes=None) as run:
        session = PanelSession(run, run.controls)
        heard(session, type="hello", view="x")
        click = {"number": 7, "for_rows": 1, "rules": [], "before": "step", "sign": ">"}
        heard(session, type="break", id="1", kind="step", module="", quantity="", **click)
        model(torch.ones(2, 3)).sum().backward()
        optimizer.step()
        run.boundary()
        [message] = told(session, run.controls)
        assert [row["text"] for row in message["rows"]] == ["at step 7"]
