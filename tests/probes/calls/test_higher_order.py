"""Gradients asked for past ``backward()``: penalties, Hessians, forward mode, none kept."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.autograd import forward_ad, functional
from torch.optim import Optimizer

from tests.models import floats, made, sgd
from tests.probes.oracles import (
    Noted,
    column,
    grad_mean,
    norm_of,
    notes_of,
    same_column,
    train_alike,
)
from tests.run.conftest import Watch
from tests.run.oracle import norm

batch = floats(5, 3)
STEPS = range(3)


class Smooth(Noted):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.last = nn.Linear(3, 4), nn.Linear(4, 1)

    def forward(self, x: Tensor) -> Tensor:
        return self.last(self.note("output", self.first(x)).tanh())


class Line(nn.Module):
    """``w x``: everything about it can be worked out on paper."""

    def __init__(self) -> None:
        super().__init__()
        self.line = nn.Linear(1, 1, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        return self.line(x)


def test_a_gradient_penalty_is_measured_as_on_paper(watch: Watch) -> None:
    """With h = w x and L = Σh²: ∂L/∂x = g = 2hw, and of Σg² ∂/∂h = 4gw, ∂/∂w = 16w³Σx².

    What arrived on the way to the penalty, ∂L/∂h = 2h, is no gradient of the training.
    """

    def loop(model: nn.Module, optimizer: Optimizer) -> None:
        for step in STEPS:
            given = floats(5, 1)(step).requires_grad_()
            optimizer.zero_grad()
            (slope,) = torch.autograd.grad(model(given).square().sum(), given, create_graph=True)
            slope.square().sum().backward()
            nn.utils.clip_grad_norm_(model.parameters(), 0.1)
            optimizer.step()

    twin, model = made(Line), made(Line)
    run = watch(model, probes={"line": ["output_grad_norm", "output_norm", "weight_norm"]})
    run.attach("line.weight", "update_ratio")
    train_alike(loop, twin, model)
    weights = column(run, "line", "weight_norm")
    for step in STEPS:
        w, x = weights[step], floats(5, 1)(step).double().numpy()
        h = w * x
        g = 2 * h * w
        arrived = np.linalg.norm(4 * g * w)
        found = run.data.sel(module="line", step=step)
        assert float(found.output_grad_norm) == pytest.approx(arrived, rel=1e-5)
        assert float(found.output_norm) == pytest.approx(np.linalg.norm(h), rel=1e-5)
        assert int(found.calls) == 1
        applied = min(0.1, 16 * abs(w) ** 3 * float(np.square(x).sum()))
        ratio = run.series("line.weight", "update_ratio")[step]
        assert float(ratio) == pytest.approx(0.1 * applied / abs(w), rel=1e-3)
    assert weights[0] == pytest.approx(norm_of(made(Line).line.weight), rel=1e-6)


def is_attached(grad_output: Tensor) -> float:
    """Whether the gradient that a quantity is given hangs on a graph."""
    return float(grad_output.requires_grad or grad_output.grad_fn is not None)


def test_quantities_are_given_gradients_without_their_graph(watch: Watch) -> None:
    model = made(Smooth)
    optimizer, given = sgd(model), batch(0).requires_grad_()
    run = watch(model, probes={"first": [is_attached]})
    (slope,) = torch.autograd.grad(model(given).sum(), given, create_graph=True)
    assert slope.requires_grad
    slope.square().sum().backward()
    optimizer.step()
    assert column(run, "first", "is_attached") == [0.0]


@pytest.mark.filterwarnings("ignore:Using backward.. with create_graph=True")
def test_a_gradient_that_has_a_graph_of_its_own_is_measured(watch: Watch) -> None:
    def loop(model: nn.Module, optimizer: Optimizer) -> None:
        for step in STEPS:
            optimizer.zero_grad()
            model(batch(step)).square().sum().backward(create_graph=True)
            optimizer.step()
            for parameter in model.parameters():  # torch's own cycle
                parameter.grad = parameter.grad.detach() if parameter.grad is not None else None

    twin, model = made(Smooth), made(Smooth)
    notes, run = notes_of(twin), watch(model, probes={"first.weight": ["grad_norm", grad_mean]})
    train_alike(loop, twin, model)
    gradients = [each["first.weight"] for each in notes.gradients]
    same_column(run, "first.weight", "grad_norm", [norm(g) for g in gradients])
    same_column(run, "first.weight", "grad_mean", [float(g.mean()) for g in gradients])


def test_measuring_keeps_no_graph_alive(watch: Watch) -> None:
    model = made(Smooth)
    optimizer, given = sgd(model), batch(0).requires_grad_()
    run = watch(model)
    run.attach("*", ["input_norm", is_attached])
    gc.collect()
    gc.disable()
    try:
        output = model(given)
        (slope,) = torch.autograd.grad(output.square().sum(), given, create_graph=True)
        gone = [weakref.ref(output), weakref.ref(slope)]
        slope.square().sum().backward()
        optimizer.step()
        del output, slope
        assert [ref() for ref in gone] == [None, None]
    finally:
        gc.enable()


def hessian(model: nn.Module, x: Tensor) -> Any:
    return functional.hessian(lambda given: model(given).square().sum(), x)


def jacobian(model: nn.Module, x: Tensor) -> Any:
    return functional.jacobian(model, x)


def vectorised_jacobian(model: nn.Module, x: Tensor) -> Any:
    return functional.jacobian(model, x, vectorize=True)


def jvp_by_double_backward(model: nn.Module, x: Tensor) -> Any:
    return functional.jvp(model, x, torch.ones_like(x))[1]


def jvp_in_forward_mode(model: nn.Module, x: Tensor) -> Any:
    with forward_ad.dual_level():
        return forward_ad.unpack_dual(model(forward_ad.make_dual(x, torch.ones_like(x))))[1]


def hessian_of_func(model: nn.Module, x: Tensor) -> Any:
    return torch.func.hessian(lambda given: model(given).square().sum())(x)


def jvp_of_func(model: nn.Module, x: Tensor) -> Any:
    return torch.func.jvp(model, (x,), (torch.ones_like(x),))[1]


ANALYSES = [
    hessian,
    jacobian,
    vectorised_jacobian,
    jvp_by_double_backward,
    jvp_in_forward_mode,
    hessian_of_func,
    jvp_of_func,
]


@pytest.mark.filterwarnings("ignore:.torch.jit.script. is deprecated")  # torch.func's own use
@pytest.mark.parametrize("analyse", ANALYSES, ids=lambda f: f.__name__)
def test_an_analysis_between_steps_gives_the_same_result_and_disturbs_no_step(
    analyse: Callable[[nn.Module, Tensor], Any], watch: Watch
) -> None:
    results: list[Tensor] = []

    def loop(model: nn.Module, optimizer: Optimizer) -> None:
        for step in STEPS:
            optimizer.zero_grad()
            model(batch(step)).square().mean().backward()
            optimizer.step()
            model.eval()
            results.append(analyse(model, batch(50)).detach().clone())
            model.train()

    twin, model = made(Smooth), made(Smooth)
    notes = notes_of(twin)
    every = ["input_norm", "output_norm", "output_grad_norm", "grad_norm", is_attached]
    run = watch(model, probes={"first": every})
    train_alike(loop, twin, model)
    assert all(map(torch.equal, results[:3], results[3:]))
    assert not run.status().errors
    assert run.data.step.values.tolist() == [0, 1, 2]
    same_column(run, "first", "output_norm", [norm(y) for y in notes.values("output")])
    same_column(run, "first", "output_grad_norm", [norm(g) for g in notes.gradients_of("output")])


@pytest.mark.filterwarnings("ignore:.torch.jit.script. is deprecated")
@pytest.mark.parametrize("analyse", [hessian, jvp_by_double_backward, jvp_in_forward_mode])
def test_an_analysis_in_train_mode_is_no_call_of_the_open_step(
    analyse: Callable[[nn.Module, Tensor], Any], watch: Watch
) -> None:
    """Nothing is trained on it, although it goes backward."""

    def loop(model: nn.Module, optimizer: Optimizer) -> None:
        for step in STEPS:
            optimizer.zero_grad()
            model(batch(step)).square().mean().backward()
            analyse(model, batch(50))
            optimizer.step()

    twin, model = made(Smooth), made(Smooth)
    run = watch(model, probes={"first": ["input_norm", "output_mean"]})
    train_alike(loop, twin, model)
    same_column(run, "first", "input_norm", [norm_of(batch(step)) for step in STEPS])
    assert column(run, "first", "calls") == [1] * 3
    assert not run.status().errors


@pytest.mark.parametrize("by_hand", [False, True])
def test_gradients_that_never_reach_a_parameter_leave_a_gap_there(
    by_hand: bool, watch: Watch
) -> None:
    """``torch.autograd.grad`` alone: the layer's gradient is measured, ``p.grad`` stays None."""
    twin, model = made(Smooth), made(Smooth)
    notes = notes_of(twin)
    run = watch(model, probes={"first": ["output_grad_norm", "grad_norm", "weight_norm"]})
    wanted = []
    for step in STEPS:
        for each in (twin, model):
            parameters, output = list(each.parameters()), each(batch(step))
            gradients = torch.autograd.grad(output.square().sum(), parameters)
            if each is twin:
                last, hidden = twin.last.weight.detach(), notes.values("output")[-1].reshape(5, 4)
                upstream = 2 * output.detach().double() * last.double()
                wanted.append(norm_of(upstream * (1 - torch.from_numpy(np.tanh(hidden)) ** 2)))
            elif by_hand:
                run.step()
            else:
                sgd(model).step()  # finds no gradient, and changes nothing
            with torch.no_grad():
                for parameter, gradient in zip(parameters, gradients, strict=True):
                    parameter.sub_(0.1 * gradient)
    assert all(map(torch.equal, twin.parameters(), model.parameters()))
    same_column(run, "first", "output_grad_norm", wanted)
    assert np.isnan(column(run, "first", "grad_norm")).all()
    assert np.isfinite(column(run, "first", "weight_norm")).all()
    assert not run.status().errors
