"""Losses made of derivatives, as of a physics-informed network: which calls are trained on."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn

from tests.models import made, normal, sgd
from tests.probes.oracles import column, norm_of
from tests.run.conftest import Watch


def smooth() -> nn.Module:
    return nn.Sequential(nn.Linear(1, 4), nn.Tanh(), nn.Linear(4, 1))


def linear() -> nn.Module:
    """Whose derivative depends on no activation."""
    return nn.Sequential(nn.Linear(1, 4), nn.Linear(4, 1))


def viewed() -> nn.Module:
    """The first gradients behind its output depend on nothing."""
    return nn.Sequential(nn.Linear(1, 4), nn.Tanh(), nn.Linear(4, 1), nn.Flatten(0))


def residual(model: nn.Module, seed: int, n: int) -> Tensor:
    x = normal(seed, n, 1).requires_grad_()
    (slope,) = torch.autograd.grad(model(x).sum(), x, create_graph=True)
    return (slope - x).square().mean()


def returned(model: nn.Module, seed: int, n: int) -> Tensor:
    """A derivative that nothing can be trained on."""
    x = normal(seed, n, 1).requires_grad_()
    (slope,) = torch.autograd.grad(model(x).sum(), x)
    return slope.square().mean()


@pytest.mark.parametrize("quantity", ["output_norm", "output_grad_norm"])
@pytest.mark.parametrize("looked_at", [residual, returned])
@pytest.mark.parametrize("build", [smooth, linear, viewed])
def test_a_derivative_that_is_only_looked_at_is_no_call_of_the_step(
    build: Callable[[], nn.Module],
    looked_at: Callable[[nn.Module, int, int], Tensor],
    quantity: str,
    watch: Watch,
) -> None:
    model, sizes = made(build), list[float]()
    run, optimizer = watch(model, probes={"0": ["output_norm", quantity]}), sgd(model)
    for step in range(4):
        if step % 2:
            looked_at(model, 50 + step, 100)
        optimizer.zero_grad()
        weight, bias = model.get_parameter("0.weight"), model.get_parameter("0.bias")
        sizes.append(norm_of(nn.functional.linear(normal(step, 6, 1), weight, bias)))
        residual(model, step, 6).backward()
        optimizer.step()
    assert column(run, "0", "calls") == [1] * 4
    assert column(run, "0", "output_norm") == pytest.approx(sizes, rel=1e-5)
    assert not run.status().errors


@pytest.mark.parametrize("build", [smooth, linear, viewed])
def test_all_calls_whose_derivatives_are_trained_on_count(
    build: Callable[[], nn.Module], watch: Watch
) -> None:
    """A residual inside, and a boundary: both are terms of the loss."""
    model = made(build)
    run, optimizer = watch(model, probes={"0": ["input_norm"]}), sgd(model)
    for step in range(3):
        optimizer.zero_grad()
        inside = residual(model, step, 6)
        boundary = model(normal(90 + step, 4, 1)).square().mean()
        (inside + boundary).backward()
        optimizer.step()
    assert column(run, "0", "calls") == [2] * 3
    wanted = [norm_of(normal(step, 6, 1), normal(90 + step, 4, 1)) for step in range(3)]
    assert column(run, "0", "input_norm") == pytest.approx(wanted, rel=1e-5)


@pytest.mark.parametrize("quantities", [["output_norm"], ["output_norm", "output_grad_norm"]])
def test_calls_are_counted_alike_whether_a_gradient_is_measured_or_not(
    quantities: list[str], watch: Watch
) -> None:
    """One call that two passes come back to is one call."""
    model = made(smooth)
    run, optimizer = watch(model, probes={"0": quantities}), sgd(model)
    for step in range(3):
        optimizer.zero_grad()
        output = model(normal(step, 6, 1))
        output.mean().backward(retain_graph=True)
        output.square().mean().backward()
        optimizer.step()
    assert column(run, "0", "calls") == [1] * 3


@pytest.mark.parametrize("build", [smooth, viewed])
def test_a_graph_with_derivatives_is_freed_without_a_search_for_cycles(
    build: Callable[[], nn.Module], watch: Watch
) -> None:
    model = made(build)
    watch(model, probes={"0": ["output_norm", "output_grad_norm"]})
    alive: list[weakref.ref[Tensor]] = []
    model.get_submodule("0").register_forward_hook(
        lambda module, given, output: alive.append(weakref.ref(output))
    )
    optimizer = sgd(model)
    gc.collect()
    gc.disable()
    try:
        for step in range(3):
            residual(model, 50 + step, 8)
            optimizer.zero_grad()
            residual(model, step, 6).backward()
            optimizer.step()
        assert [one() for one in alive] == [None] * 6
    finally:
        gc.enable()
