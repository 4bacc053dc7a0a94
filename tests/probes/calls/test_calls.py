"""How often a module is called in a step, and by whom: everything is pooled, nothing is lost."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from tests.models import Tied, floats, made, sgd, words
from tests.probes.calls.models import CalledTwice, Recursive, gain
from tests.probes.oracles import (
    Noted,
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
FORWARD = ["input_norm", "input_mean", "output_norm", "output_mean", "output_std"]
BOTH = [*FORWARD, "zero_fraction", "output_grad_norm", "calls"]
STEPS = range(3)
loop = plain_loop(batch, STEPS)


# ---------------------------------------------------------------- several calls in one forward


class Unrolled(Noted):
    """A cell, four times over."""

    def __init__(self) -> None:
        super().__init__()
        self.part = nn.GRUCell(1, 4)

    def forward(self, x: Tensor) -> Tensor:
        state = x.new_zeros(len(x), 4)
        for t in range(4):
            self.note("input", torch.cat([x[:, t : t + 1].flatten(), state.flatten()]))
            state = self.note("output", self.part(x[:, t : t + 1], state))
        return state


@pytest.mark.parametrize(("build", "n_calls"), [(CalledTwice, 2), (Recursive, 3), (Unrolled, 4)])
def test_all_calls_of_a_step_are_pooled_into_one_record(
    build: Callable[[], Noted], n_calls: int, watch: Watch
) -> None:
    twin, model = made(build), made(build)
    notes, run = notes_of(twin), watch(model, probes={"part": BOTH[:-1]})
    train_alike(loop, twin, model)
    calls = [slice(n_calls * step, n_calls * (step + 1)) for step in STEPS]
    inputs = [np.concatenate(notes.values("input")[each]) for each in calls]
    outputs = [np.concatenate(notes.values("output")[each]) for each in calls]
    gradients = [np.concatenate(notes.gradients_of("output")[each]) for each in calls]
    same_column(run, "part", "input_norm", [norm(x) for x in inputs])
    same_column(run, "part", "input_mean", [float(x.mean()) for x in inputs])
    same_column(run, "part", "output_norm", [norm(y) for y in outputs])
    same_column(run, "part", "output_mean", [float(y.mean()) for y in outputs])
    same_column(run, "part", "output_std", [float(y.std(ddof=1)) for y in outputs])
    same_column(run, "part", "output_grad_norm", [norm(g) for g in gradients])
    assert column(run, "part", "calls") == [n_calls] * len(STEPS)


@pytest.mark.parametrize(("build", "n_calls"), [(CalledTwice, 2), (Recursive, 3)])
def test_input_and_output_of_the_same_call_meet_also_in_a_recursion(
    build: Callable[[], Noted], n_calls: int, watch: Watch
) -> None:
    twin, model = made(build), made(build)
    notes, run = notes_of(twin), watch(model, probes={"part": [gain]})
    train_alike(loop, twin, model)
    inputs, outputs = notes.values("input"), notes.values("output")
    if build is Recursive:  # the innermost call is the first to return
        outputs = [y for i in STEPS for y in reversed(outputs[n_calls * i : n_calls * (i + 1)])]
    gains = [norm(y) / norm(x) for x, y in zip(inputs, outputs, strict=True)]
    per_step = [gains[n_calls * step : n_calls * (step + 1)] for step in STEPS]
    same_column(run, "part", "gain", [float(np.mean(each)) for each in per_step])


class SharedActivation(nn.Module):
    """One activation behind layers of different widths."""

    def __init__(self) -> None:
        super().__init__()
        self.layers, self.act = nn.ModuleList([nn.Linear(4, 8), nn.Linear(8, 4)]), nn.ReLU()

    def forward(self, x: Tensor) -> Tensor:
        for layer in self.layers:
            x = self.act(layer(x))
        return x


@pytest.mark.parametrize("n_micro", [1, 2])
def test_an_activation_shared_by_layers_of_different_widths_has_gaps_that_say_why(
    n_micro: int, watch: Watch
) -> None:
    """Where there are no common channels; all else is pooled, and nothing is an error."""
    by_channel = ["dead_fraction", "input_cov_max_eig", "effective_rank"]
    model = made(SharedActivation)
    run, optimizer = watch(model, probes=None), sgd(model)
    run.attach("act", [*by_channel, "output_norm", "zero_fraction"])
    run.attach("act", "input_cov_stable_rank", per_call=True)
    for step in range(4):
        optimizer.zero_grad()
        for micro in range(n_micro):
            model(batch(10 * step + micro)).square().mean().backward()
        optimizer.step()
    status = run.status()
    assert not status.errors
    told = {(probe.module, probe.quantity): probe.note for probe in status.probes}
    for quantity in by_channel:
        assert quantity not in run.data or np.isnan(column(run, "act", quantity)).all()
        assert "8 and with 4 channels" in told["act", quantity]
        assert "per_call=True" in told["act", quantity]
    for quantity in ("output_norm", "zero_fraction"):
        assert np.isfinite(column(run, "act", quantity)).all()
    for call in range(2 * n_micro):
        assert np.isfinite(column(run, f"act[{call}]", "input_cov_stable_rank")).all()


# ---------------------------------------------------------------- several forwards in one step


class Embedder(Noted):
    def __init__(self) -> None:
        super().__init__()
        self.part = nn.Linear(4, 3)

    def forward(self, x: Tensor) -> Tensor:
        self.note("input", x)
        return self.note("output", self.part(x)).sigmoid()


def pooled(parts: list[Any], size: int) -> list[Any]:
    """Consecutive calls, so many to a step."""
    return [np.concatenate(parts[i : i + size]) for i in range(0, len(parts), size)]


def test_two_forwards_and_one_backward_pool_both_branches(watch: Watch) -> None:
    def siamese(model: nn.Module, optimizer: Optimizer) -> None:
        for step in STEPS:
            optimizer.zero_grad()
            left, right = model(batch(step)), model(5 * batch(step + 100))
            (left - right).square().sum().backward()
            optimizer.step()

    twin, model = made(Embedder), made(Embedder)
    notes, run = notes_of(twin), watch(model, probes={"part": BOTH[:-1]})
    train_alike(siamese, twin, model)
    outputs, gradients = pooled(notes.values("output"), 2), pooled(notes.gradients_of("output"), 2)
    same_column(run, "part", "output_norm", [norm(y) for y in outputs])
    same_column(run, "part", "output_std", [float(y.std(ddof=1)) for y in outputs])
    same_column(run, "part", "output_grad_norm", [norm(g) for g in gradients])
    assert column(run, "part", "calls") == [2, 2, 2]


def test_micro_batches_are_one_step_with_the_accumulated_gradient(watch: Watch) -> None:
    def accumulate(model: nn.Module, optimizer: Optimizer) -> None:
        for step in STEPS:
            optimizer.zero_grad()
            for micro in range(4):
                (model(batch(4 * step + micro)).square().mean() / 4).backward()
            optimizer.step()

    twin, model = made(Embedder), made(Embedder)
    notes, run = notes_of(twin), watch(model, probes={"part": [*BOTH[:-1], "weight_norm"]})
    run.attach("part.weight", ["grad_norm", "update_ratio"])
    train_alike(accumulate, twin, model)
    assert run.data.step.values.tolist() == [0, 1, 2]
    inputs, outputs = pooled(notes.values("input"), 4), pooled(notes.values("output"), 4)
    gradients = pooled(notes.gradients_of("output"), 4)
    weights = [each["part.weight"] for each in notes.weights]
    updates = [each["part.weight"] for each in notes.updates]
    same_column(run, "part", "input_norm", [norm(x) for x in inputs])
    same_column(run, "part", "output_mean", [float(y.mean()) for y in outputs])
    same_column(run, "part", "output_grad_norm", [norm(g) for g in gradients])
    same_column(run, "part", "weight_norm", [norm(w) for w in weights])
    same_column(run, "part.weight", "grad_norm", [norm(g["part.weight"]) for g in notes.gradients])
    ratios = [norm(u) / norm(w) for u, w in zip(updates, weights, strict=True)]
    same_column(run, "part.weight", "update_ratio", ratios, rtol=1e-4)
    assert column(run, "part", "calls") == [4, 4, 4]


def test_two_backwards_of_one_graph_pool_both_gradients(watch: Watch) -> None:
    def twice(model: nn.Module, optimizer: Optimizer) -> None:
        for step in STEPS:
            optimizer.zero_grad()
            output = model(batch(step))
            output.square().mean().backward(retain_graph=True)
            (3 * output.square().mean()).backward()
            optimizer.step()

    twin, model = made(Embedder), made(Embedder)
    notes, run = notes_of(twin), watch(model, probes={"part": ["output_grad_norm", "output_norm"]})
    run.attach("part.weight", "grad_norm")
    train_alike(twice, twin, model)
    # retain_grad adds both up: g + 3 g; the two that arrived are g and 3 g
    arrived = [norm(total) / 4 * math.sqrt(1 + 9) for total in notes.gradients_of("output")]
    same_column(run, "part", "output_grad_norm", arrived)
    same_column(run, "part", "output_norm", [norm(y) for y in notes.values("output")])
    same_column(run, "part.weight", "grad_norm", [norm(g["part.weight"]) for g in notes.gradients])


def test_a_forward_that_is_never_backpropagated_is_no_call_of_the_step(watch: Watch) -> None:
    def loop(model: nn.Module, optimizer: Optimizer) -> None:
        for step in STEPS:
            optimizer.zero_grad()
            model(100 * batch(step + 50))
            model(batch(step)).square().mean().backward()
            optimizer.step()

    twin, model = made(Embedder), made(Embedder)
    notes, run = notes_of(twin), watch(model, probes={"part": ["input_norm", "output_grad_norm"]})
    train_alike(loop, twin, model)
    same_column(run, "part", "input_norm", [norm(x) for x in notes.values("input")[1::2]])
    gradients = notes.gradients_of("output")
    assert len(gradients) == len(STEPS), "only one of the two is backpropagated"
    same_column(run, "part", "output_grad_norm", [norm(g) for g in gradients])
    assert column(run, "part", "calls") == [1, 1, 1]
    assert not run.status().errors


# ---------------------------------------------------------------- one thing under two names


class Aliased(Noted):
    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(4, 4)
        self.second = self.first

    def forward(self, x: Tensor) -> Tensor:
        for part in (self.first, self.second):
            self.note("input", x)
            x = self.note("output", part(x)).tanh()
        return x


@pytest.mark.parametrize("asked", ["first", "second", nn.Linear, ["first", "second"], "*"])
def test_a_module_with_two_names_is_measured_once(asked: Any, watch: Watch) -> None:
    twin, model = made(Aliased), made(Aliased)
    notes, run = notes_of(twin), watch(model, probes=None)
    run.attach(asked, ["input_norm", "output_grad_norm", "grad_norm", "update_ratio"])
    train_alike(loop, twin, model)
    assert {probe.module for probe in run.probes()} == {"first"}
    same_column(run, "first", "input_norm", [norm(x) for x in pooled(notes.values("input"), 2)])
    same_column(
        run,
        "first",
        "output_grad_norm",
        [norm(g) for g in pooled(notes.gradients_of("output"), 2)],
    )
    gradients = [norm(np.concatenate(list(each.values()))) for each in notes.gradients]
    same_column(run, "first", "grad_norm", gradients)
    ratios = [
        norm(new["first.weight"]) / norm(old["first.weight"])
        for new, old in zip(notes.updates, notes.weights, strict=True)
    ]
    same_column(run, "first", "update_ratio", ratios, rtol=1e-4)
    assert column(run, "first", "calls") == [2, 2, 2]


def test_tied_weights_are_read_once_and_seen_at_both_modules(watch: Watch) -> None:
    twin, model = made(Tied), made(Tied)
    run = watch(model, probes={"*": ["weight_norm", "grad_norm", "output_norm"]})
    run.attach("", "grad_norm")
    run.attach("decoder.weight", ["grad_norm", "update_ratio"])
    optimizers = sgd(twin), sgd(model)
    weights, gradients = [], []
    for step in STEPS:
        for each, optimizer in zip((twin, model), optimizers, strict=True):
            optimizer.zero_grad()
            each(words(step)).square().mean().backward()
            if each is twin:
                gradient = twin.embed.weight.grad
                assert gradient is not None
                weights.append(norm_of(twin.embed.weight))
                gradients.append(norm_of(gradient))
            optimizer.step()
    assert torch.equal(twin.embed.weight, model.embed.weight)
    for place in ("embed", "decoder"):
        same_column(run, place, "weight_norm", weights)
        same_column(run, place, "grad_norm", gradients)
    for place in ("(root)", "embed.weight"):
        same_column(run, place, "grad_norm", gradients)
    assert "decoder.weight" not in run.data.module.values, "a parameter has one series"
