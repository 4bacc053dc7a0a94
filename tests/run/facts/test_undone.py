"""Updates that other code takes back, and code that writes to weights on purpose."""

from __future__ import annotations

import copy
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torch import nn
from torch.optim import SGD, Adam, AdamW

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
    assert (alerts, remarks) == ({("updates_undone", 20)}, {("updates_undone", 10)})
    [alert] = nbp.open_run(tmp_path / "a.zarr").alerts
    assert f": {'1.0%' if write is swap else '0.0%'} of the change" in alert.text


@pytest.mark.slow
@pytest.mark.parametrize("write", [average, swap_and_back, prune, clamp, normalize])
def test_weights_that_are_written_on_purpose_are_not_named(write: Write, tmp_path: Path) -> None:
    assert found_with(write, tmp_path) == (set(), set())


@pytest.mark.parametrize(
    ("rate", "dtype"), [(1e-9, torch.float32), (1e-7, torch.float32), (1e-4, torch.bfloat16)]
)
def test_updates_that_are_all_rounding_are_not_taken_for_undone(
    rate: float, dtype: torch.dtype, tmp_path: Path
) -> None:
    model = small().to(dtype)
    optimizer = SGD(model.parameters(), lr=rate)
    with nbp.watch(model, optimizer, tmp_path / "a.zarr", budget=None) as run:
        for _ in range(24):
            optimizer.zero_grad()
            x = torch.rand(16, 8, dtype=dtype)
            (model(x) - x[:, :2]).square().mean().backward()
            optimizer.step()
    assert "updates_undone" not in {one.rule for one in [*run.alerts, *run.remarks]}


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


@pytest.mark.slow
@pytest.mark.parametrize("n_clients", [1, 4])
def test_trial_steps_of_a_training_that_moves_otherwise_are_not_named(
    n_clients: int, tmp_path: Path
) -> None:
    """A line search takes some of its steps back, and a server averages those of its clients."""
    model = small()
    start, made = copy.deepcopy(model.state_dict()), []

    def then(step: int) -> None:
        nonlocal start
        if n_clients == 1:
            if step % 5 == 1:
                model.load_state_dict(start)
            start = copy.deepcopy(model.state_dict())
        elif step:
            made.append(copy.deepcopy(model.state_dict()))
            if len(made) == n_clients:
                every = [made.pop() for _ in range(n_clients)]
                start = {key: sum(one[key] for one in every) / n_clients for key in start}
            model.load_state_dict(start)

    optimizers = [SGD(model.parameters(), 0.1)]
    assert train_it(tmp_path, model, optimizers, n_steps=24, then=then) == (set(), set())


@pytest.mark.slow
def test_a_perturbation_that_is_projected_back_to_its_box_is_not_named(tmp_path: Path) -> None:
    model = small()

    @torch.no_grad()
    def then(step: int) -> None:
        for weight in model.parameters():
            weight.clamp_(-0.03, 0.03)

    optimizers = [Adam(model.parameters(), 1.0)]
    alerts, remarks = train_it(tmp_path, model, optimizers, n_steps=24, then=then)
    assert "updates_undone" not in {one[0] for one in (*alerts, *remarks)}


class NewWord(nn.Module):
    """A lookup of which one row is trained, the last one of many, in front of a frozen layer."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.embed, self.layer = nn.Embedding(1000, 8), nn.Linear(8, 8).requires_grad_(False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        tokens = torch.randint(1000, (len(x), 4))
        tokens[:, 0] = 999
        out: torch.Tensor = self.layer(self.embed(tokens).sum(1))
        return out


@pytest.mark.slow
@pytest.mark.parametrize("is_whole", [False, True])
def test_a_row_that_keeps_its_change_is_enough(is_whole: bool, tmp_path: Path) -> None:
    """Textual inversion puts all rows of a lookup back but that of the new word."""
    model = NewWord()
    weight = model.embed.weight
    before = weight.detach().clone()

    @torch.no_grad()
    def then(step: int) -> None:
        n = len(weight) - (not is_whole)
        weight[:n] = before[:n]

    optimizers = [AdamW([weight], 5e-3)]
    alerts, _ = train_it(tmp_path, model, optimizers, n_steps=24, then=then)
    assert {one[0] for one in alerts} == ({"updates_undone"} if is_whole else set())
