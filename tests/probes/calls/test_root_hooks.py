"""Probes at the root itself: its own call is what opens the step they are due in."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from tests.models import floats, made
from tests.probes.calls.models import gain
from tests.probes.oracles import Noted, grad_input_size, norm_of, notes_of, train_alike
from tests.run.conftest import Watch
from tests.run.oracle import norm

batch = floats(5, 4)
STEPS = range(7)


class Small(Noted):
    def __init__(self) -> None:
        super().__init__()
        self.part, self.last = nn.Linear(4, 4), nn.Linear(4, 2)

    def forward(self, x: Tensor) -> Tensor:
        hidden = self.note("part", self.part(self.note("input", x)))
        return self.note("output", self.last(hidden.tanh()))


def loop(model: nn.Module, optimizer: Optimizer) -> None:
    for step in STEPS:
        optimizer.zero_grad()
        model(batch(step).requires_grad_()).square().mean().backward()
        optimizer.step()


@pytest.mark.parametrize("schedule", ["every(1)", "every(2)", "every(3, 1)", "every(4, 3)"])
def test_the_call_that_opens_a_step_is_itself_measured(schedule: str, watch: Watch) -> None:
    names: list[Any] = ["input_norm", "output_norm", "output_grad_norm", gain, grad_input_size]
    twin, model = made(Small), made(Small)
    notes, run = notes_of(twin), watch(model, probes=None)
    run.attach(("", "part"), names, schedule)
    train_alike(loop, twin, model)
    run.controls.settle()
    parts = [int(number) for number in schedule[6:-1].split(",")]
    due = [s for s in STEPS if s % parts[0] == (parts[1] if len(parts) > 1 else 0)]
    inputs, outputs = notes.values("input"), notes.values("output")
    wanted = {
        "input_norm": [norm(x) for x in inputs],
        "output_norm": [norm(y) for y in outputs],
        "output_grad_norm": [norm(g) for g in notes.gradients_of("output")],
        "gain": [norm(y) / norm(x) for x, y in zip(inputs, outputs, strict=True)],
        "grad_input_size": [norm(g) for g in notes.gradients_of("input")],
    }
    for quantity, values in wanted.items():
        series = run.series("", quantity)
        assert series.step.values.tolist() == due, quantity
        np.testing.assert_allclose(series, [values[step] for step in due], rtol=1e-4)
    assert run.series("", "calls").values.tolist() == [1] * len(due)
    part = run.series("part", "output_norm")
    assert part.step.values.tolist() == due
    np.testing.assert_allclose(part, [norm(notes.values("part")[s]) for s in due], rtol=1e-5)


def test_a_root_that_is_a_layer_has_its_own_input_from_the_first_step(watch: Watch) -> None:
    twin, model = (made(lambda: nn.Linear(4, 2)) for _ in range(2))
    run = watch(model, probes=None)
    run.attach("", "input_norm", 2)
    run.attach("weight", "grad_norm", 3)
    train_alike(loop, twin, model)
    found = run.series("", "input_norm")
    assert found.step.values.tolist() == [0, 2, 4, 6]
    np.testing.assert_allclose(found, [norm_of(batch(s)) for s in (0, 2, 4, 6)], rtol=1e-5)
    assert run.series("weight", "grad_norm").step.values.tolist() == [0, 3, 6]


@pytest.mark.parametrize("schedule", ["every(1)", "every(3)"])
def test_an_evaluation_of_the_root_is_measured_from_its_first_call(
    schedule: str, watch: Watch
) -> None:
    def validating(model: nn.Module, optimizer: Optimizer) -> None:
        for step in STEPS:
            optimizer.zero_grad()
            model(batch(step)).square().mean().backward()
            optimizer.step()
            model.eval()
            with torch.no_grad():
                model(batch(50 + step))
            model.train()

    twin, model = made(Small), made(Small)
    run = watch(model, probes=None)
    run.attach("", ["input_norm", gain], schedule, phase="eval")
    train_alike(validating, twin, model)
    run.controls.settle()
    every = int(schedule[6:-1])
    due = [step for step in range(1, 8) if step % every == 0]
    found = run.series("", "eval_input_norm")
    assert found.step.values.tolist() == due
    np.testing.assert_allclose(found, [norm_of(batch(49 + step)) for step in due], rtol=1e-5)
    assert run.series("", "eval_gain").step.values.tolist() == due
