"""A rate held against its schedule, left to it again, and every group's by one factor."""

from __future__ import annotations

import json
from typing import Any

import pytest
from torch.optim import SGD, lr_scheduler

from notebook_probe.errors import SettingError
from notebook_probe.probes.step.live_options import live_options
from tests.models import floats, made, mlp, train_step
from tests.run.conftest import Watch
from tests.run.settings.schedules import Seen

batch = floats(5, 4)


def test_what_is_held_stays_whatever_is_scheduled_until_it_is_released(watch: Watch) -> None:
    model = made(mlp)
    optimizer = Seen(model.parameters(), lr=0.1)
    scheduler = lr_scheduler.ExponentialLR(optimizer, gamma=0.5)
    run = watch(model, optimizer, probes=None)
    for step in range(6):
        if step == 1:
            run.set("lr", 0.3, hold=True)
        if step == 4:
            run.release("lr")
        train_step(model, optimizer, batch(step))
        scheduler.step()
    assert optimizer.rates == pytest.approx([0.1, 0.3, 0.3, 0.3, 0.1 / 16, 0.1 / 32])
    assert optimizer.param_groups[0]["lr"] == pytest.approx(0.1 / 64)  # the schedule goes on
    texts = [event.text for event in run.events if event.kind == "set"]
    assert texts == ["lr 0.05 → 0.3, held", "lr 0.3 → 0.00625, as scheduled"]


def test_it_is_held_where_the_schedule_is_at_zero_too(watch: Watch) -> None:
    model = made(mlp)
    optimizer = Seen(model.parameters(), lr=0.1)
    lr_scheduler.LambdaLR(optimizer, lambda step: 0.0)
    run = watch(model, optimizer, probes=None)
    with pytest.raises(SettingError, match="or with hold=True"):
        run.set("lr", 0.2)
    run.set("lr", 0.2, hold=True)
    train_step(model, optimizer, batch(0))
    assert optimizer.rates == [0.2]


def test_what_is_held_is_in_the_state_of_a_checkpoint(watch: Watch) -> None:
    model = made(mlp)
    optimizer = Seen(model.parameters(), lr=0.1)
    run = watch(model, optimizer, probes=None)
    run.set("lr", 0.2, hold=True)
    rows = json.loads(json.dumps(live_options(optimizer).state()))
    other = Seen(model.parameters(), lr=0.1)
    live_options(other).load_state(rows)
    train_step(model, other, batch(0))
    assert other.rates == [0.2]


def test_one_factor_keeps_unlike_groups_unlike(watch: Watch) -> None:
    model = made(mlp)
    first, *others = model.parameters()
    groups: list[dict[str, Any]] = [{"params": [first], "lr": 0.4}, {"params": others}]
    optimizer = SGD(groups, lr=0.1)
    run = watch(model, optimizer, probes=None)
    assert run.scale("lr", 0.5).state == "applied"
    assert [group["lr"] for group in optimizer.param_groups] == [0.2, 0.05]
    details = [json.loads(event.detail) for event in run.events if event.kind == "set"]
    assert [(one["group"], one["from"], one["to"]) for one in details] == [
        (0, 0.4, 0.2),
        (1, 0.1, 0.05),
    ]
    with pytest.raises(SettingError, match="a factor is a positive number"):
        run.scale("lr", -1)


def test_a_panel_is_told_whose_rate_it_is_what_is_in_the_groups_and_what_schedules_it(
    watch: Watch,
) -> None:
    model = made(mlp)
    weights = [one for one in model.parameters() if one.ndim > 1]
    others = [one for one in model.parameters() if one.ndim == 1]
    groups: list[dict[str, Any]] = [
        {"params": weights, "weight_decay": 0.1},
        {"params": others},
    ]
    optimizer = SGD(groups, lr=0.1)
    lr_scheduler.ExponentialLR(optimizer, gamma=0.5)
    run = watch(model, optimizer, probes=None)
    run.set("lr", 0.2, group=1, hold=True)
    rate, *_ = run.knobs()
    assert rate.of == "SGD, 2 groups"
    assert [(one.text, one.scheduled, one.is_held) for one in rate.details] == [
        (f"{len(weights)} weights, decay 0.1", 0.1, False),
        (f"{len(others)} biases and norms", 0.1, True),
    ]


def test_a_knob_of_ones_own_has_no_schedule_to_hold_it_against(watch: Watch) -> None:
    run = watch(made(mlp), probes=None)
    seen = [0.5]
    run.knob("temperature", lambda: seen[-1], seen.append, 0.1, 10.0, log=True)
    with pytest.raises(SettingError, match="only options of optimizers have a schedule"):
        run.set("temperature", 1.0, hold=True)
    assert run.release("temperature").state == "refused"
    run.scale("temperature", 4)
    assert seen[-1] == 2.0
