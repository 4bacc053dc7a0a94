"""Learning rates, lost state and updates that stop: each with its healthy twin."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn
from torch.optim import SGD, Adam, Optimizer
from torch.optim.lr_scheduler import (
    CosineAnnealingLR,
    ExponentialLR,
    LambdaLR,
    LRScheduler,
    OneCycleLR,
    StepLR,
)

import notebook_probe as nbp
from tests.run.facts.trained import small, train_it


@pytest.mark.parametrize(("factor", "text"), [(20.0, "rose 20 times"), (0.1, "fell 10 times")])
def test_a_rate_that_changes_at_once_is_a_remark_with_its_factor(
    factor: float, text: str, tmp_path: Path
) -> None:
    model = small()
    optimizer = SGD(model.parameters(), lr=1e-3)

    def then(step: int) -> None:
        if step in (10, 20):
            optimizer.param_groups[0]["lr"] *= factor if step == 10 else 1 / factor

    alerts, remarks = train_it(tmp_path, model, [optimizer], then=then)
    assert alerts == set()
    assert {one[:2] for one in remarks} == {("rate_jump", 10), ("rate_jump", 20)}
    assert text in nbp.open_run(tmp_path / "a.zarr").remarks[0].text


@pytest.mark.parametrize(
    ("schedule", "named"),
    [
        (lambda optimizer: StepLR(optimizer, 5, 0.5), {"rate_falls_each_step", "rate_gone"}),
        (lambda optimizer: ExponentialLR(optimizer, 0.9), {"rate_falls_each_step", "rate_gone"}),
        (lambda optimizer: ExponentialLR(optimizer, 0.99), set()),
        (lambda optimizer: StepLR(optimizer, 40, 0.3), set()),
        (lambda optimizer: CosineAnnealingLR(optimizer, 150), set()),
        (lambda optimizer: OneCycleLR(optimizer, 1e-2, total_steps=150), set()),
        (lambda optimizer: LambdaLR(optimizer, lambda step: min(1.0, (step + 1) / 99)), set()),
    ],
)
def test_a_rate_that_is_gone_while_the_training_continues_is_named(
    schedule: Callable[[Optimizer], LRScheduler], named: set[str], tmp_path: Path
) -> None:
    model = small()
    optimizer = SGD(model.parameters(), lr=1e-2)
    scheduler = schedule(optimizer)
    alerts, remarks = train_it(
        tmp_path,
        model,
        [optimizer],
        n_steps=150,
        then=lambda step: scheduler.step() if step else None,
    )
    assert {one[0] for one in alerts} - {"lr_low"} == named
    assert remarks == set()


def test_what_a_range_test_of_the_rate_does_is_a_remark_and_an_alert_afterwards(
    tmp_path: Path,
) -> None:
    model = small()
    begun = {name: value.clone() for name, value in model.state_dict().items()}
    optimizer = SGD(model.parameters(), lr=1e-4)

    def then(step: int) -> None:
        group = optimizer.param_groups[0]
        if step < 120:
            group["lr"] *= 1.12  # up to 80
        elif step == 120:
            model.load_state_dict(begun)
            group["lr"] = 0.1
        elif step == 200:
            group["lr"] = 80.0

    alerts, remarks = train_it(tmp_path, model, [optimizer], n_steps=240, then=then)
    tried = {rule for rule, step, _ in remarks if step < 120}
    assert {"rate_range_test", "exploding_gradient"} <= tried
    assert {step >= 200 for _, step, _ in alerts} == {True}


@pytest.mark.parametrize("factor", [1.0, 1.1])
def test_a_rate_that_rises_by_the_same_amount_or_by_little_is_no_range_test(
    factor: float, tmp_path: Path
) -> None:
    model = small()
    optimizer = SGD(model.parameters(), lr=1e-4)

    def then(step: int) -> None:
        group = optimizer.param_groups[0]
        group["lr"] = group["lr"] + 1e-3 if factor == 1 else group["lr"] * factor ** (step < 22)

    assert train_it(tmp_path, model, [optimizer], n_steps=60, then=then) == (set(), set())


@pytest.mark.parametrize("is_loaded", [True, False])
def test_a_continued_run_whose_optimizer_begins_anew_is_named(
    is_loaded: bool, tmp_path: Path
) -> None:
    def begun() -> tuple[nn.Module, Optimizer]:
        model = small()
        return model, Adam(model.parameters(), lr=1e-3)

    def trained(run: nbp.Run, model: nn.Module, optimizer: Optimizer) -> None:
        with run:
            for _ in range(5):
                optimizer.zero_grad()
                model(torch.rand(16, 8)).square().mean().backward()
                optimizer.step()

    model, optimizer = begun()
    trained(nbp.watch(model, optimizer, tmp_path / "a.zarr"), model, optimizer)
    saved, state = model.state_dict(), optimizer.state_dict()
    model, optimizer = begun()
    model.load_state_dict(saved)
    if is_loaded:
        optimizer.load_state_dict(state)
    run = nbp.watch(model, optimizer, tmp_path / "a.zarr", step=5)
    trained(run, model, optimizer)
    found = [(one.rule, one.step) for one in run.alerts]
    assert found == ([] if is_loaded else [("optimizer_state_lost", 5)])


@pytest.mark.parametrize("n_forwards", [40, 60])
def test_forwards_without_any_update_more_are_named(n_forwards: int, tmp_path: Path) -> None:
    model = small()
    optimizer = SGD(model.parameters(), lr=1e-3)
    with nbp.watch(model, store=tmp_path / "a.zarr") as run:
        for step in range(5 + n_forwards):
            loss: Tensor = model(torch.rand(16, 8)).square().mean()
            if step < 5:
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
        found = [(one.rule, one.step) for one in run.alerts]
    assert found == ([("no_updates", 5)] if n_forwards == 60 else [])


@pytest.mark.parametrize("kind", ["by hand", "with steps", "accumulated", "few"])
def test_updates_by_other_code_than_an_optimizer_are_named(kind: str, tmp_path: Path) -> None:
    model = small()
    with nbp.watch(model, store=tmp_path / "a.zarr") as run:
        for _ in range(20 if kind == "few" else 60):
            model(torch.rand(16, 8)).square().mean().backward()
            if kind == "with steps":
                run.step()
            if kind != "accumulated":
                with torch.no_grad():
                    for weight in model.parameters():
                        weight.sub_(1e-3 * torch.as_tensor(weight.grad))
    found = [one for one in run.alerts if one.rule == "unseen_updates"]
    assert len(found) == (kind == "by hand")
    assert not found or "have been written 60 times" in found[0].text


def test_a_fact_whose_rule_was_taken_away_is_not_reported(tmp_path: Path) -> None:
    model = small()
    optimizer = SGD(model.parameters(), lr=1e-3)
    with nbp.watch(model, store=tmp_path / "a.zarr") as run:
        del run.rules["negated_loss"]
        for _ in range(3):
            optimizer.zero_grad()
            (-nn.functional.mse_loss(model(torch.rand(16, 8)), torch.zeros(16, 2))).backward()
            optimizer.step()
    assert list(run.alerts) == []


def test_a_fact_that_raises_is_an_event_and_the_training_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = small()
    optimizer = SGD(model.parameters(), lr=1e-3)
    run = nbp.watch(model, store=tmp_path / "a.zarr")
    monkeypatch.setattr(run._parts.facts._who, "look", lambda *args: 1 / 0)
    with run:
        for _ in range(3):
            optimizer.zero_grad()
            model(torch.rand(16, 8)).square().mean().backward()
            optimizer.step()
    errors = [event.text for event in run.events if event.kind == "error"]
    assert errors == ["facts are off: ZeroDivisionError: division by zero"]


def test_a_slow_optimizer_of_two_is_not_gone(tmp_path: Path) -> None:
    model = small()
    first, *others = model.parameters()
    optimizers = [SGD(others, lr=1e-2), SGD([first], lr=1e-9)]
    with nbp.watch(model, store=tmp_path / "a.zarr", probes=None) as run:
        for _ in range(80):
            model.zero_grad()
            model(torch.rand(4, 8)).square().mean().backward()
            for one in optimizers:
                one.step()
    assert "rate_gone" not in {one.rule for one in run.alerts}


@pytest.mark.slow
@pytest.mark.parametrize("is_new", [False, True])
def test_a_rate_that_was_only_tried_or_is_of_an_earlier_optimizer_is_no_peak(
    is_new: bool, tmp_path: Path
) -> None:
    """A range test ends at 10, and another phase of a training may begin with another optimizer."""
    model = small()
    optimizer = SGD(model.parameters(), lr=1e-3)
    with nbp.watch(model, store=tmp_path / "a.zarr", probes=None) as run:
        for step in range(140):
            rate = 10.0 if is_new else 1e-3 * 1.2**step
            if step == 50 and is_new:
                optimizer = SGD(model.parameters(), lr=5e-4)
            optimizer.param_groups[0]["lr"] = rate if step < 50 else 5e-4
            optimizer.zero_grad()
            (1e-4 * model(torch.rand(4, 8)).square().mean()).backward()
            optimizer.step()
    assert "rate_gone" not in {one.rule for one in run.alerts}


@pytest.mark.parametrize("looked_at", [(), (70,), (70, 130)])
@pytest.mark.parametrize("recovers", [False, True])
def test_a_rate_that_is_gone_is_of_the_same_step_whenever_it_is_looked_at(
    looked_at: tuple[int, ...], recovers: bool, tmp_path: Path
) -> None:
    model = small()
    optimizer = SGD(model.parameters(), lr=1e-3)
    with nbp.watch(model, store=tmp_path / "a.zarr", probes=None) as run:
        for step in range(150):
            if step in looked_at:
                run.flush()
            is_gone = step >= 60 and not (recovers and step >= 140)
            optimizer.param_groups[0]["lr"] = 0.0 if is_gone else 1e-3
            optimizer.zero_grad()
            model(torch.rand(4, 8)).square().mean().backward()
            optimizer.step()
    assert [(one.rule, one.step) for one in run.alerts] == [("rate_gone", 110)]


@pytest.mark.parametrize("looked_at", [None, 120])
@pytest.mark.parametrize(
    ("seconds", "named"),
    [
        ([0.1 + 0.01 * i for i in range(150)], True),
        ([0.1] * 75 + [0.3] * 75, False),  # another program began
        ([0.1 + 0.2 * (i % 7) * (i / 150) for i in range(150)], False),  # and a busy machine
    ],
)
def test_steps_whose_shortest_become_longer_and_longer_are_named(
    seconds: list[float], named: bool, looked_at: int | None, tmp_path: Path
) -> None:
    model = small()
    optimizer = SGD(model.parameters(), lr=1e-3)
    with nbp.watch(model, store=tmp_path / "a.zarr", probes=None) as run:
        for number, one in enumerate(seconds):
            if number == looked_at:  # the last rows are looked at, however few they are
                run.flush()
            run.log(step_time=one)
            optimizer.zero_grad()
            model(torch.rand(4, 8)).square().mean().backward()
            optimizer.step()
    assert [one.rule for one in run.alerts] == (["steps_get_slower"] if named else [])
