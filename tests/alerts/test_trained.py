"""Every rule fires on a training that really goes wrong, and is silent where it goes right."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch import nn

import notebook_probe as nbp
from notebook_probe.alerts import RULES, Cause
from notebook_probe.alerts.builtin.facts import FACTS
from notebook_probe.run.attach.presets import presets
from tests.alerts.trainings import HEALTHY, ILL, deep, run_it


@pytest.mark.parametrize("rule", ILL)
def test_a_rule_fires_on_a_training_that_goes_wrong(rule: str, tmp_path: Path) -> None:
    ill, _ = ILL[rule]
    run = run_it(ill, tmp_path / "ill.zarr")
    alerts = (run.remarks if RULES[rule].severity == "remark" else run.alerts).of(rule)
    assert len(alerts) >= 1
    assert all("nan" not in alert.text for alert in alerts if not rule.startswith("nonfinite"))


@pytest.mark.parametrize("rule", ILL)
def test_every_rule_is_silent_on_a_training_that_goes_well(rule: str, tmp_path: Path) -> None:
    _, healthy = ILL[rule]
    run = run_it(healthy, tmp_path / "healthy.zarr")
    assert list(run.alerts) == []
    assert "waits" not in run.rules._states()[rule]


@pytest.mark.parametrize("name", HEALTHY)
def test_the_preset_of_the_alerts_feeds_every_rule_and_is_silent_on_what_goes_well(
    name: str, tmp_path: Path
) -> None:
    run = run_it(HEALTHY[name], tmp_path / "a.zarr")
    assert list(run.alerts) == []
    rules = [run.rules[name] for name in run.rules]
    needed = {quantity for rule in rules for quantity in rule.quantities}
    asked = {name for row in presets["alerts"].rows for name in row.names}
    of_facts = {"step_time"}
    of_rollouts = {"clip_fraction", "idle_group_share", "logp_gap", "reward"}  # trainers log them
    recorded_anyway = {"calls", "loss", "loss_d", "loss_g", "skipped", *of_rollouts}
    recorded_anyway |= {"discarded_backwards"}
    assert needed | of_facts == asked | recorded_anyway


def test_a_rate_that_jumps_is_told_as_one_cause_and_where_each_thing_began(tmp_path: Path) -> None:
    torch.manual_seed(0)
    model = deep(nn.ReLU, 4)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    of_weights = ["grad_norm", "update_ratio", "nonfinite_fraction"]
    probes = {nn.Linear: of_weights, nn.ReLU: ["nonfinite_fraction"]}
    run = nbp.watch(model, optimizer, tmp_path / "a.zarr", probes, budget=None)
    x, y = torch.randn(32, 64), torch.randn(32, 10)
    for step in range(36):
        if step == 24:
            optimizer.param_groups[0]["lr"] = 3.0
        loss = nn.functional.mse_loss(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        run.log(loss=loss)
    run.close()
    assert [(depth, one.alert.step, one.alert.rule, one.where) for depth, one in lines(run)] == [
        (0, 24, "rate_jump", "at the model"),
        (1, 26, "diverging_loss", "at the model"),
        (2, 26, "exploding_gradient", "began at 8, seen in 6 and 3 more"),  # from the last layer on
        (3, 26, "loss_spike", "at the model"),  # the next loss tells it from another batch
        (3, 27, "early_divergence", "at the model"),
        (4, 27, "nonfinite_from_loss", "at the model"),  # the square of finite outputs
        (5, 27, "nonfinite_loss", "at the model"),
        (5, 27, "nonfinite_gradient", "began at 8, seen in 6 and 3 more"),
        (5, 28, "nonfinite_output", "began at 0, seen in 1 and 7 more"),  # of weights that are none
    ]
    assert nbp.open_run(run.location).alerts.causes == run.alerts.causes


def lines(run: nbp.Run) -> list[tuple[int, Cause]]:
    (cause,) = run.alerts.causes
    return [*cause.lines()]


def test_there_is_a_training_for_every_rule() -> None:
    own = "notebook_probe.alerts.builtin."
    built_in = {name for name in RULES if RULES[name].condition.__module__.startswith(own)}
    asked_of_the_run = {
        "differs_from_reference",
        "evaluated_in_training_mode",
        "stale_probe",
        "trained_in_evaluation_mode",
        "uncleared_gradients",
        "untrained_adapter",
        *FACTS,
    }  # tests/run/test_alerts.py, tests/run/health
    of_two_models = {"one_sided_gan", "generator_behind"}  # tests/alerts/test_adversaries.py
    of_series = {
        "every_gradient_zero",
        "nothing_to_learn",
        "passes_cleared",
        "updates_skipped",
    }  # tests/alerts/test_conformance.py, tests/run/facts
    of_rollouts = {
        "clips_too_often",
        "groups_without_signal",
        "rollouts_differ",
    }  # tests/alerts/test_rollouts.py
    assert built_in == {*ILL, *asked_of_the_run, *of_two_models, *of_series, *of_rollouts}
