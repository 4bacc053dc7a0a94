"""The gradient as it is accumulated, and as it is applied after clipping."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.optim import SGD, Optimizer

from tests.models import Tied, floats, made, mlp, words
from tests.probes.oracles import (
    column,
    grad_raw_size,
    norm_of,
    same_column,
    train_alike,
)
from tests.run.conftest import Watch

batch = floats(5, 4)
STEPS = range(3)
PLACE = "0.weight"
RAW = "grad_raw_size"


def size(model: nn.Module) -> float:
    gradient = model.get_parameter(PLACE).grad
    return math.nan if gradient is None else norm_of(gradient)


def clip_norm(model: nn.Module) -> None:
    nn.utils.clip_grad_norm_(model.parameters(), 0.1)


def clip_value(model: nn.Module) -> None:
    nn.utils.clip_grad_value_(model.parameters(), 0.01)


def replace(model: nn.Module) -> None:
    for parameter in model.parameters():
        if parameter.grad is not None:
            parameter.grad = parameter.grad * 0.5


@pytest.mark.parametrize("change", [clip_norm, clip_value, replace], ids=lambda f: f.__name__)
@pytest.mark.parametrize("n_micro", [1, 3])
def test_the_raw_gradient_is_read_before_it_is_clipped_and_the_applied_one_after(
    n_micro: int, change: Callable[[nn.Module], None], watch: Watch
) -> None:
    raw: list[float] = []
    applied: list[float] = []

    def loop(model: nn.Module, optimizer: Optimizer) -> None:
        for step in STEPS:
            optimizer.zero_grad()
            for micro in range(n_micro):
                (10 * model(batch(10 * step + micro)).square().mean()).backward()
            raw.append(size(model))
            change(model)
            applied.append(size(model))
            optimizer.step()

    twin, model = made(mlp), made(mlp)
    run = watch(model, probes={PLACE: [grad_raw_size, "grad_norm"]})
    train_alike(loop, twin, model)
    same_column(run, PLACE, RAW, raw[:3])
    same_column(run, PLACE, "grad_norm", applied[:3])
    assert all(before > after for before, after in zip(raw, applied, strict=True))
    assert column(run, PLACE, "accumulations") == [n_micro] * 3


def test_the_raw_gradient_of_a_scaled_loss_is_scaled_and_the_applied_one_is_not(
    watch: Watch,
) -> None:
    raw: list[float] = []
    applied: list[float] = []

    def loop(model: nn.Module, optimizer: Optimizer) -> None:
        scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
        for step in STEPS:
            optimizer.zero_grad()
            scaler.scale(model(batch(step)).square().mean()).backward()
            raw.append(size(model))
            scaler.unscale_(optimizer)
            applied.append(size(model))
            scaler.step(optimizer)
            scaler.update()

    twin, model = made(mlp), made(mlp)
    run = watch(model, probes={PLACE: [grad_raw_size, "grad_norm"]})
    train_alike(loop, twin, model)
    same_column(run, PLACE, RAW, raw[:3])
    same_column(run, PLACE, "grad_norm", applied[:3])
    np.testing.assert_allclose(raw, 1024 * np.array(applied), rtol=1e-5)


def test_of_several_accumulations_the_last_running_sum_is_kept(watch: Watch) -> None:
    """Also where the user empties the gradient in between, as for a norm of each micro-batch."""
    raw: list[float] = []

    def loop(model: nn.Module, optimizer: Optimizer) -> None:
        for step in STEPS:
            for micro in range(2):
                optimizer.zero_grad()
                model(batch(10 * step + micro)).square().mean().backward()
            raw.append(size(model))
            optimizer.step()

    twin, model = made(mlp), made(mlp)
    run = watch(model, probes={PLACE: [grad_raw_size]})
    train_alike(loop, twin, model)
    same_column(run, PLACE, RAW, raw[:3])
    assert column(run, PLACE, "accumulations") == [2, 2, 2]


def test_a_parameter_that_gets_no_gradient_in_a_step_is_a_gap_there(watch: Watch) -> None:
    def build() -> nn.ModuleList:
        return nn.ModuleList([nn.Linear(4, 2), nn.Linear(4, 2)])

    def loop(model: nn.Module, optimizer: Optimizer) -> None:
        for step in STEPS:
            optimizer.zero_grad()
            model.get_submodule(f"{step % 2}")(batch(step)).square().mean().backward()
            optimizer.step()

    twin, model = made(build), made(build)
    run = watch(model, probes={("0.weight", "1.weight"): [grad_raw_size, "grad_norm"]})
    train_alike(loop, twin, model)
    assert np.isfinite(column(run, "0.weight", RAW)).tolist() == [True, False, True]
    assert np.isfinite(column(run, "1.weight", RAW)).tolist() == [False, True, False]
    same_column(run, "1.weight", RAW, column(run, "1.weight", "grad_norm"))


def test_an_optimizer_that_steps_inside_the_backward_has_a_raw_gradient_too(watch: Watch) -> None:
    """The user's own hook steps and empties the gradient as soon as it is there."""
    raw: dict[str, list[float]] = {"twin": [], "model": []}

    def train(model: nn.Module, name: str) -> None:
        optimizers = {value: SGD([value], lr=0.1) for value in model.parameters()}
        first = model.get_parameter(PLACE)

        def apply(value: Tensor) -> None:
            if value is first:
                assert value.grad is not None
                raw[name].append(norm_of(value.grad))
            optimizers[value].step()  # type: ignore[index]
            optimizers[value].zero_grad()  # type: ignore[index]

        for value in model.parameters():
            value.register_post_accumulate_grad_hook(apply)
        for step in STEPS:
            model(batch(step)).square().mean().backward()

    twin, model = made(mlp), made(mlp)
    run = watch(model, probes={PLACE: [grad_raw_size, "grad_norm"]})
    train(twin, "twin")
    train(model, "model")
    assert all(map(torch.equal, twin.parameters(), model.parameters()))
    assert raw["model"] == raw["twin"]
    same_column(run, PLACE, RAW, raw["twin"])
    same_column(run, PLACE, "grad_norm", raw["twin"])


def test_a_tied_weight_accumulates_once_for_each_backward(watch: Watch) -> None:
    def loop(model: nn.Module, optimizer: Optimizer) -> None:
        for step in STEPS:
            optimizer.zero_grad()
            model(words(step)).square().mean().backward()
            optimizer.step()

    twin, model = made(Tied), made(Tied)
    run = watch(model, probes={"embed.weight": [grad_raw_size, "grad_norm"]})
    train_alike(loop, twin, model)
    sizes = column(run, "embed.weight", "grad_norm")
    same_column(run, "embed.weight", RAW, sizes)
    assert column(run, "embed.weight", "accumulations") == [1, 1, 1]


def test_nothing_stays_on_the_parameters_after_the_end(watch: Watch) -> None:
    model = made(mlp)
    run = watch(model, probes={"*.weight": [grad_raw_size]})
    model(batch(0)).sum().backward()
    run.close()
    for parameter in model.parameters():
        assert not parameter._post_accumulate_grad_hooks
        assert not parameter._backward_hooks


@pytest.mark.parametrize("n_micro", [1, 3])
def test_a_step_that_begins_with_its_backward_is_read_as_a_whole(
    n_micro: int, watch: Watch
) -> None:
    """No module is called; what is due changes from step to step."""
    model = made(mlp)
    run = watch(model, probes={"0.weight": [grad_raw_size]})
    run.attach("", [grad_raw_size, "norm_test"], 2)
    optimizer = SGD(model.parameters(), lr=0.1)
    sizes = []
    for step in range(5):
        optimizer.zero_grad()
        for micro in range(n_micro):
            x = batch(10 * step + micro)
            for layer in ("0", "2"):
                weight, bias = (model.get_parameter(f"{layer}.{n}") for n in ("weight", "bias"))
                x = nn.functional.linear(x, weight, bias).tanh()
            x.square().mean().backward()
        gradients = [value.grad for value in model.parameters()]
        sizes.append(norm_of(*(gradient for gradient in gradients if gradient is not None)))
        optimizer.step()
    run.close()
    assert not run.status().errors
    assert run.series("", RAW).step.values.tolist() == [0, 2, 4]
    np.testing.assert_allclose(run.series("", RAW), sizes[::2], rtol=1e-5)
    assert len(run.series("0.weight", RAW)) == 5
    np.testing.assert_array_equal(run.series("", "accumulations"), n_micro)
