"""Gradients of inputs in odd places: none, leaves, repeats, recomputed, asked for twice."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from tests.models import floats, made, mlp, sgd
from tests.probes.oracles import (
    Noted,
    column,
    grad_input_size,
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
SIZE = "grad_input_size"
loop = plain_loop(batch, STEPS)


def test_an_input_without_gradient_is_a_gap(watch: Watch) -> None:
    twin, model = made(mlp), made(mlp)
    run = watch(model, probes={("0", "2"): [grad_input_size]})
    train_alike(loop, twin, model)
    assert np.isnan(column(run, "0", SIZE)).all()
    assert all(value > 0 for value in column(run, "2", SIZE))
    told = {probe.module: probe.note for probe in run.probes()}
    assert told["0"] != ""
    assert not run.status().errors


def test_an_input_that_is_a_leaf_with_gradient_is_measured(watch: Watch) -> None:
    twin, model = made(mlp), made(mlp)
    run = watch(model, probes={"0": [grad_input_size]})
    sizes = []

    def attack(model: nn.Module, optimizer: Optimizer) -> None:
        for step in STEPS:
            optimizer.zero_grad()
            given = batch(step).requires_grad_()
            model(given).square().mean().backward()
            assert given.grad is not None
            sizes.append(norm_of(given.grad))
            optimizer.step()
            assert not given._backward_hooks

    train_alike(attack, twin, model)
    same_column(run, "0", SIZE, sizes[:3])


def test_an_input_returned_as_it_is_has_the_gradient_of_the_output(watch: Watch) -> None:
    class Passes(Noted):
        def __init__(self) -> None:
            super().__init__()
            self.stem, self.part, self.last = nn.Linear(4, 4), nn.Identity(), nn.Linear(4, 2)

        def forward(self, x: Tensor) -> Tensor:
            return self.last(self.part(self.note("input", self.stem(x))))

    twin, model = made(Passes), made(Passes)
    notes = notes_of(twin)
    run = watch(model, probes={"part": [grad_input_size, "output_grad_norm"]})
    train_alike(loop, twin, model)
    wanted = [norm(g) for g in notes.gradients_of("input")]
    same_column(run, "part", SIZE, wanted)
    same_column(run, "part", "output_grad_norm", wanted)


def test_an_input_that_does_not_reach_the_output_is_a_gap(watch: Watch) -> None:
    class Ignores(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.scale = nn.Parameter(torch.ones(4))

        def forward(self, x: Tensor) -> Tensor:
            return x.detach() * self.scale

    class Outer(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.stem, self.part = nn.Linear(4, 4), Ignores()

        def forward(self, x: Tensor) -> Tensor:
            hidden = self.stem(x)
            return self.part(hidden) + hidden

    twin, model = made(Outer), made(Outer)
    run = watch(model, probes={"part": [grad_input_size, "output_grad_norm"]})
    train_alike(loop, twin, model)
    assert np.isnan(column(run, "part", SIZE)).all()
    assert np.isfinite(column(run, "part", "output_grad_norm")).all()


class CalledThrice(Noted):
    def __init__(self, noted: bool) -> None:
        super().__init__()
        self.stem, self.part, self._noted = nn.Linear(4, 4), nn.Linear(4, 4), noted

    def forward(self, x: Tensor) -> Tensor:
        hidden = self.stem(x)
        for _ in range(3):
            given = self.note("input", hidden * 1) if self._noted else hidden
            hidden = self.part(given).tanh() + hidden
        return hidden


def test_calls_and_micro_batches_are_pooled(watch: Watch) -> None:
    def accumulate(model: nn.Module, optimizer: Optimizer) -> None:
        for step in STEPS:
            optimizer.zero_grad()
            for micro in range(2):
                model(batch(2 * step + micro)).square().mean().backward()
            optimizer.step()

    oracle, plain, model = (made(partial(CalledThrice, noted)) for noted in (True, False, False))
    notes, run = notes_of(oracle), watch(model, probes={"part": [grad_input_size]})
    train_alike(accumulate, plain, model)
    accumulate(oracle, sgd(oracle))
    kept = notes.gradients_of("input")
    pooled = [np.concatenate(kept[6 * step : 6 * step + 6]) for step in STEPS]
    same_column(run, "part", SIZE, [norm(g) for g in pooled], rtol=1e-4)


@pytest.mark.parametrize("reentrant", [True, False])
def test_a_checkpointed_module_has_the_share_that_it_has_without(
    reentrant: bool, watch: Watch
) -> None:
    class PartCheckpointed(Noted):
        def __init__(self, plain: bool) -> None:
            super().__init__()
            self.stem, self.part, self._plain = nn.Linear(4, 4), Block(self), plain

        def forward(self, x: Tensor) -> Tensor:
            hidden = self.stem(x)
            if self._plain:
                return self.part(hidden) + hidden
            kept: Tensor = torch.utils.checkpoint.checkpoint(
                self.part, hidden, use_reentrant=reentrant
            )
            return kept + hidden

    class Block(nn.Module):
        def __init__(self, notes_at: Noted) -> None:
            super().__init__()
            self.first, self.last, self._notes_at = nn.Linear(4, 4), nn.Linear(4, 4), [notes_at]

        def forward(self, x: Tensor) -> Tensor:
            return self.last(self._notes_at[0].note("input", self.first(x).tanh()))

    oracle, plain, model = (made(partial(PartCheckpointed, how)) for how in (True, False, False))
    notes, run = notes_of(oracle), watch(model, probes={"part.last": [grad_input_size]})
    train_alike(loop, plain, model)
    train_alike(loop, oracle, made(partial(PartCheckpointed, True)))
    same_column(run, "part.last", SIZE, [norm(g) for g in notes.gradients_of("input")], rtol=1e-4)
