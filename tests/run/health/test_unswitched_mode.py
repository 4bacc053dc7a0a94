"""A model that is evaluated with its dropout on is told of; calls that are as they should, not."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

import notebook_probe as nbp
from notebook_probe.probes.calls.unswitched import dropping

RULE = "evaluated_in_training_mode"
X = torch.rand(16, 4, generator=torch.Generator().manual_seed(0))

Look = Callable[[nn.Module], object]


def net(p: float = 0.5) -> nn.Sequential:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(4, 8), nn.Dropout(p), nn.Linear(8, 2))


def forgotten(model: nn.Module) -> None:
    with torch.no_grad():
        for batch in X.split(4):
            model(batch)


def inferred(model: nn.Module) -> None:
    with torch.inference_mode():
        model(X)


def switched(model: nn.Module) -> None:
    model.eval()
    forgotten(model)
    model.train()


def only_the_root(model: nn.Module) -> None:
    """In which nothing that is random is on."""
    for part in model.children():
        part.eval()
    forgotten(model)
    model.train()


def trained(
    folder: Path, look: Look, model: nn.Module | None = None, *, every: int = 10
) -> tuple[nbp.Run, nn.Module]:
    """Thirty updates, and a look at the model every few of them."""
    model = net() if model is None else model
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with nbp.watch(model, optimizer, folder / "a.zarr", probes=None, budget=None) as run:
        for step in range(30):
            optimizer.zero_grad()
            model(X).square().mean().backward()
            optimizer.step()
            if step % every == every - 1:
                look(model)
    return run, model


@pytest.mark.parametrize("look", [forgotten, inferred])
def test_dropout_that_is_on_while_a_model_is_evaluated_is_told_of(
    look: Look, tmp_path: Path
) -> None:
    run, _ = trained(tmp_path, look)
    (alert,) = run.alerts
    assert (alert.rule, alert.step, alert.modules) == (RULE, 20, ("1",))
    assert "1: 2 evaluations were made in training mode" in alert.text
    assert list(nbp.open_run(run.location).alerts) == [alert]


@pytest.mark.parametrize("look", [switched, only_the_root])
def test_a_model_that_is_evaluated_as_it_should_is_not(look: Look, tmp_path: Path) -> None:
    run, _ = trained(tmp_path, look)
    assert list(run.alerts) == []


def test_without_a_chance_to_leave_anything_out_nothing_is_said(tmp_path: Path) -> None:
    run, _ = trained(tmp_path, forgotten, net(0.0))
    assert list(run.alerts) == []


def test_what_is_asked_without_gradients_in_every_step_is_no_evaluation(tmp_path: Path) -> None:
    run, _ = trained(tmp_path, forgotten, every=1)
    assert list(run.alerts) == []


class Recomputed(nn.Module):
    """Its body runs without gradients, and again in each backward pass."""

    def __init__(self) -> None:
        super().__init__()
        self.body = net()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return checkpoint(self.body, x.clone().requires_grad_(), use_reentrant=True)


def test_a_checkpoint_is_none_either(tmp_path: Path) -> None:
    run, _ = trained(tmp_path, lambda model: None, Recomputed())
    assert list(run.alerts) == []


def test_dropout_inside_attention_and_recurrent_layers_counts() -> None:
    layers = [nn.LSTM(4, 4, 2, dropout=0.1), nn.LSTM(4, 4, 2), nn.MultiheadAttention(4, 2, 0.1)]
    assert [*dropping(nn.ModuleList(layers))] == ["0", "2"]


def test_the_weights_are_those_of_a_training_that_nobody_watches(tmp_path: Path) -> None:
    _, watched = trained(tmp_path, forgotten)
    model = net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for step in range(30):
        optimizer.zero_grad()
        model(X).square().mean().backward()
        optimizer.step()
        if step % 10 == 9:
            forgotten(model)
    assert all(map(torch.equal, watched.parameters(), model.parameters()))
