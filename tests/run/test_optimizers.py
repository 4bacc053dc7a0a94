"""Steps of one or many optimizers, with closures, subclasses and groups that come later."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.optim import LBFGS, SGD, Adam, Optimizer

from tests.models import floats, loss_of, made, mlp, sgd, train, train_step
from tests.run.conftest import Watch
from tests.run.oracle import norm_of, steps_of

batch = floats(5, 4)


def test_a_step_of_lbfgs_is_one_row_however_often_it_asks_its_closure(watch: Watch) -> None:
    model = made(mlp)
    optimizer = LBFGS(model.parameters(), lr=0.1, max_iter=4)
    run = watch(model)
    calls: list[float] = []
    gradients: list[float] = []

    def closure() -> Tensor:
        optimizer.zero_grad()
        loss = loss_of(model(batch(0)))
        loss.backward()
        calls.append(loss.item())
        gradients.append(norm_of(model.get_parameter("0.weight").grad))  # type: ignore[arg-type]
        return loss

    before = norm_of(model.get_parameter("0.weight"))
    for _ in range(3):
        optimizer.step(closure)
    assert len(calls) > 6
    assert steps_of(run) == [0, 1, 2]
    assert float(run.series("0", "weight_norm")[0]) == pytest.approx(before, rel=1e-6)
    run.attach("0.weight", "grad_norm")
    first = len(gradients)
    optimizer.step(closure)
    assert len(gradients) > first
    assert float(run.series("0.weight", "grad_norm")[-1]) == pytest.approx(gradients[-1], rel=1e-5)


def test_a_keyword_closure_is_heard_too(watch: Watch) -> None:
    model = made(mlp)
    optimizer = sgd(model)
    run = watch(model)

    def closure() -> float:
        optimizer.zero_grad()
        loss = loss_of(model(batch(0)))
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1e-3)
        return loss.item()

    for _ in range(2):
        optimizer.step(closure=closure)
    assert steps_of(run) == [0, 1]
    everything = [float(run.series(module, "grad_norm")[0]) for module in ("0", "2")]
    assert math.hypot(*everything) == pytest.approx(1e-3, rel=1e-2), "clipped in the closure"


def two_parts(model: nn.Module) -> tuple[Optimizer, Optimizer]:
    first, last = model.get_submodule("0"), model.get_submodule("2")
    return SGD(first.parameters(), lr=0.1), Adam(last.parameters(), lr=0.01)


def test_two_optimizers_back_to_back_are_one_step(watch: Watch) -> None:
    model = made(mlp)
    optimizers = two_parts(model)
    run = watch(model)
    for step in range(3):
        loss_of(model(batch(step))).backward()
        for optimizer in optimizers:
            optimizer.step()
            run.data.load()
        for optimizer in optimizers:
            optimizer.zero_grad()
    assert steps_of(run) == [0, 1, 2]
    for quantity in ("grad_norm", "update_ratio", "weight_norm"):
        assert np.isfinite(run.data[quantity].sel(module=["0", "2"])).all()


def test_a_forward_between_two_optimizers_parts_two_steps(watch: Watch) -> None:
    model = made(mlp)
    first, last = two_parts(model)
    run = watch(model)
    for _ in range(2):
        for optimizer in (first, last):
            loss_of(model(batch(0))).backward()
            optimizer.step()
            model.zero_grad()
    assert steps_of(run) == [0, 1, 2, 3]
    ratios = run.data.update_ratio.load()
    assert np.isfinite(ratios.sel(module="0")).values.tolist() == [True, False, True, False]
    assert np.isfinite(ratios.sel(module="2")).values.tolist() == [False, True, False, True]


def test_one_optimizer_for_each_parameter_is_one_step(watch: Watch) -> None:
    model = made(mlp)
    optimizers = [SGD([value], lr=0.1) for value in model.parameters()]
    run = watch(model)
    for step in range(3):
        loss_of(model(batch(step))).backward()
        for optimizer in optimizers:
            optimizer.step()
            optimizer.zero_grad()
    assert steps_of(run) == [0, 1, 2]
    assert np.isfinite(run.data.grad_norm.sel(module=["0", "2"])).all()


class Decayed(SGD):
    """A subclass that changes the weights after the step it inherits."""

    def step(self, closure: Callable[[], float] | None = None) -> float | None:  # type: ignore[override]
        loss = super().step(closure)
        with torch.no_grad():
            for group in self.param_groups:
                for value in group["params"]:
                    value.mul_(0.5)
        return loss


def test_a_subclass_that_calls_super_step_makes_one_step(watch: Watch) -> None:
    model = made(mlp)
    optimizer = Decayed(model.parameters(), lr=0.0)
    run = watch(model)
    train(model, optimizer, batch, range(3))
    assert steps_of(run) == [0, 1, 2]
    np.testing.assert_allclose(run.series("0", "update_ratio"), 0.5, rtol=1e-5)


def test_another_models_optimizer_is_ignored(watch: Watch) -> None:
    model, other = made(mlp), made(mlp)
    optimizer, foreign = sgd(model), sgd(other)
    run = watch(model)
    for step in range(3):
        train_step(other, foreign, batch(step))
        train_step(model, optimizer, batch(step))
        train_step(other, foreign, batch(step))
    assert steps_of(run) == [0, 1, 2]


def test_two_models_of_a_gan_have_a_clock_each(watch: Watch) -> None:
    generator, critic = made(mlp), nn.Sequential(nn.Linear(2, 1))
    runs = watch(generator), watch(critic)
    make, judge = sgd(generator), sgd(critic)
    for step in range(2):
        for part in range(3):
            judge.zero_grad()
            critic(generator(batch(3 * step + part)).detach()).mean().backward()
            judge.step()
        make.zero_grad()
        critic(generator(batch(step))).mean().backward()
        make.step()
    assert steps_of(runs[0]) == [0, 1]
    assert steps_of(runs[1]) == list(range(6))


def test_an_optimizer_made_after_watching_is_found(watch: Watch) -> None:
    model = made(mlp)
    run = watch(model)
    for optimizer in (sgd(model), Adam(model.parameters()), sgd(model)):
        train(model, optimizer, batch, range(2))
    assert steps_of(run) == [0, 1, 2, 3, 4, 5]


def test_a_parameter_group_that_comes_later_is_measured_from_then_on(watch: Watch) -> None:
    model = made(mlp)
    optimizer = SGD(model.get_submodule("2").parameters(), lr=0.1)
    run = watch(model)
    train_step(model, optimizer, batch(0))
    optimizer.add_param_group({"params": list(model.get_submodule("0").parameters())})
    train_step(model, optimizer, batch(1))
    assert run.series("0", "update_ratio").step.values.tolist() == [1]
    assert run.series("0", "grad_norm").step.values.tolist() == [1]
