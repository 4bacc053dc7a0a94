"""Updates that other code takes back, and code that writes to weights on purpose."""

from __future__ import annotations

import copy
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torch import nn
from torch.optim import SGD, Adam

import notebook_probe as nbp
from tests.run.facts.trained import small, train_it

Write = Callable[[nn.Module, nn.Module], None]
"""Function of a model and of a copy of it that no optimizer has."""


def load(model: nn.Module, kept: nn.Module) -> None:
    model.load_state_dict(kept.state_dict())


def write_data(model: nn.Module, kept: nn.Module) -> None:
    for weight, old in zip(model.parameters(), kept.parameters(), strict=True):
        weight.data.copy_(old)


def swap(model: nn.Module, kept: nn.Module) -> None:
    average(model, kept)
    load(model, kept)


@torch.no_grad()
def average(model: nn.Module, kept: nn.Module) -> None:
    for old, weight in zip(kept.parameters(), model.parameters(), strict=True):
        old.lerp_(weight, 0.01)


@torch.no_grad()
def swap_and_back(model: nn.Module, kept: nn.Module) -> None:
    before = copy.deepcopy(model)
    swap(model, kept)
    model(torch.rand(2, 8))
    load(model, before)


@torch.no_grad()
def prune(model: nn.Module, kept: nn.Module) -> None:
    for weight in model.parameters():
        weight.mul_(weight.abs() > weight.abs().quantile(0.8))


@torch.no_grad()
def clamp(model: nn.Module, kept: nn.Module) -> None:
    for weight in model.parameters():
        weight.clamp_(-0.2, 0.2)


@torch.no_grad()
def normalize(model: nn.Module, kept: nn.Module) -> None:
    for weight in model.parameters():
        weight.div_(weight.norm())


def found_with(
    write: Write, folder: Path, every: int = 1
) -> tuple[set[tuple[str, int]], set[tuple[str, int]]]:
    model = small()
    kept = copy.deepcopy(model)

    def then(step: int) -> None:
        if step and step % every == 0:
            write(model, kept)

    found = train_it(folder, model, [Adam(model.parameters(), 1e-3)], n_steps=24, then=then)
    return {one[:2] for one in found[0]}, {one[:2] for one in found[1]}


@pytest.mark.parametrize("write", [load, write_data, swap])
def test_updates_that_are_taken_back_are_a_remark_and_an_alert_if_it_persists(
    write: Write, tmp_path: Path
) -> None:
    alerts, remarks = found_with(write, tmp_path)
    assert (alerts, remarks) == ({("updates_undone", 20)}, {("updates_undone", 5)})
    [alert] = nbp.open_run(tmp_path / "a.zarr").alerts
    assert f": {'1.0%' if write is swap else '0.0%'} of the change" in alert.text


@pytest.mark.slow
@pytest.mark.parametrize("write", [average, swap_and_back, prune, clamp, normalize])
def test_weights_that_are_written_on_purpose_are_not_named(write: Write, tmp_path: Path) -> None:
    assert found_with(write, tmp_path) == (set(), set())


@pytest.mark.slow
def test_weights_that_are_put_back_now_and_then_are_no_alert(tmp_path: Path) -> None:
    alerts, _ = found_with(load, tmp_path, every=3)
    assert alerts == set()


@pytest.mark.slow
def test_an_inner_update_that_an_outer_one_replaces_is_not_named(tmp_path: Path) -> None:
    """First-order meta-learning takes an inner step, and applies the next gradient to the start."""
    model = small()
    inner, outer = SGD(model.parameters(), 0.1), SGD(model.parameters(), 1e-4)
    start: dict[str, torch.Tensor] = {}

    def then(step: int) -> None:
        if step % 2 == 0:
            start.update(copy.deepcopy(model.state_dict()))

    def before_update(step: int) -> None:
        if step % 2:
            model.load_state_dict(start)

    found = train_it(
        tmp_path, model, [inner, outer], n_steps=50, then=then, before_update=before_update
    )
    assert found == (set(), set())
