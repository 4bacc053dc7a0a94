"""When tensors are read: before they are overwritten, in whatever mode torch is."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.optim import SGD, Optimizer

from notebook_probe.quantities.reduce.stat import Stat, root
from tests.models import floats, made, sgd
from tests.probes.oracles import (
    Noted,
    column,
    norm_of,
    notes_of,
    plain_loop,
    same_column,
    train_alike,
    update_size,
)
from tests.probes.parity import differing, everything
from tests.run.conftest import Watch
from tests.run.oracle import norm

batch = floats(5, 4)
STEPS = range(3)
loop = plain_loop(batch, STEPS)


# ---------------------------------------------------------------- what changes later


class Mutates(nn.Module):
    """Overwrites what it is given."""

    def forward(self, x: Tensor) -> Tensor:
        x.mul_(2)
        return x + 1


class Overwritten(Noted):
    def __init__(self) -> None:
        super().__init__()
        self.linear, self.part = nn.Linear(4, 4), Mutates()

    def forward(self, x: Tensor) -> Tensor:
        hidden = self.linear(x) * 1.5
        self.note("input", hidden.detach())
        output = self.part(hidden)
        self.note("output", output.detach())
        output.add_(hidden)
        return output.sigmoid_()


def grown(input: Tensor, output: Tensor) -> Tensor:
    return output.norm() / input.norm()


def input_peak(input: Tensor) -> Tensor:
    return input.abs().amax()


def output_peak(output: Tensor) -> Tensor:
    return output.abs().amax()


def test_inputs_are_read_before_and_outputs_as_they_are_returned(watch: Watch) -> None:
    twin, model = made(Overwritten), made(Overwritten)
    notes = notes_of(twin)
    run = watch(model, probes={"part": ["output_norm", "output_mean", "input_norm", "input_mean"]})
    run.attach("part", [grown, input_peak, output_peak])
    train_alike(loop, twin, model)
    inputs, outputs = notes.values("input"), notes.values("output")
    same_column(run, "part", "input_norm", [norm(x) for x in inputs])
    same_column(run, "part", "input_mean", [float(x.mean()) for x in inputs])
    same_column(run, "part", "input_peak", [float(np.abs(x).max()) for x in inputs])
    same_column(run, "part", "output_norm", [norm(y) for y in outputs])
    same_column(run, "part", "output_mean", [float(y.mean()) for y in outputs])
    same_column(run, "part", "output_peak", [float(np.abs(y).max()) for y in outputs])
    ratios = [norm(y) / norm(x) for x, y in zip(inputs, outputs, strict=True)]
    same_column(run, "part", "grown", ratios)


class Two(Noted):
    def __init__(self) -> None:
        super().__init__()
        self.part, self.linear = nn.Tanh(), nn.Linear(4, 3)

    def forward(self, x: Tensor) -> Tensor:
        return self.linear(self.note("output", self.part(x)))


# ---------------------------------------------------------------- which weight, which mode


def test_the_weight_is_the_one_that_the_forward_of_its_step_used(watch: Watch) -> None:
    used: dict[str, list[float]] = {"twin": [], "model": []}

    class Looks(Noted):
        def __init__(self, name: str) -> None:
            super().__init__()
            self.linear, self._used = nn.Linear(4, 3), used[name]

        def forward(self, x: Tensor) -> Tensor:
            self._used.append(norm_of(self.linear.weight))
            return self.linear(x)

    def loop(model: nn.Module, optimizer: Optimizer) -> None:
        for step in STEPS:
            optimizer.zero_grad()
            model(batch(step)).square().mean().backward()
            optimizer.step()

    twin, model = made(partial(Looks, "twin")), made(partial(Looks, "model"))
    run = watch(model, probes={"linear": ["weight_norm"]})
    train_alike(loop, twin, model, lambda each: SGD(each.parameters(), lr=1.0))
    assert len(set(used["twin"])) == 3
    same_column(run, "linear", "weight_norm", used["twin"])


@pytest.mark.parametrize("moment", ["watch", "attach", "first step", "read"])
def test_what_begins_in_inference_mode_goes_on_outside_of_it(moment: str, watch: Watch) -> None:
    """torch forbids to write, outside of the mode, to a tensor that was made in it."""

    def mode(now: str) -> Any:
        return torch.inference_mode(moment == now)

    def update(model: nn.Module, optimizer: Optimizer, step: int, now: str) -> None:
        optimizer.zero_grad()
        model(batch(step)).square().mean().backward()
        with mode(now):
            optimizer.step()

    model, twin = made(Two), made(Two)
    optimizers = [SGD(each.parameters(), lr=0.1) for each in (twin, model)]
    with mode("watch"):
        run = watch(model, probes={"linear": ["update_ratio", "output_norm"]})
    with mode("attach"):
        run.attach("linear.weight", ["grad_norm", update_size])
    sizes, left = [], []
    for each, optimizer in zip((twin, model), optimizers, strict=True):
        torch.manual_seed(3)
        for step in STEPS:
            before = each.linear.weight.detach().double().clone()
            update(each, optimizer, step, "first step" if step == 0 else "")
            if each is twin:
                sizes.append(norm_of(each.linear.weight.detach().double() - before))
            else:
                with mode("read"):
                    assert run.data.sizes["step"] == step + 1
        left.append(everything(each, [optimizer]))
    assert differing(*left) == []
    same_column(run, "linear.weight", "update_size", sizes, rtol=1e-4)
    assert np.isfinite(column(run, "linear", "output_norm")).all()
    assert not run.status().errors


def own_sum(output: Tensor) -> Tensor:
    return output.sum()


def test_an_evaluation_in_inference_mode_before_the_first_step_leaves_nothing_unwritable(
    watch: Watch,
) -> None:
    def loop(model: nn.Module, optimizer: Optimizer) -> None:
        for step in STEPS:
            model.eval()
            with torch.inference_mode():
                model(batch(step + 50))
            model.train()
            optimizer.zero_grad()
            model(batch(step)).square().mean().backward()
            optimizer.step()

    twin, model = made(Two), made(Two)
    notes = notes_of(twin)
    run = watch(model, probes={"part": ["output_norm", "output_std", own_sum]})
    train_alike(loop, twin, model)
    outputs = notes.values("output")
    same_column(run, "part", "output_norm", [norm(y) for y in outputs])
    same_column(run, "part", "own_sum", [float(y.sum()) for y in outputs], rtol=1e-4)


def spread_of_parameters(weight_moments: Stat) -> Any:
    return root(weight_moments.spread / weight_moments.n)


def test_a_scalar_parameter_is_its_own_absolute_value(watch: Watch) -> None:
    class Temperature(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.scale = nn.Parameter(torch.tensor(-2.5))

        def forward(self, x: Tensor) -> Tensor:
            return x * self.scale

    model = made(Temperature)
    run = watch(model, probes={"scale": ["weight_norm", "grad_norm", spread_of_parameters]})
    output = model(batch(0))
    output.sum().backward()
    gradient = float(batch(0).double().sum())
    sgd(model).step()
    same_column(run, "scale", "weight_norm", [2.5])
    same_column(run, "scale", "grad_norm", [abs(gradient)])
    same_column(run, "scale", "spread_of_parameters", [0.0])
