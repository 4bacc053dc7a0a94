"""Values in every precision: right where squares overflow and where sums cancel."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.optim import SGD, Optimizer

from tests.models import floats, made, sgd
from tests.probes.oracles import (
    Noted,
    Scaled,
    column,
    float64,
    norm_of,
    notes_of,
    same_column,
    train_alike,
    update_size,
)
from tests.run.conftest import Watch
from tests.run.oracle import norm

batch = floats(5, 4)
STEPS = range(3)


# ---------------------------------------------------------------- half precision


def sum_of_everything(output: Tensor) -> Tensor:
    """Answers in the precision it was asked in."""
    return output.sum()


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_tensors_are_summed_in_single_or_wider(
    dtype: torch.dtype, watch: Watch
) -> None:
    """2048 values near 300: their squares alone overflow float16, their sum stalls in bfloat16."""

    class Half(Noted):
        def __init__(self) -> None:
            super().__init__()
            self.part = nn.Linear(64, 64).to(dtype)

        def forward(self, x: Tensor) -> Tensor:
            return self.note("output", self.part(x))

    def loop(model: nn.Module, optimizer: Optimizer) -> None:
        for step in STEPS:
            optimizer.zero_grad()
            output = model((300 * floats(32, 64)(step)).to(dtype))
            (output.float() * 1e-3).square().mean().backward()
            optimizer.step()

    twin, model = made(Half), made(Half)
    notes = notes_of(twin)
    every = ["output_norm", "output_mean", "output_std", "output_grad_norm", "input_norm"]
    run = watch(model, probes={"part": [*every, sum_of_everything]})
    run.attach("part.weight", ["weight_norm", "grad_norm", update_size])
    train_alike(loop, twin, model)
    outputs, gradients = notes.values("output"), notes.gradients_of("output")
    same_column(run, "part", "output_norm", [norm(y) for y in outputs])
    same_column(run, "part", "output_mean", [float(y.mean()) for y in outputs], rtol=1e-4)
    same_column(run, "part", "output_std", [float(y.std(ddof=1)) for y in outputs])
    same_column(run, "part", "output_grad_norm", [norm(g) for g in gradients])
    given = [norm_of((300 * floats(32, 64)(step)).to(dtype)) for step in STEPS]
    same_column(run, "part", "input_norm", given)
    name = "part.weight"
    same_column(run, name, "weight_norm", [norm(each[name]) for each in notes.weights])
    same_column(run, name, "grad_norm", [norm(each[name]) for each in notes.gradients])
    same_column(run, name, "update_size", [norm(each[name]) for each in notes.updates])
    assert not run.status().errors, "a value in half precision is stored like any other"
    assert np.isfinite(column(run, "part", "sum_of_everything")).all()


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_under_autocast_each_tensor_is_measured_as_it_is(dtype: torch.dtype, watch: Watch) -> None:
    class PartAndLast(Noted):
        def __init__(self) -> None:
            super().__init__()
            self.part, self.last = nn.Linear(4, 8), nn.Linear(8, 2)

        def forward(self, x: Tensor) -> Tensor:
            hidden = self.note("output", self.part(x))
            assert hidden.dtype is dtype
            return self.last(hidden.relu())

    def loop(model: nn.Module, optimizer: Optimizer) -> None:
        for step in STEPS:
            optimizer.zero_grad()
            with torch.autocast("cpu", dtype):
                loss = model(batch(step)).float().square().mean()
            loss.backward()
            optimizer.step()

    twin, model = made(PartAndLast), made(PartAndLast)
    notes = notes_of(twin)
    run = watch(model, probes={"part": ["output_norm", "output_std", "output_grad_norm"]})
    run.attach("part.weight", ["grad_norm", update_size])
    train_alike(loop, twin, model)
    outputs, gradients = notes.values("output"), notes.gradients_of("output")
    same_column(run, "part", "output_norm", [norm(y) for y in outputs])
    same_column(run, "part", "output_std", [float(y.std(ddof=1)) for y in outputs])
    same_column(run, "part", "output_grad_norm", [norm(g) for g in gradients])
    name = "part.weight"
    same_column(run, name, "grad_norm", [norm(each[name]) for each in notes.gradients])
    same_column(run, name, "update_size", [norm(each[name]) for each in notes.updates], rtol=1e-4)
    assert not run.status().errors


def ends_of_autocast(output: Tensor) -> Tensor:
    """A matrix product of the user's own, under the model's autocast."""
    flat = output.float().flatten()
    return flat @ flat


def test_a_quantity_may_multiply_matrices_under_autocast(watch: Watch) -> None:
    """It is somebody's training that is cast down, not the measuring of it."""

    def loop(model: nn.Module, optimizer: Optimizer) -> None:
        for step in STEPS:
            optimizer.zero_grad()
            with torch.autocast("cpu", torch.bfloat16):
                loss = model(1000 * batch(step)).float().square().mean()
            loss.backward()
            optimizer.step()

    twin, model = made(Scaled), made(Scaled)
    notes, run = notes_of(twin), watch(model, probes={"part": [ends_of_autocast]})
    train_alike(loop, twin, model)
    wanted = [norm(y) ** 2 for y in notes.values("output")]
    same_column(run, "part", "ends_of_autocast", wanted, rtol=1e-4)


# ---------------------------------------------------------------- range


@pytest.mark.parametrize("factor", [1e-30, 1e-22, 1e18, 1e21, 1e30, 3e37])
def test_the_norm_is_right_where_squares_leave_the_range_of_single_precision(
    factor: float, watch: Watch
) -> None:
    def loop(model: nn.Module, optimizer: Optimizer) -> None:
        for step in STEPS:
            optimizer.zero_grad()
            (model(batch(step)).mean() * factor * 0.1).backward()
            optimizer.step()

    twin, model = made(partial(Scaled, factor)), made(partial(Scaled, factor))
    for each in (twin, model):
        with torch.no_grad():
            each.linear.weight.mul_(factor * 0.1)
    notes = notes_of(twin)
    run = watch(model, probes={"part": ["output_norm", "output_std"]})
    run.attach("linear", "output_grad_norm")
    run.attach("linear.weight", ["weight_norm", "grad_norm", update_size])
    train_alike(loop, twin, model, lambda each: SGD(each.parameters(), lr=0.5))
    outputs = notes.values("output")
    same_column(run, "part", "output_norm", [norm(y) for y in outputs])
    same_column(run, "part", "output_std", [float(y.std(ddof=1)) for y in outputs])
    name = "linear.weight"
    same_column(run, name, "weight_norm", [norm(each[name]) for each in notes.weights])
    same_column(run, name, "grad_norm", [norm(each[name]) for each in notes.gradients])
    same_column(run, name, "update_size", [norm(each[name]) for each in notes.updates])
    upstream = [np.full(15, factor * 0.1 / 15)] * 3
    same_column(run, "linear", "output_grad_norm", [norm(g) for g in upstream])
    assert all(value > 0 for value in column(run, "part", "output_norm"))


def test_large_and_small_values_together_are_all_counted(watch: Watch) -> None:
    """Many calls whose squares are at both ends of the range pool to the right norm."""
    factors = (1e-25, 1e-10, 1.0, 1e12)

    def loop(model: nn.Module, optimizer: Optimizer) -> None:
        optimizer.zero_grad()
        for factor in factors:
            model(factor * batch(0)).sum().backward()
        optimizer.step()

    twin, model = made(Scaled), made(Scaled)
    run = watch(model, probes={"part": ["output_norm"]})
    train_alike(loop, twin, model)
    values = np.concatenate([float64(factor * batch(0)) for factor in factors])
    same_column(run, "part", "output_norm", [norm(values)])


# ---------------------------------------------------------------- few samples, cancelling sums


def test_one_element_has_no_spread_until_a_second_call_brings_another(watch: Watch) -> None:
    class One(Noted):
        def __init__(self) -> None:
            super().__init__()
            self.part = nn.Linear(1, 1)

        def forward(self, x: Tensor) -> Tensor:
            return self.note("output", self.part(x))

    def loop(model: nn.Module, optimizer: Optimizer) -> None:
        for step in STEPS:
            optimizer.zero_grad()
            for micro in range(1 + step):
                model(torch.tensor([[float(micro)]])).square().sum().backward()
            optimizer.step()

    twin, model = made(One), made(One)
    notes = notes_of(twin)
    run = watch(model, probes={"part": ["output_std", "output_mean", "output_norm"]})
    train_alike(loop, twin, model)
    every = np.concatenate(notes.values("output"))
    one, two, three = every[:1], every[1:3], every[3:]
    wanted = [math.nan, two.std(ddof=1), three.std(ddof=1)]
    same_column(run, "part", "output_std", wanted)
    same_column(run, "part", "output_mean", [float(x.mean()) for x in (one, two, three)])
    same_column(run, "part", "output_norm", [norm(x) for x in (one, two, three)])
    assert not run.status().errors


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize(("mean", "spread"), [(1000.0, 0.01), (-1e4, 0.1), (1e6, 10.0)])
def test_a_small_spread_round_a_large_mean_survives_pooling(
    mean: float, spread: float, dtype: torch.dtype, watch: Watch
) -> None:
    """Sums of squares alone would cancel: in single precision even the sign is lost."""

    def loop(model: nn.Module, optimizer: Optimizer) -> None:
        for step in STEPS:
            optimizer.zero_grad()
            for micro in range(3):
                given = mean + spread * floats(40, 4)(10 * step + micro)
                model(given.to(dtype)).mean().backward()
            optimizer.step()

    twin, model = made(Scaled).to(dtype), made(Scaled).to(dtype)
    notes = notes_of(twin)
    run = watch(model, probes={"part": ["output_std", "output_mean", "output_norm"]})
    train_alike(loop, twin, model)
    values = notes.values("output")
    pooled = [np.concatenate(values[3 * step : 3 * step + 3]) for step in STEPS]
    same_column(run, "part", "output_std", [float(y.std(ddof=1)) for y in pooled], rtol=1e-4)
    same_column(run, "part", "output_mean", [float(y.mean()) for y in pooled])


CONSTANTS: dict[str, Callable[[float], Tensor]] = {
    "plain": lambda value: torch.full((50, 4), value),
    "strided": lambda value: torch.full((50, 8), value)[:, ::2],
    "half": lambda value: torch.full((50, 4), value).bfloat16(),
    "double": lambda value: torch.full((50, 4), value).double(),
    "integers": lambda value: torch.full((50, 4), int(1000 * value)),
}


@pytest.mark.parametrize("kind", CONSTANTS)
@pytest.mark.parametrize("n_calls", [1, 3])
def test_a_constant_output_has_no_spread_and_it_is_not_negative(
    n_calls: int, kind: str, watch: Watch
) -> None:
    """Nor is the root of a rounding error below zero taken for no value at all."""

    class Constant(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.part, self.linear = Gives(), nn.Linear(4, 1)

        def forward(self, value: float) -> Tensor:
            return self.linear(self.part(value).float()).sum()

    class Gives(nn.Module):
        def forward(self, value: float) -> Tensor:
            return CONSTANTS[kind](value)

    def loop(model: nn.Module, optimizer: Optimizer) -> None:
        for value in (1e4 / 3, -7.1, 0.0, 1e-7 / 3, 123456.789):
            optimizer.zero_grad()
            for _ in range(n_calls):
                model(value).backward()
            optimizer.step()

    twin, model = made(Constant), made(Constant)
    run = watch(model, probes={"part": ["output_std"]})
    train_alike(loop, twin, model, partial(sgd, lr=1e-9))
    assert len(run.series("part", "output_std")) == 5
    found = np.array(column(run, "part", "output_std"))
    assert (found >= 0).all()
    assert (found <= 1e-4 * np.array([1e4 / 3, 7.1, 1e-9, 1e-7 / 3, 123456.789])).all()


@pytest.mark.parametrize("kind", ["plain", "strided", "double"])
def test_the_smallest_spread_that_a_number_can_have_is_told(kind: str, watch: Watch) -> None:
    """Neighbouring numbers round a million: the sums of their squares agree in 11 digits."""

    def spread(x: Tensor) -> Tensor:
        values = (1e6 + 0.0625 * (x > 0)).float()
        if kind == "strided":
            return values.repeat_interleave(2, 1)[:, ::2]
        return values.double() if kind == "double" else values

    class Neighbours(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return spread(x)

    class WithNeighbours(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.part, self.linear = Neighbours(), nn.Linear(4, 1)

        def forward(self, x: Tensor) -> Tensor:
            return self.linear(self.part(x).float() - 1e6)

    def loop(model: nn.Module, optimizer: Optimizer) -> None:
        for step in STEPS:
            optimizer.zero_grad()
            model(batch(step)).sum().backward()
            optimizer.step()

    twin, model = made(WithNeighbours), made(WithNeighbours)
    run = watch(model, probes={"part": ["output_std"]})
    train_alike(loop, twin, model)
    wanted = [float(float64(spread(batch(step))).std(ddof=1)) for step in STEPS]
    same_column(run, "part", "output_std", wanted, rtol=1e-3)
