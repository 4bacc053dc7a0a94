"""An explanation: causes first, then remarks, what was found well, and what was not judged."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn
from torch.nn import functional as F
from torch.optim import SGD, Adam

import notebook_probe as nbp
from notebook_probe.alerts import RULES, Alert, Alerts
from notebook_probe.alerts.alert import rule_off
from notebook_probe.alerts.explaining import Explanation, explain
from notebook_probe.record.format.source import Event
from tests.explorer.fakes import FakeSource, FakeStream


def trained(folder: Path, model: nn.Module, spoiled: bool, n_steps: int = 230) -> nbp.Run:
    torch.manual_seed(0)
    optimizer = Adam(model.parameters(), lr=1e-4 if spoiled else 1e-2)
    with nbp.watch(model, optimizer, folder / "a.zarr", "default", budget=None) as run:
        for _ in range(n_steps):
            x = torch.randn(64, 8)
            out = model(x)
            loss = F.cross_entropy(out.softmax(1) if spoiled else out, x[:, :4].argmax(1))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    return run


def small() -> nn.Sequential:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 4))


@pytest.mark.slow
def test_a_cause_comes_before_its_consequences_and_what_is_unknown_is_said(tmp_path: Path) -> None:
    run = trained(tmp_path, small(), spoiled=True)
    lines = str(run.explain()).splitlines()
    assert lines[0] == "230 steps: 1 cause, no remarks"
    assert lines[1].startswith("- step 0: activation_before_loss at the model: cross_entropy takes")
    assert lines[2].startswith("    then step 2")
    assert lines[2].endswith(": loss_at_chance at the model")
    assert run.explain().unknown["dead_fraction",] == ("dead_units",)
    assert lines[-1].startswith("  try: nbp.watch(")
    assert "loss_spike" in run.explain().well
    assert len(lines) <= 40
    assert max(map(len, lines[2:])) < 130


def test_an_opened_run_explains_itself_in_the_same_words(tmp_path: Path) -> None:
    run = trained(tmp_path, small(), spoiled=False, n_steps=20)
    opened = nbp.open_run(run.location).explain()
    assert str(opened) == str(run.explain())
    assert json.loads(json.dumps(opened.to_dict()))["title"] == "20 steps: no causes, no remarks"


@pytest.mark.slow
def test_every_rule_is_in_one_part(tmp_path: Path) -> None:
    found = trained(tmp_path, small(), spoiled=True).explain()
    named = {one.rule for cause in found.causes for one in cause} | {*found.well}
    known = named | {rule for rules in found.unknown.values() for rule in rules}
    assert known == {*RULES} - {"differs_from_reference"}, "it has no references"


def test_a_rate_that_rose_is_the_cause_of_what_follows(tmp_path: Path) -> None:
    model = small()
    optimizer = SGD(model.parameters(), lr=1e-2)
    with nbp.watch(model, optimizer, tmp_path / "a.zarr", "default", budget=None) as run:
        for step in range(60):
            if step == 40:
                optimizer.param_groups[0]["lr"] = 50.0
            x = torch.randn(64, 8)
            loss = (model(x) - x[:, :4]).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    first, *_ = run.alerts.causes
    assert first.alert.rule == "rate_jump"
    assert "rose 5e+03 times at once, from 0.01 to 50" in first.alert.text
    assert {"loss_spike", "diverging_loss"} & {one.alert.rule for one in first.below}
    assert all(not one.is_remark for one in run.alerts)
    assert "rate_jump" not in {one.rule for one in run.explain().remarks}


def test_a_long_list_is_cut_and_says_so() -> None:
    many = Alerts(Alert("dead_units", 100 * i, "fc: dead", ("fc",)) for i in range(9))
    found = Explanation("9", many.causes, Alerts(), (), {})
    assert [*found.lines()][-1] == "and 5 more causes"


def test_a_rule_whose_condition_raises_is_not_among_those_that_found_nothing() -> None:
    stream = FakeStream("every_1", ["fc"], ["output_norm"])
    stream.append(range(3), output_norm=1.0)
    source = FakeSource(stream)
    source.events = (Event(2, 0, "error", rule_off("large_outputs", "KeyError: 3")),)
    found = explain(source, [RULES["large_outputs"]])
    assert (found.well, found.unknown) == ((), {})
    assert found.to_dict()["off"] == {"large_outputs": "KeyError: 3"}
    lines = str(found).splitlines()
    assert lines[1:] == ["off, as the rule raised an error:", "  large_outputs: KeyError: 3"]
    assert found.title == "3 steps: no causes, no remarks"


def test_before_the_first_step_no_rule_has_found_anything_well() -> None:
    found = explain(FakeSource(FakeStream("every_1", ["fc"], ["norm"])), RULES.values())
    assert (found.title, found.well) == ("0 steps: no causes, no remarks", ())
    assert "exploding_gradient" in found.unknown["a step of training",]
    assert max(map(len, str(found).splitlines())) < 150


@pytest.mark.parametrize("step", [-1, 3, 1.5, "1", True])
def test_a_step_that_is_not_recorded_cannot_be_explained(step: Any) -> None:
    stream = FakeStream("every_1", ["fc"], ["output_norm"])
    with pytest.raises(ValueError, match=f"step={step!r}; no step is recorded"):
        explain(FakeSource(stream), [], step)
    stream.append(range(3), output_norm=1.0)
    with pytest.raises(ValueError, match=f"step={step!r}; recorded steps are 0 to 2"):
        explain(FakeSource(stream), [], step)
