"""Adapters that do not learn are said by name; what is frozen or left out on purpose is not."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.optim import SGD, Adam, Optimizer

import notebook_probe as nbp
from notebook_probe.run.health.untrained import (
    ALL_ZERO,
    FROZEN,
    NOT_HELD,
    NOT_REACHED,
    adapters,
)

Optimize = Callable[[nn.Module], Optimizer]


class LoraLinear(nn.Module):
    """A frozen layer with a low-rank update beside it."""

    def __init__(self, width: int = 8, rank: int = 2) -> None:
        super().__init__()
        self.base = nn.Linear(width, width).requires_grad_(False)
        self.lora_A, self.lora_B = (
            nn.Linear(width, rank, bias=False),
            nn.Linear(rank, width, bias=False),
        )
        nn.init.zeros_(self.lora_B.weight)
        self.is_used = True

    def forward(self, x: Tensor) -> Tensor:
        return self.base(x) + (self.lora_B(self.lora_A(x)) if self.is_used else 0)


def net() -> nn.Sequential:
    torch.manual_seed(0)
    return nn.Sequential(LoraLinear(), nn.ReLU(), LoraLinear(), nn.Linear(8, 2))


def all_of(model: nn.Module) -> Optimizer:
    return Adam([one for one in model.parameters() if one.requires_grad], lr=1e-2)


def trained(
    folder: Path, model: nn.Module, optimizers: Iterable[Optimizer], n_steps: int = 30
) -> list[tuple[int, tuple[str, ...], str]]:
    """What is said of it: step, modules and reason."""
    optimizers = [*optimizers]
    with nbp.watch(model, store=folder / "a.zarr", probes=None):
        for step in range(n_steps):
            optimizer = optimizers[step % len(optimizers)]
            optimizer.zero_grad()
            model(torch.rand(16, 8)).square().mean().backward()
            optimizer.step()
    alerts = nbp.open_run(folder / "a.zarr").alerts.of("untrained_adapter")
    return [(alert.step, alert.modules, alert.sentence.partition(": ")[2]) for alert in alerts]


def zero(model: nn.Sequential) -> None:
    for place in (0, 2):
        nn.init.zeros_(model[place].lora_A.weight)  # type: ignore[arg-type, union-attr]


def frozen(model: nn.Sequential) -> None:
    for place in (0, 2):
        model[place].requires_grad_(False)


def unused(model: nn.Sequential) -> None:
    for place in (0, 2):
        model[place].is_used = False  # type: ignore[assignment]


def head_alone(model: nn.Module) -> Optimizer:
    return SGD(model.get_submodule("3").parameters(), lr=0.1)


@pytest.mark.parametrize(
    ("spoil", "optimize", "why"),
    [
        (zero, all_of, ALL_ZERO),
        (frozen, all_of, FROZEN),
        (unused, all_of, NOT_REACHED),
        (lambda model: None, head_alone, NOT_HELD),
    ],
)
def test_adapters_that_stay_as_they_were_are_said_by_name_with_the_reason(
    spoil: Callable[[nn.Sequential], Any], optimize: Optimize, why: str, tmp_path: Path
) -> None:
    model = net()
    spoil(model)
    assert trained(tmp_path, model, [optimize(model)]) == [(20, ("0", "2"), why)]


def test_adapters_that_learn_are_not_spoken_of(tmp_path: Path) -> None:
    model = net()
    assert trained(tmp_path, model, [all_of(model)]) == []


def test_one_adapter_that_is_not_used_while_another_learns_is_as_it_may_be(tmp_path: Path) -> None:
    model = net()
    model[0].is_used = False  # type: ignore[assignment]
    model[2].requires_grad_(True)
    assert trained(tmp_path, model, [all_of(model)]) == []


def test_before_a_rate_is_above_zero_nothing_can_have_changed(tmp_path: Path) -> None:
    model = net()
    optimizer = all_of(model)
    optimizer.param_groups[0]["lr"] = 0.0
    assert trained(tmp_path, model, [optimizer]) == []


def plain() -> nn.Sequential:
    return nn.Sequential(nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 2))


class Tied(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(8, 8), nn.Linear(8, 8)
        self.second.weight = self.first.weight
        self.never = nn.Linear(8, 8)

    def forward(self, x: Tensor) -> Tensor:
        return self.second(self.first(x))


def test_what_is_left_out_on_purpose_is_not_said(tmp_path: Path) -> None:
    backbone = plain()
    backbone[0].requires_grad_(False)
    assert trained(tmp_path / "frozen", backbone, [all_of(backbone)]) == []
    omitted = plain()  # a head on what is not frozen, only left out
    assert trained(tmp_path / "omitted", omitted, [SGD(omitted[2].parameters(), lr=0.1)]) == []
    tied = Tied()  # and a layer that is never called
    assert trained(tmp_path / "tied", tied, [SGD(tied.parameters(), lr=0.1)]) == []
    halves = plain()
    each = [SGD(halves[place].parameters(), lr=0.1) for place in (0, 2)]
    assert trained(tmp_path / "halves", halves, each) == []


class TwoTasks(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.lin = nn.Linear(8, 8)
        self.adapters = nn.ModuleDict({"a": nn.Linear(8, 8), "b": nn.Linear(8, 8)})
        self.exploration = nn.Linear(8, 8)


class HoulsbyAdapter(nn.Linear):
    pass


def test_adapters_are_known_by_their_names_or_their_class() -> None:
    model = nn.Sequential(net(), TwoTasks(), HoulsbyAdapter(8, 8))
    found = {path: len(ones) for path, ones in adapters(model).items()}
    assert found == {"0.0": 4, "0.2": 4, "1": 4, "2": 2}


class LoraModel(nn.Module):
    """As PEFT puts one around the whole of a model."""

    def __init__(self) -> None:
        super().__init__()
        self.model = net()
        self.large = nn.Linear(64, 64).requires_grad_(False)

    def forward(self, x: Tensor) -> Tensor:
        return self.model(x)


def test_a_class_around_adapters_is_none_and_of_a_frozen_base_nothing_is_copied(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = nn.Sequential(LoraModel())
    assert [*adapters(model)] == ["0.model.0", "0.model.2"]
    copied: list[tuple[int, ...]] = []
    clone = Tensor.clone

    def counted(one: Tensor, **options: Any) -> Tensor:
        copied.append(tuple(one.shape))
        return clone(one, **options)

    with monkeypatch.context() as patch:
        patch.setattr(Tensor, "clone", counted)
        assert trained(tmp_path, model, [all_of(model)]) == []
    assert sorted(copied) == [(2, 8), (2, 8), (8, 2), (8, 2)]


def test_a_rule_that_was_taken_away_says_nothing(tmp_path: Path) -> None:
    model = net()
    frozen(model)
    optimizer = all_of(model)
    with nbp.watch(model, store=tmp_path / "a.zarr", probes=None) as run:
        del run.rules["untrained_adapter"]
        for _ in range(30):
            optimizer.zero_grad()
            model(torch.rand(16, 8)).sum().backward()
            optimizer.step()
        assert list(run.alerts) == []
