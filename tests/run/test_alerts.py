"""Alerts of a live run: found off the training thread, kept in the record, told once."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from typing import Any

import pytest
import torch
from torch import nn

import notebook_probe as nbp
from notebook_probe.alerts import RULES
from notebook_probe.errors import RuleError, UnknownNameError
from notebook_probe.run.attach.requests import EditRule
from tests.models import floats, made, mlp, sgd, train
from tests.run.conftest import Watch

BATCH = floats(5, 4)


@pytest.fixture(autouse=True)
def _own_rules() -> Iterator[None]:
    before = dict(RULES._members)
    yield
    RULES._members = before


def break_weights(model: Any) -> None:
    with torch.no_grad():
        model[0].weight[0, 0] = float("nan")


def test_a_nan_is_found_where_it_began_and_kept_in_the_record(
    watch: Watch, model: nn.Module
) -> None:
    run, optimizer = watch(model), sgd(model)
    train(model, optimizer, BATCH, range(20))
    assert run.alerts == nbp.Alerts()
    break_weights(model)
    train(model, optimizer, BATCH, range(20, 30))
    live = run.alerts
    (alert,) = live.of("nonfinite_output")
    assert (alert.step, alert.module) == (20, "0")
    run.close()
    assert run.alerts == live == nbp.open_run(run.location).alerts
    assert [event.text for event in run.events if event.kind == "alert"] == [a.text for a in live]
    assert nbp.open_run(run.location).find_alerts().of("nonfinite_output")[0].text == alert.text


def test_a_rule_of_ones_own_takes_six_lines(watch: Watch, model: nn.Module) -> None:
    @nbp.rule(rows=3)
    def top_heavy(top_share, most=0.5):  # type: ignore[no-untyped-def]
        """one unit has {top_share:.0%} of the activation"""
        return top_share > most

    def top_share(output: torch.Tensor) -> torch.Tensor:
        return output.abs().amax() / output.abs().sum()

    run = watch(model, probes={"2": [top_share]})
    run.rules.edit("top_heavy", most=0.0)
    train(model, sgd(model), BATCH, range(5))
    (alert,) = run.alerts
    share = float(run.data.top_share.sel(module="2", step=2))
    assert str(alert) == f"step 2: top_heavy at 2: one unit has {share:.0%} of the activation"


def events_of(run: nbp.Run | nbp.OpenedRun, kind: str) -> list[tuple[int, str, Any]]:
    return [(e.step, e.text, json.loads(e.detail)) for e in run.events if e.kind == kind]


def test_a_rule_that_is_edited_is_an_event_of_the_record(watch: Watch, model: nn.Module) -> None:
    run, optimizer = watch(model), sgd(model)
    train(model, optimizer, BATCH, range(3))
    run.controls.settle()
    ticket = run.controls.edit_rule("dead_units", most=0.3, rows=2)
    assert (ticket.state, ticket.text) == ("applied", "dead_units: most 0.8 → 0.3, rows 1 → 2")
    assert run.controls.edit_rule("dead_units", most=0.3).text == "dead_units is so already"
    train(model, optimizer, BATCH, range(3, 5))
    run.rules.edit("dead_units", again=50)
    del run.rules["lr_high"]
    run.close()
    found = events_of(nbp.open_run(run.location), "rule")
    assert [text for _, text, _ in found] == [
        "dead_units: most 0.8 → 0.3, rows 1 → 2",
        "dead_units: again never → 50",
        "lr_high is followed no more",
    ]
    _, _, detail = found[0]
    assert (detail["rule"], detail["from"]["most"], detail["to"]["most"]) == (
        "dead_units",
        0.8,
        0.3,
    )
    assert found[0][0] < found[1][0]
    assert found[2][2]["to"] is None


def test_an_edited_rule_holds_for_the_rows_to_come(watch: Watch, model: nn.Module) -> None:
    run, optimizer = watch(model, probes={"0": ["weight_norm"]}), sgd(model)
    nbp.rule(name="test_heavy", says="{weight_norm:.3g}", again=1)(
        lambda weight_norm, most=1e9: weight_norm > most
    )
    train(model, optimizer, BATCH, range(10))
    assert not run.alerts.of("test_heavy")
    step = run.controls.open_step
    assert run.controls.edit_rule("test_heavy", most=0.0).state == "queued"
    train(model, optimizer, BATCH, range(10, 20))
    found = run.alerts.of("test_heavy")
    assert len(found) == 1
    assert found[0].step in (step, step + 1)  # the open step may have been looked at already
    assert found[0].severity == "warning"


def test_an_edit_that_cannot_be_is_refused(watch: Watch, model: nn.Module) -> None:
    run = watch(model)
    with pytest.raises(UnknownNameError, match=r"no rule 'dead_unit' is followed; close: 'dead_u"):
        run.controls.edit_rule("dead_unit", most=0.3)
    with pytest.raises(UnknownNameError, match="'dead_units' has no 'mots'"):
        run.controls.edit_rule("dead_units", mots=0.3)
    with pytest.raises(RuleError, match="rows=0; an integer from 1"):
        run.controls.edit_rule("dead_units", rows=0)
    ticket = run.controls.put(EditRule("dead_units", {"rows": 0}))
    train(model, sgd(model), BATCH, range(2))
    assert (ticket.state, run.rules["dead_units"].rows) == ("refused", 1)
    assert "an integer from 1" in ticket.text
    assert not events_of(run, "rule")


def test_an_alert_is_as_severe_as_its_rule_was_also_in_the_record(
    watch: Watch, model: nn.Module
) -> None:
    run = watch(model)
    break_weights(model)
    train(model, sgd(model), BATCH, range(5))
    severities = {alert.rule: alert.severity for alert in run.alerts}
    run.close()
    assert severities["nonfinite_output"] == "severe"
    found = nbp.open_run(run.location).alerts
    assert {alert.rule: alert.severity for alert in found} == severities


def test_rules_are_asked_on_the_writers_thread(watch: Watch, model: nn.Module) -> None:
    threads = set()

    @nbp.rule
    def spy(weight_norm):  # type: ignore[no-untyped-def]
        """never"""
        threads.add(threading.current_thread().name)
        return weight_norm < 0

    run = watch(model)
    train(model, sgd(model), BATCH, range(30))
    run.controls.settle()
    run.flush()
    assert threads == {"notebook_probe record"}
    run.close()


def test_a_rule_that_fails_stops_neither_training_nor_recording(
    watch: Watch, model: nn.Module
) -> None:
    @nbp.rule
    def broken(weight_norm):  # type: ignore[no-untyped-def]
        """never"""
        raise MemoryError("too large")

    run = watch(model)
    train(model, sgd(model), BATCH, range(10))
    assert run.alerts == nbp.Alerts()
    assert repr(run.alerts) == "no alerts\nrule broken is off: MemoryError: too large"
    assert run.explain().off == {"broken": "MemoryError: too large"}
    assert "error: rule broken is off: MemoryError: too large" in repr(run.status())
    assert "off: MemoryError: too large" in repr(run.rules)
    run.close()
    assert run.status().problem == ""
    told = [event.text for event in run.events if event.kind == "error"]
    assert told == ["alert rule broken is off: MemoryError: too large"]
    assert nbp.open_run(run.location).series("0", "weight_norm").size == 10


def test_a_rule_that_was_corrected_or_removed_is_not_off(watch: Watch, model: nn.Module) -> None:
    @nbp.rule
    def brittle(weight_norm, most=0.0):  # type: ignore[no-untyped-def]
        """never"""
        return weight_norm > 1.0 / most

    run = watch(model)
    train(model, sgd(model), BATCH, range(3))
    assert [*run.alerts.off] == [*run.status().rules_off] == ["brittle"]
    run.rules.edit("brittle", most=1e-9)
    assert (run.alerts.off, run.status().rules_off, run.explain().off) == ({}, {}, {})


@pytest.mark.slow
def test_a_resumed_run_says_what_was_said_no_more(watch: Watch, model: nn.Module) -> None:
    first = watch(model)
    break_weights(model)
    train(model, sgd(model), BATCH, range(10))
    first.close()
    said = first.alerts
    assert len(said) > 0
    again = watch(model, store=first.location)
    train(model, sgd(model), BATCH, range(10, 20))
    again.close()
    assert again.alerts == said == nbp.open_run(first.location).alerts


@pytest.mark.slow
def test_what_was_found_at_steps_that_are_taken_back_is_found_again(
    watch: Watch, model: nn.Module
) -> None:
    first, optimizer = watch(model), sgd(model)
    train(model, optimizer, BATCH, range(10))
    break_weights(model)
    train(model, optimizer, BATCH, range(10, 20))
    first.close()
    assert {alert.step for alert in first.alerts} == {10}
    repaired = made(mlp)
    again = watch(repaired, store=first.location, step=5)
    train(repaired, sgd(repaired), BATCH, range(5, 15))
    assert again.alerts == nbp.Alerts()
    break_weights(repaired)
    train(repaired, sgd(repaired), BATCH, range(15, 20))
    again.close()
    assert {alert.step for alert in again.alerts} == {15}
    assert again.alerts == nbp.open_run(first.location).alerts


def test_alerts_are_found_in_a_run_that_is_closed_before_its_first_flush(
    watch: Watch, model: nn.Module
) -> None:
    run = watch(model, probes={"*": ["update_ratio", ["grad_cosine", "every(2)"]]})
    run.rules["lr_high"] = run.rules["lr_high"].but(rows=1, most=1e-9)
    train(model, sgd(model, lr=1e-4), lambda step: BATCH(step) * (-1) ** (step // 2), range(8))
    run.close()
    whole = run.find_alerts(run.rules["lr_high"])
    assert [alert.text for alert in run.alerts.of("lr_high")] == [alert.text for alert in whole]


class Skips(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.used, self.other = nn.Linear(4, 4), nn.Linear(4, 4)
        self.uses_both = True

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.used(x)
        return self.other(x) if self.uses_both else x


def test_a_probe_that_has_fallen_silent_is_told_with_the_reason(watch: Watch) -> None:
    model = made(Skips)
    run, optimizer = watch(model, probes={"*": [["output_mean", "every(2)"]]}), sgd(model)
    train(model, optimizer, BATCH, range(10))
    assert run.alerts == nbp.Alerts()
    model.uses_both = False
    train(model, optimizer, BATCH, range(10, 15))
    run.alerts  # noqa: B018 - it is asked at step 15 for the first time
    train(model, optimizer, BATCH, range(15, 30))
    (alert,) = run.alerts
    assert (alert.rule, alert.modules) == ("stale_probe", ("other",))
    assert alert.text == ("other: output_mean had no value at 3 due steps: not called since step 8")
    assert run.alerts == nbp.Alerts([alert])
    run.close()
    assert nbp.open_run(run.location).alerts == nbp.Alerts([alert])


class Spare(nn.Module):
    """A softmax that its forward does without, as many programs have one."""

    def __init__(self) -> None:
        super().__init__()
        self.used, self.spare = nn.Linear(4, 4), nn.Softmax(-1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        found: torch.Tensor = self.used(x)
        return found.softmax(-1)


@pytest.mark.parametrize(
    ("probes", "told"),
    [("default", []), ({"*": ["output_mean"]}, ["spare"]), ({"spare": ["output_mean"]}, ["spare"])],
)
def test_a_module_that_is_never_called_is_told_to_who_asked_for_it(
    watch: Watch, probes: Any, told: list[str]
) -> None:
    model = made(Spare)
    run, optimizer = watch(model, probes=probes), sgd(model)
    for start in (0, 5):  # how many due steps have passed is counted from the first look on
        train(model, optimizer, BATCH, range(start, start + 5))
        found = run.alerts.of("stale_probe")
    assert [alert.module for alert in found] == told
    notes = {one.module: one.note for one in run.status().probes if one.quantity == "output_mean"}
    assert notes["spare"] == "not called by any training forward yet"


def test_a_preset_of_a_model_that_trains_without_being_called_is_a_remark(watch: Watch) -> None:
    model, other = made(Spare), made(Spare)
    run, optimizer = watch(model), sgd(model)
    for _ in range(2):
        for _ in range(5):
            for own, copied in zip(model.parameters(), other.parameters(), strict=True):
                own.grad = torch.ones_like(copied)
            optimizer.step()
        found = run.remarks.of("stale_probe")
    (alert,) = found
    assert "spare" in alert.modules


def test_frozen_modules_are_expected_to_be_silent(watch: Watch, model: nn.Module) -> None:
    model.get_submodule("0").requires_grad_(False)
    run = watch(model)
    for start in (0, 10, 20):
        train(model, sgd(model), BATCH, range(start, start + 10))
        assert run.alerts == nbp.Alerts()
