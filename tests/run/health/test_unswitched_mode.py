"""A model that is evaluated with its dropout on is told of; calls that are as they should, not."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

import notebook_probe as nbp
from notebook_probe.probes.calls.unswitched import dropping, switched_off

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


# ------------------------------------------------------------- trained as it is evaluated


def in_eval_mode(
    folder: Path, model: nn.Module, *, until: int = 60, train_calls: bool = False
) -> nbp.Run:
    """Sixty updates, the first ``until`` of them in evaluation mode."""
    held = [parameter for parameter in model.parameters() if parameter.requires_grad]
    optimizer = torch.optim.SGD(held, lr=0.1)
    with nbp.watch(model, optimizer, folder / "a.zarr", probes=None, budget=None) as run:
        for step in range(60):
            model.train(step >= until)
            if train_calls:
                model.train()(X)
                model.eval()
            optimizer.zero_grad()
            model(X).square().mean().backward()
            optimizer.step()
    return run


def normed() -> nn.Sequential:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.Linear(8, 2))


@pytest.mark.parametrize(("made", "module"), [(net, "1"), (normed, "1")])
def test_a_model_that_learns_in_evaluation_mode_is_told_of(
    made: Callable[[], nn.Module], module: str, tmp_path: Path
) -> None:
    (alert,) = in_eval_mode(tmp_path, made()).alerts
    assert (alert.rule, alert.step) == ("trained_in_evaluation_mode", 20)
    assert (alert.modules, alert.began) == ((module,), (0, 0))
    assert f"{module}: 20 updates in a row were made in evaluation mode" in alert.text


def test_one_that_is_switched_in_time_is_not(tmp_path: Path) -> None:
    assert list(in_eval_mode(tmp_path, net(), until=20).alerts) == []


def test_nor_is_one_that_does_the_same_in_both_modes(tmp_path: Path) -> None:
    assert list(in_eval_mode(tmp_path, nn.Sequential(nn.Linear(4, 2))).alerts) == []


def test_nor_is_one_that_learns_from_calls_in_both(tmp_path: Path) -> None:
    assert list(in_eval_mode(tmp_path, net(), train_calls=True).alerts) == []


def test_nor_is_one_of_which_a_part_is_frozen(tmp_path: Path) -> None:
    model = normed()
    model[:2].requires_grad_(False)
    assert list(in_eval_mode(tmp_path, model).alerts) == []


def test_a_part_in_training_mode_shows_that_somebody_has_chosen() -> None:
    model = normed().eval()
    assert [*switched_off(model)] == ["1"]
    model[2].train()
    assert [*switched_off(model)] == []


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
