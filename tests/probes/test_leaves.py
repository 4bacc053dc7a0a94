"""Gradients from other threads, from late, after clipping; and leaves that outlive a step."""

from __future__ import annotations

import math
import threading

import numpy as np
import pytest
from torch import Tensor, nn
from torch.optim import Optimizer

from tests.models import floats, made, mlp
from tests.probes.oracles import Noted, column, notes_of, same_column, train_alike
from tests.run.conftest import Watch
from tests.run.oracle import norm

batch = floats(5, 4)
STEPS = range(3)
GRADIENT = ["output_grad_norm"]


def loop(model: nn.Module, optimizer: Optimizer) -> None:
    for step in STEPS:
        optimizer.zero_grad()
        model(batch(step)).square().mean().backward()
        optimizer.step()


# ---------------------------------------------------------------- other threads, clipping


class Simple(Noted):
    def __init__(self) -> None:
        super().__init__()
        self.part = nn.Linear(4, 3)

    def forward(self, x: Tensor) -> Tensor:
        return self.note("output", self.part(x))


def test_a_backward_in_another_thread_belongs_to_the_step_of_its_forward(watch: Watch) -> None:
    def threaded(model: nn.Module, optimizer: Optimizer) -> None:
        for step in STEPS:
            optimizer.zero_grad()
            loss = model(batch(step)).square().mean()
            thread = threading.Thread(target=loss.backward)
            thread.start()
            thread.join()
            optimizer.step()

    twin, model = made(Simple), made(Simple)
    notes = notes_of(twin)
    run = watch(model, probes={"part": ["output_grad_norm", "grad_norm", "output_norm"]})
    train_alike(threaded, twin, model)
    assert run.data.step.values.tolist() == [0, 1, 2]
    same_column(run, "part", "output_norm", [norm(y) for y in notes.values("output")])
    gradients = notes.gradients_of("output")
    same_column(run, "part", "output_grad_norm", [norm(g) for g in gradients])
    assert not run.status().errors


def test_a_late_backward_of_an_earlier_steps_graph_is_in_no_step(watch: Watch) -> None:
    """Its own step is closed, and the open one did not make it."""

    def late(model: nn.Module, optimizer: Optimizer) -> None:
        optimizer.zero_grad()
        left_over = model(batch(10))
        model(batch(0)).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()
        loss = model(batch(1)).square().mean()
        left_over.mul(100.0).sum().backward(inputs=[tuple(model.parameters())[-1]])
        loss.backward()
        optimizer.step()

    twin, model = made(Simple), made(Simple)
    notes, run = notes_of(twin), watch(model, probes={"part": GRADIENT})
    train_alike(late, twin, model)
    _, first, second = notes.gradients_of("output")
    same_column(run, "part", "output_grad_norm", [norm(first), norm(second)])


@pytest.mark.parametrize("clip", ["norm", "value"])
def test_a_gradient_is_read_as_it_is_applied_so_after_clipping(clip: str, watch: Watch) -> None:
    def clipping(model: nn.Module, optimizer: Optimizer) -> None:
        for step in STEPS:
            optimizer.zero_grad()
            (100 * model(batch(step)).square().mean()).backward()
            if clip == "norm":
                nn.utils.clip_grad_norm_(model.parameters(), 0.1)
            else:
                nn.utils.clip_grad_value_(model.parameters(), 0.01)
            optimizer.step()

    twin, model = made(mlp), made(mlp)
    run = watch(model, probes={"": ["grad_norm"], "*.weight": ["grad_norm"]})
    train_alike(clipping, twin, model)
    whole = column(run, "(root)", "grad_norm")
    if clip == "norm":
        np.testing.assert_allclose(whole, 0.1, rtol=1e-4)
    else:
        n = sum(parameter.numel() for parameter in model.parameters())
        assert all(0 < value <= 0.01 * math.sqrt(n) * (1 + 1e-6) for value in whole)


# ---------------------------------------------------------------- nothing is left on leaves
