"""Two backward passes on one loss, and steps that have several passes on purpose."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn
from torch.optim import SGD, Optimizer

import notebook_probe as nbp
from tests.run.facts.trained import small

Passes = Callable[[nn.Module, Optimizer, Tensor], None]
NAME = "backward_twice"


def loss_of(model: nn.Module, x: Tensor) -> Tensor:
    found: Tensor = (model(x) - x[:, :2]).square().mean()
    return found


def twice(model: nn.Module, optimizer: Optimizer, x: Tensor) -> None:
    loss = loss_of(model, x)
    loss.backward(retain_graph=True)
    loss.backward()


def twice_by_function(model: nn.Module, optimizer: Optimizer, x: Tensor) -> None:
    loss = loss_of(model, x)
    torch.autograd.backward(loss, retain_graph=True)
    loss.backward()


def cleared(model: nn.Module, optimizer: Optimizer, x: Tensor) -> None:
    loss = loss_of(model, x)
    loss.backward(retain_graph=True)
    optimizer.zero_grad()
    loss.backward()


def cleared_in_place(model: nn.Module, optimizer: Optimizer, x: Tensor) -> None:
    loss = loss_of(model, x)
    loss.backward(retain_graph=True)
    optimizer.zero_grad(set_to_none=False)
    loss.backward()


def in_parts(model: nn.Module, optimizer: Optimizer, x: Tensor) -> None:
    for part in x.chunk(2):
        loss_of(model, part).backward()


def of_two_losses(model: nn.Module, optimizer: Optimizer, x: Tensor) -> None:
    out = model(x)
    out.square().mean().backward(retain_graph=True)
    out.abs().mean().backward()


def with_a_penalty(model: nn.Module, optimizer: Optimizer, x: Tensor) -> None:
    loss = loss_of(model, x)
    parts = torch.autograd.grad(loss, [*model.parameters()], create_graph=True)
    sum(one.square().sum() for one in parts).backward(retain_graph=True)  # type: ignore[union-attr]
    loss.backward()


def for_parts_of_the_parameters(model: nn.Module, optimizer: Optimizer, x: Tensor) -> None:
    loss, parameters = loss_of(model, x), [*model.parameters()]
    loss.backward(retain_graph=True, inputs=parameters[:2])
    loss.backward(inputs=parameters[2:])


def trained(passes: Passes, folder: Path, steps: range = range(12)) -> list[tuple[str, int, str]]:
    model = small()
    optimizer = SGD(model.parameters(), lr=1e-3)
    with nbp.watch(model, optimizer, folder / "a.zarr", "default", budget=None) as run:
        for step in range(12):
            x = torch.rand(16, 8)
            (passes if step in steps else in_parts)(model, optimizer, x)
            optimizer.step()
            optimizer.zero_grad()
    assert "facts are off" not in str(run.events)
    every = [*run.alerts, *run.remarks]
    return [(one.rule, one.step, "remark" if one in [*run.remarks] else "alert") for one in every]


@pytest.mark.parametrize("passes", [twice, twice_by_function])
def test_a_second_pass_on_one_loss_is_a_remark_and_an_alert_at_the_third_reading(
    passes: Passes, tmp_path: Path
) -> None:
    assert trained(passes, tmp_path) == [(NAME, 10, "alert"), (NAME, 0, "remark")]


def test_a_second_pass_in_one_step_alone_is_a_remark(tmp_path: Path) -> None:
    assert trained(twice, tmp_path, range(1)) == [(NAME, 0, "remark")]


@pytest.mark.parametrize(
    "passes",
    [
        cleared,
        cleared_in_place,
        in_parts,
        of_two_losses,
        with_a_penalty,
        for_parts_of_the_parameters,
    ],
)
def test_steps_of_several_passes_are_fine(passes: Passes, tmp_path: Path) -> None:
    assert trained(passes, tmp_path) == []
