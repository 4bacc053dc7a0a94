"""Every rule fires on a training that really goes wrong, and is silent where it goes right."""

from __future__ import annotations

from pathlib import Path

import pytest

from notebook_probe.alerts import RULES
from notebook_probe.run.attach.presets import presets
from tests.alerts.trainings import HEALTHY, ILL, run_it


@pytest.mark.parametrize("rule", ILL)
def test_a_rule_fires_on_a_training_that_goes_wrong(rule: str, tmp_path: Path) -> None:
    ill, _ = ILL[rule]
    alerts = run_it(ill, tmp_path / "ill.zarr").alerts.of(rule)
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
    assert needed == asked | {"loss"}


def test_there_is_a_training_for_every_rule() -> None:
    own = "notebook_probe.alerts.builtin."
    built_in = {name for name in RULES if RULES[name].condition.__module__.startswith(own)}
    assert built_in == {*ILL, "stale_probe"}  # the last one is of probes: tests/run/test_alerts.py
