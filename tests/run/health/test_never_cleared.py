"""A training that never clears its gradients is told so; one that does, in any way, is not."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn
from torch.optim import LBFGS, SGD, Optimizer

import notebook_probe as nbp

Step = Callable[[nn.Module, Optimizer, int], None]
N_STEPS = 30


def loss_of(model: nn.Module) -> Tensor:
    return model(torch.rand(16, 4)).square().mean()


def net() -> nn.Sequential:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))


def forgetful(model: nn.Module, optimizer: Optimizer, step: int) -> None:
    loss_of(model).backward()
    optimizer.step()


def forgetful_since_five(model: nn.Module, optimizer: Optimizer, step: int) -> None:
    if step < 5:
        optimizer.zero_grad()
    forgetful(model, optimizer, step)


def cleared_before(model: nn.Module, optimizer: Optimizer, step: int) -> None:
    optimizer.zero_grad(set_to_none=False)
    forgetful(model, optimizer, step)


def cleared_between(model: nn.Module, optimizer: Optimizer, step: int) -> None:
    loss = loss_of(model)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()


def cleared_after(model: nn.Module, optimizer: Optimizer, step: int) -> None:
    forgetful(model, optimizer, step)
    model.zero_grad(set_to_none=bool(step % 2))


def cleared_by_hand(model: nn.Module, optimizer: Optimizer, step: int) -> None:
    for parameter in model.parameters():
        if parameter.grad is not None:
            parameter.grad.detach_().mul_(0.0)
    forgetful(model, optimizer, step)


def cleared_in_its_data(model: nn.Module, optimizer: Optimizer, step: int) -> None:
    """An idiom of old loops, of which torch counts no write."""
    forgetful(model, optimizer, step)
    for parameter in model.parameters():
        if parameter.grad is not None:
            parameter.grad.data.zero_()


def kept_in_part(model: nn.Module, optimizer: Optimizer, step: int) -> None:
    """A momentum that is kept in the gradients."""
    forgetful(model, optimizer, step)
    for parameter in model.parameters():
        if parameter.grad is not None:
            parameter.grad.mul_(0.8)


def accumulated(model: nn.Module, optimizer: Optimizer, step: int) -> None:
    for _ in range(3):
        (loss_of(model) / 3).backward()
    optimizer.step()
    optimizer.zero_grad()


def of_an_adversary(model: nn.Module, optimizer: Optimizer, step: int) -> None:
    """A pass of somebody else's loss comes before the gradients are cleared."""
    (-loss_of(model)).backward()
    cleared_before(model, optimizer, step)


def told(folder: Path, do: Step, optimize: Callable[[nn.Module], Optimizer]) -> list[str]:
    model = net()
    optimizer = optimize(model)
    with nbp.watch(model, store=folder / "a.zarr", probes=None):
        for step in range(N_STEPS):
            do(model, optimizer, step)
    found = nbp.open_run(folder / "a.zarr")
    alerts = [*found.remarks.of("uncleared_gradients"), *found.alerts.of("uncleared_gradients")]
    assert all(alert.modules == ("(root)",) for alert in alerts)
    return [f"{alert.severity} {alert.step} {alert.sentence}" for alert in alerts]


def sgd(model: nn.Module) -> Optimizer:
    return SGD(model.parameters(), lr=1e-3)


def test_gradients_that_are_never_cleared_are_a_remark_at_once_and_an_alert_later(
    tmp_path: Path,
) -> None:
    remarked, said = told(tmp_path, forgetful, sgd)
    assert remarked.startswith("remark 2 1 update applied the sum of all gradients so far")
    assert said.startswith("severe 11 10 updates in a row applied the sum of all gradients so far")


@pytest.mark.parametrize(
    "do",
    [
        cleared_before,
        cleared_between,
        cleared_after,
        cleared_by_hand,
        cleared_in_its_data,
        kept_in_part,
        accumulated,
        of_an_adversary,
        forgetful_since_five,  # it is known how to: what comes later is meant
    ],
    ids=lambda do: do.__name__,
)
def test_whoever_clears_them_is_not_spoken_of(do: Step, tmp_path: Path) -> None:
    assert told(tmp_path, do, sgd) == []


@pytest.mark.parametrize("at_each_pass", [True, False])
def test_clearing_before_each_of_several_passes_is_a_remark(
    at_each_pass: bool, tmp_path: Path
) -> None:
    model = net()
    optimizer = sgd(model)
    with nbp.watch(model, store=tmp_path / "a.zarr", probes=["default"], budget=None) as run:
        for _ in range(16):
            for i in range(3):
                if at_each_pass or i == 0:
                    optimizer.zero_grad()
                (loss_of(model) / 3).backward()
            optimizer.step()
    found = [(one.rule, one.step) for one in run.remarks]
    assert found == ([("passes_cleared", 9)] if at_each_pass else [])


def test_a_closure_clears_within_the_step(tmp_path: Path) -> None:
    def closed(model: nn.Module, optimizer: Optimizer, step: int) -> None:
        def closure() -> float:
            optimizer.zero_grad()
            loss = loss_of(model)
            loss.backward()
            return loss.item()

        optimizer.step(closure)

    assert told(tmp_path, closed, lambda model: LBFGS(model.parameters(), max_iter=2)) == []


def test_of_two_optimizers_the_one_that_is_forgotten_is_found(tmp_path: Path) -> None:
    def halves(model: nn.Module, optimizer: Optimizer, step: int) -> None:
        optimizer.zero_grad()
        loss_of(model).backward()
        optimizer.step()
        other.step()

    model = net()
    optimizer, other = (SGD(model[place].parameters(), lr=1e-3) for place in (0, 2))
    with nbp.watch(model, store=tmp_path / "a.zarr", probes=None):
        for step in range(N_STEPS):
            halves(model, optimizer, step)
    assert len(nbp.open_run(tmp_path / "a.zarr").alerts.of("uncleared_gradients")) == 1


def test_gradients_of_zeros_that_nobody_clears_are_told_too(tmp_path: Path) -> None:
    def still(model: nn.Module, optimizer: Optimizer, step: int) -> None:
        (loss_of(model) * 0).backward()
        optimizer.step()

    assert len(told(tmp_path, still, sgd)) == 2


def test_the_look_changes_no_weight(tmp_path: Path) -> None:
    trained = []
    for watched in (False, True):
        model = net()
        optimizer = sgd(model)
        run = nbp.watch(model, store=tmp_path / "b.zarr", probes=None) if watched else None
        torch.manual_seed(1)
        for step in range(N_STEPS):
            forgetful(model, optimizer, step)
        if run is not None:
            run.close()
        trained.append(torch.cat([one.detach().flatten() for one in model.parameters()]))
    assert torch.equal(*trained)
