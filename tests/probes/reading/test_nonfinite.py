"""NaN and infinity: shown in the value, counted exactly, never an error."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from notebook_probe.quantities.reduce.stat import Stat
from tests.models import floats, made
from tests.probes.oracles import (
    Noted,
    Scaled,
    column,
    notes_of,
    same_column,
    train_alike,
)
from tests.run.conftest import Watch

batch = floats(5, 4)
STEPS = range(3)


def n_broken(output_nonfinite: Stat) -> Any:
    return output_nonfinite.n_nonfinite


def n_broken_in(grad_nonfinite: Stat) -> Any:
    return grad_nonfinite.n_nonfinite


def n_broken_out(grad_output_nonfinite: Stat) -> Any:
    return grad_output_nonfinite.n_nonfinite


@pytest.mark.parametrize("broken", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
def test_what_is_not_finite_shows_in_the_value_and_is_counted_exactly(
    broken: float, dtype: torch.dtype, watch: Watch
) -> None:
    def given(step: int) -> Tensor:
        values = batch(step).clone()
        values[:step, 1] = broken
        return values.to(dtype)

    def loop(model: nn.Module, optimizer: Optimizer) -> None:
        for step in STEPS:
            optimizer.zero_grad()
            model(given(step)).float().sum().backward()
            optimizer.step()

    twin, model = made(Scaled).to(dtype), made(Scaled).to(dtype)
    notes = notes_of(twin)
    run = watch(model, probes={"part": ["output_norm", "output_mean", "output_std", n_broken]})
    run.attach("part", ["nonfinite_fraction", "zero_fraction"])
    run.attach("linear.weight", ["grad_norm", n_broken_in])
    train_alike(loop, twin, model)
    assert column(run, "part", "n_broken") == [0, 1, 2]
    same_column(run, "part", "nonfinite_fraction", [0, 1 / 20, 2 / 20])
    same_column(run, "part", "zero_fraction", [0, 0, 0])
    for quantity in ("output_norm", "output_mean", "output_std"):
        assert np.isfinite(column(run, "part", quantity)).tolist() == [True, False, False]
        assert run.series("part", quantity).step.values.tolist() == [0, 1, 2], "measured, no gap"
    assert math.isinf(column(run, "part", "output_norm")[1]) == math.isinf(broken)
    counts = [int((~np.isfinite(g["linear.weight"])).sum()) for g in notes.gradients]
    assert column(run, "linear.weight", "n_broken_in") == counts
    assert counts[1] == 3
    assert not run.status().errors


def test_a_broken_gradient_on_its_way_is_counted(watch: Watch) -> None:
    """The root of zero: its slope is infinite."""

    class Rooted(Noted):
        def __init__(self) -> None:
            super().__init__()
            self.linear = nn.Linear(4, 3, bias=False)

        def forward(self, x: Tensor) -> Tensor:
            return self.note("output", self.linear(x)).square().sqrt()

    def loop(model: nn.Module, optimizer: Optimizer) -> None:
        for step in STEPS:
            optimizer.zero_grad()
            given = batch(step).clone()
            given[:2] = 0.0
            model(given).sum().backward()

            optimizer.step()

    twin, model = made(Rooted), made(Rooted)
    notes = notes_of(twin)
    run = watch(model, probes={"linear": [n_broken_out, "output_grad_norm"]})
    train_alike(loop, twin, model)
    counts = [int((~np.isfinite(g)).sum()) for g in notes.gradients_of("output")]
    assert counts[0] == 6
    assert column(run, "linear", "n_broken_out") == counts
