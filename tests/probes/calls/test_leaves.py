"""Gradients from other threads, from late, after clipping; and leaves that outlive a step."""

from __future__ import annotations

import copy
import io
import math
import threading

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from tests.models import floats, made, mlp, sgd
from tests.probes.oracles import (
    OneLayer,
    column,
    norm_of,
    notes_of,
    plain_loop,
    same_column,
    train_alike,
)
from tests.run.conftest import Watch
from tests.run.oracle import norm

batch = floats(5, 4)
STEPS = range(3)
GRADIENT = ["output_grad_norm"]
loop = plain_loop(batch, STEPS)


# ---------------------------------------------------------------- other threads, clipping


def test_a_backward_in_another_thread_belongs_to_the_step_of_its_forward(watch: Watch) -> None:
    def threaded(model: nn.Module, optimizer: Optimizer) -> None:
        for step in STEPS:
            optimizer.zero_grad()
            loss = model(batch(step)).square().mean()
            thread = threading.Thread(target=loss.backward)
            thread.start()
            thread.join()
            optimizer.step()

    twin, model = made(OneLayer), made(OneLayer)
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

    twin, model = made(OneLayer), made(OneLayer)
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


class Learned(nn.Module):
    """Returns its parameter, as position embeddings and learned queries do."""

    def __init__(self) -> None:
        super().__init__()
        self.queries = nn.Parameter(torch.randn(5, 3))

    def forward(self) -> Tensor:
        return self.queries


class Queried(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.learned, self.linear = Learned(), nn.Linear(4, 3)

    def forward(self, x: Tensor) -> Tensor:
        return self.linear(x) * self.learned()


def test_a_module_that_returns_its_parameter_is_measured_and_nothing_stays_on_it(
    watch: Watch,
) -> None:
    twin, model = made(Queried), made(Queried)
    run = watch(model, probes={"learned": ["output_norm", "output_grad_norm", "grad_norm"]})
    train_alike(loop, twin, model)
    run.controls.settle()
    left = len(model.learned.queries._backward_hooks or ())
    assert left <= 1, "one step's hook at the most, however many steps there were"
    same = column(run, "learned", "grad_norm")
    assert all(value > 0 for value in same)
    same_column(run, "learned", "output_grad_norm", same)
    copied = copy.deepcopy(model)
    loop(copied, sgd(copied))
    torch.save(model, io.BytesIO())
    run.close()
    assert not model.learned.queries._backward_hooks


def test_an_input_that_is_optimised_itself_collects_no_hooks(watch: Watch) -> None:
    """An adversarial example: the same leaf goes through the model again and again."""

    def build() -> nn.Sequential:
        return nn.Sequential(nn.Identity(), nn.Linear(4, 2))

    model = made(build)
    optimizer, given = sgd(model), batch(0).requires_grad_()
    run = watch(model, probes={"0": GRADIENT})
    sizes: list[float] = []
    for _ in range(5):
        optimizer.zero_grad()
        given.grad = None
        model(given).square().mean().backward()
        assert given.grad is not None
        sizes.append(norm_of(given.grad))
        optimizer.step()
    same_column(run, "0", "output_grad_norm", sizes)
    run.close()
    assert not given._backward_hooks
