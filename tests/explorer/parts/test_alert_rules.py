"""Which rules watch is told, a threshold is tried on what is recorded, and a click edits it."""

from __future__ import annotations

import time
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

import notebook_probe as nbp
from notebook_probe.alerts import RULES
from notebook_probe.explorer.conversation import PanelSession
from notebook_probe.explorer.parse import MessageError, parse
from notebook_probe.run.attach.requests import EditRule
from tests.explorer.fakes import FakeControls, FakeSource, FakeStream

HOUSE = "notebook_probe.alerts"
BUILT_IN = {one.name for one in RULES.values() if one.condition.__module__.startswith(HOUSE)}


def heard(session: PanelSession, **message: Any) -> None:
    session.receive(parse({"v": 1, **message}))  # type: ignore[arg-type]


def told(session: PanelSession, head: Any) -> list[Mapping[str, Any]]:
    sent: list[Mapping[str, Any]] = []
    session.publish(lambda message, _: sent.append(message), "pump", head)
    return [message for message in sent if message["type"] == "rules"]


def noted(sent: list[Mapping[str, Any]], message: Mapping[str, Any], _: object) -> None:
    sent.append(message)


def trial_of(session: PanelSession, head: Any) -> Mapping[str, Any]:
    """The answer, once it has come."""
    for _ in range(1000):
        for message in told(session, head):
            if message["trial"] is not None:
                found: Mapping[str, Any] = message["trial"]
                return found
        time.sleep(0.005)
    raise AssertionError("no trial was told")


@pytest.fixture
def logits() -> FakeSource:
    stream = FakeStream("every_1", ["a", "b", "c"], ["attn_max_logit", "attn_max_logit_head"])
    logit, head = [[step, 0.0, 0.0] for step in range(60)], [[1.0, 0.0, 0.0]] * 60
    stream.append(range(60), attn_max_logit=logit, attn_max_logit_head=head)
    return FakeSource(stream)


@pytest.fixture
def controls() -> FakeControls:
    controls = FakeControls()
    controls.rule_states = {"dead_units": "on", "lr_high": "waits for grad_cosine"}
    return controls


def test_each_rule_tells_its_numbers_what_explains_it_and_what_it_does(
    logits: FakeSource, controls: FakeControls
) -> None:
    session = PanelSession(logits, controls)
    heard(session, type="hello", view="x")
    [message] = told(session, controls.status_head())
    rows = {row["name"]: row for row in message["rules"]}
    assert rows["dead_units"] == {
        "name": "dead_units",
        "summary": "Units that are below zero for every sample.",
        "severity": "warning",
        "explained_by": list(RULES["dead_units"].explained_by),
        "thresholds": {"most": 0.8},
        "rows": 1,
        "steps": 40,
        "state": "on",
    }
    assert rows["lr_high"]["state"] == "waits for grad_cosine"
    assert rows["attention_logit_large"]["severity"] == "severe"
    assert told(session, controls.status_head()) == []


def test_every_rule_says_in_words_of_its_own_what_it_looks_for(
    logits: FakeSource, controls: FakeControls
) -> None:
    session = PanelSession(logits, controls)
    heard(session, type="hello", view="x")
    [message] = told(session, controls.status_head())
    said = {row["name"]: row["summary"] for row in message["rules"] if row["name"] in BUILT_IN}
    assert said.keys() == BUILT_IN
    assert len(set(said.values())) == len(said)
    assert all(len(summary) > 20 and summary[0].isupper() for summary in said.values()), said
    assert "no value" in said["stale_probe"]


def test_of_an_opened_record_no_rule_watches(logits: FakeSource) -> None:
    session = PanelSession(logits, None)
    heard(session, type="hello", view="x")
    [message] = told(session, session.head())
    assert {row["state"] for row in message["rules"]} == {""}
    assert {row["name"] for row in message["rules"]} >= {"dead_units", "loss_spike"}


def test_a_trial_tells_when_it_would_have_fired_and_changes_nothing(
    logits: FakeSource, controls: FakeControls
) -> None:
    session = PanelSession(logits, controls)
    heard(session, type="hello", view="x")
    numbers = {"most": 40.0}
    heard(session, type="try_rule", rule="attention_logit_large", numbers=numbers)
    trial = trial_of(session, controls.status_head())
    assert trial == {
        "rule": "attention_logit_large",
        "numbers": numbers,
        "steps": [41],
        "n": 1,
        "problem": "",
    }
    assert controls.rules["attention_logit_large"].thresholds["most"] == 50.0
    assert controls.requests == []


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ({"rule": "attention_logit_large", "numbers": {"rows": 0}}, "an integer from 1"),
        ({"rule": "attention_logit_larg", "numbers": {}}, "attention_logit_larg"),
    ],
)
def test_a_trial_that_cannot_be_says_why(
    logits: FakeSource, controls: FakeControls, asked: dict[str, Any], words: str
) -> None:
    session = PanelSession(logits, controls)
    heard(session, type="hello", view="x")
    heard(session, type="try_rule", **asked)
    trial = trial_of(session, controls.status_head())
    assert (trial["steps"], trial["n"]) == ([], 0)
    assert words in trial["problem"]


def test_an_edit_is_a_request_and_its_new_number_is_told(
    logits: FakeSource, controls: FakeControls
) -> None:
    session = PanelSession(logits, controls)
    heard(session, type="hello", view="x")
    told(session, controls.status_head())
    heard(session, type="edit_rule", id="x-1", rule="dead_units", numbers={"most": 0.3})
    assert controls.requests == [EditRule("dead_units", {"most": 0.3})]
    controls.rules.edit("dead_units", most=0.3)
    [message] = told(session, controls.status_head())
    [row] = [row for row in message["rules"] if row["name"] == "dead_units"]
    assert row["thresholds"] == {"most": 0.3}


def test_an_edit_without_numbers_does_not_come_through_the_door() -> None:
    with pytest.raises(MessageError, match=r"edit_rule.numbers"):
        parse(
            {"v": 1, "type": "edit_rule", "id": "1", "rule": "dead_units", "numbers": {"most": "a"}}
        )


def test_a_click_edits_the_rule_of_a_run_and_the_ticket_says_so(tmp_path: Path) -> None:
    model = nn.Linear(2, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with nbp.watch(model, optimizer, tmp_path / "run.zarr", probes=None) as run:
        session = PanelSession(run, run.controls)
        heard(session, type="hello", view="x")
        heard(session, type="edit_rule", id="x-1", rule="dead_units", numbers={"most": 0.3})
        for _ in range(2):
            model(torch.ones(3, 2)).sum().backward()
            optimizer.step()
        assert run.rules["dead_units"].thresholds["most"] == 0.3
        [message] = told(session, run.controls.status_head())
        states = {row["name"]: row["state"] for row in message["rules"]}
        assert states["dead_units"] == "waits for dead_fraction"
        assert states["stale_probe"] == "on"


def test_a_finished_run_and_its_opened_record_show_the_same_alerts(tmp_path: Path) -> None:
    model = nn.Sequential(nn.Linear(2, 4), nn.ReLU(), nn.Linear(4, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with nbp.watch(model, optimizer, store=tmp_path / "run.zarr") as run:
        with torch.no_grad():
            next(model.parameters())[0, 0] = float("nan")
        for _ in range(3):
            model(torch.ones(3, 2)).sum().backward()
            optimizer.step()
    opened = nbp.open_run(tmp_path / "run.zarr")
    shown = []
    for source, controls in ((run, run.controls), (opened, None)):
        session = PanelSession(source, controls)
        heard(session, type="hello", view="x")
        sent: list[Mapping[str, Any]] = []
        session.publish(partial(noted, sent), "", session.head())
        [status] = [message for message in sent if message["type"] == "status"]
        assert status["can"]["edit_rule"] == "this run has ended"
        [alerts] = [message for message in sent if message["type"] == "alerts"]
        shown.append(alerts["rows"])
    assert shown[0] == shown[1]
    assert ("nonfinite_output", "severe") in {(row["rule"], row["severity"]) for row in shown[0]}
