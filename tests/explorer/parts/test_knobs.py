"""What can be set is told when it has changed, and a click sets it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

import notebook_probe as nbp
from notebook_probe.errors import ClosedRunError
from notebook_probe.explorer.conversation import PanelSession
from notebook_probe.explorer.parse import MessageError, parse
from notebook_probe.record.format.source import Event
from notebook_probe.run.attach.requests import Release, Scale, Set
from notebook_probe.run.settings.setting import KnobInfo
from tests.explorer.fakes import FakeControls, FakeSource, FakeStream


def heard(session: PanelSession, **message: Any) -> None:
    session.receive(parse({"v": 1, **message}))  # type: ignore[arg-type]


def told(session: PanelSession, controls: Any) -> list[Mapping[str, Any]]:
    sent: list[Mapping[str, Any]] = []
    session.publish(lambda message, _: sent.append(message), "pump", controls.status_head())
    return [message for message in sent if message["type"] == "knobs"]


@pytest.fixture
def controls() -> FakeControls:
    return FakeControls()


@pytest.fixture
def session(controls: FakeControls) -> PanelSession:
    session = PanelSession(FakeSource(), controls)
    heard(session, type="hello", view="x")
    return session


def test_a_new_view_is_told_what_can_be_set_and_nobody_is_told_twice(
    session: PanelSession, controls: FakeControls
) -> None:
    [message] = told(session, controls)
    assert message == {
        "v": 1,
        "type": "knobs",
        "knobs": [
            {
                "name": "lr",
                "value": 0.01,
                "low": 0.0,
                "high": None,
                "log": True,
                "groups": [0.01],
                "of": "",
                "details": [],
            }
        ],
        "hint": None,
        "last": None,
    }
    assert told(session, controls) == []
    heard(session, type="hello", view="y")
    assert told(session, controls) == [message]


def test_what_has_been_set_elsewhere_is_told(session: PanelSession, controls: FakeControls) -> None:
    told(session, controls)
    controls.settable = [KnobInfo("lr", math.nan, groups=(0.1, math.nan))]
    [message] = told(session, controls)
    assert [(row["value"], row["groups"]) for row in message["knobs"]] == [(None, [0.1, None])]


def test_a_part_that_fails_is_a_problem_and_the_others_go_on(
    session: PanelSession, controls: FakeControls, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails() -> Any:
        raise OSError("the disk has gone")

    monkeypatch.setattr(controls, "knobs", fails)
    sent: list[Mapping[str, Any]] = []
    for _ in range(2):
        session.publish(lambda message, _: sent.append(message), "pump", controls.status_head())
    [*_, status] = [message for message in sent if message["type"] == "status"]
    assert any("the disk has gone" in problem["text"] for problem in status["problems"])


def test_a_click_sets_the_rate_of_a_run_at_the_next_boundary(tmp_path: Path) -> None:
    model = nn.Linear(2, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with nbp.watch(model, optimizer, tmp_path / "run.zarr", probes=None) as run:
        session = PanelSession(run, run.controls)
        heard(session, type="hello", view="x")
        heard(session, type="set", id="x-1", name="lr", value=0.5, group=None, hold=False)
        for _ in range(2):
            model(torch.ones(3, 2)).sum().backward()
            optimizer.step()
        assert optimizer.param_groups[0]["lr"] == 0.5
        [message] = told(session, run.controls)
        assert message["knobs"][0]["value"] == 0.5


def test_a_value_that_is_no_number_does_not_come_through_the_door() -> None:
    with pytest.raises(MessageError, match=r"set\.value of a view's message is 'much', not float"):
        parse({"v": 1, "type": "set", "id": "1", "name": "lr", "value": "much", "group": None})


def rated(*rows: tuple[int, float]) -> FakeSource:
    """The ratio of updates at two layers, one of which never moves."""
    stream = FakeStream("every_1", ["a", "b"], ["update_ratio"])
    for step, ratio in rows:
        stream.append([step], update_ratio=[ratio, 0.0])
    return FakeSource(stream)


@pytest.mark.parametrize(
    ("ratio", "factor"), [(4.1e-3, 1 / 4.1), (2e-4, 5.0), (2.5e-3, None), (4e-4, None)]
)
def test_the_rate_is_hinted_at_when_updates_are_off_by_three(
    controls: FakeControls, ratio: float, factor: float | None
) -> None:
    session = PanelSession(rated((0, ratio), (1, ratio)), controls)
    heard(session, type="hello", view="x")
    [message] = told(session, controls)
    hint = message["hint"]
    assert (hint and hint["factor"]) == (factor and pytest.approx(factor))


def test_what_was_done_with_another_rate_is_not_hinted_at(controls: FakeControls) -> None:
    source = rated(*((step, 0.5) for step in range(5)))
    source.events = (
        Event(4, 0, "set", "lr 1 → 0.01", '{"name": "lr", "group": null, "from": 1, "to": 0.01}'),
        Event(4, 0, "set", "p 1 → 2", '{"name": "p", "group": null, "from": 1, "to": 2}'),
    )
    session = PanelSession(source, controls)
    heard(session, type="hello", view="x")
    [message] = told(session, controls)
    assert message["hint"] is None
    assert message["last"] == {"step": 4, "text": "lr 1 → 0.01"}


def test_clicks_hold_scale_and_release_as_the_calls_do(
    session: PanelSession, controls: FakeControls
) -> None:
    heard(session, type="set", id="1", name="lr", value=0.5, group=1, hold=True)
    heard(session, type="scale", id="2", name="lr", factor=0.5, hold=False)
    heard(session, type="release", id="3", name="lr")
    assert controls.requests == [
        Set("lr", 0.5, 1, hold=True),
        Scale("lr", 0.5),
        Release("lr"),
    ]


def test_a_run_that_ends_while_it_is_asked_is_no_problem_of_the_panel(
    session: PanelSession, controls: FakeControls, monkeypatch: pytest.MonkeyPatch
) -> None:
    def closed() -> None:
        raise ClosedRunError("run 'digits' is closed")

    monkeypatch.setattr(controls, "knobs", closed)
    sent: list[Mapping[str, Any]] = []
    session.publish(lambda message, _: sent.append(message), "pump", controls.status_head())
    session.publish(lambda message, _: sent.append(message), "pump", controls.status_head())
    assert not any(message.get("problems") for message in sent)
