"""Calls kept apart: every call of a module in a step has an entry of its own."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from tests.models import floats, made, sgd
from tests.probes.calls.models import CalledTwice, Recursive, gain
from tests.probes.oracles import Noted, notes_of, same_column, train_alike
from tests.run.conftest import Watch
from tests.run.oracle import norm

batch = floats(5, 4)
STEPS = range(3)


def largest(grad_output: Tensor) -> Tensor:
    return grad_output.abs().amax()


def loop_of(n_micro: int) -> Callable[[nn.Module, Optimizer], None]:
    def loop(model: nn.Module, optimizer: Optimizer) -> None:
        for step in STEPS:
            optimizer.zero_grad()
            for micro in range(n_micro):
                model(batch(10 * step + micro)).square().mean().backward()
            optimizer.step()

    return loop


@pytest.mark.parametrize("n_micro", [1, 2])
def test_every_call_has_its_own_input_output_and_gradient(n_micro: int, watch: Watch) -> None:
    twin, model = (made(partial(CalledTwice, 3.0)) for _ in range(2))
    notes, run = notes_of(twin), watch(model, probes=None)
    run.attach("part", ["input_norm", "output_norm", "output_grad_norm", gain, largest],
               per_call=True)  # fmt: skip
    run.attach("part", "output_mean")
    train_alike(loop_of(n_micro), twin, model)
    n_calls = 2 * n_micro
    for call in range(n_calls):
        mine = slice(call, None, n_calls)
        inputs, outputs = notes.values("input")[mine], notes.values("output")[mine]
        gradients = notes.gradients_of("output")[mine]
        place = f"part[{call}]"
        same_column(run, place, "input_norm", [norm(x) for x in inputs])
        same_column(run, place, "output_norm", [norm(y) for y in outputs])
        same_column(run, place, "output_grad_norm", [norm(g) for g in gradients])
        same_column(run, place, "largest", [float(np.abs(g).max()) for g in gradients])
        ratios = [norm(y) / norm(x) for x, y in zip(inputs, outputs, strict=True)]
        same_column(run, place, "gain", ratios)
    assert f"part[{n_calls}]" not in run.data.module.values
    together = notes.values("output")
    means = [np.concatenate(together[n_calls * i : n_calls * (i + 1)]).mean() for i in STEPS]
    same_column(run, "part", "output_mean", [float(mean) for mean in means])


def test_in_a_recursion_input_output_and_gradient_of_one_call_stay_together(watch: Watch) -> None:
    twin, model = (made(partial(Recursive, 1, 3.0)) for _ in range(2))
    notes, run = notes_of(twin), watch(model, probes=None)
    run.attach("part", ["input_norm", "output_norm", "output_grad_norm", gain], per_call=True)
    train_alike(loop_of(1), twin, model)
    inputs, outputs = notes.values("input"), notes.values("output")
    for step in STEPS:
        outer, inner = inputs[2 * step : 2 * step + 2]
        first, last = outputs[2 * step : 2 * step + 2]
        wanted = {
            (round(norm(x), 4), round(norm(y), 4)) for x, y in ((inner, first), (outer, last))
        }
        data = run.data.sel(step=step)
        found = set()
        for call in range(2):
            one = data.sel(module=f"part[{call}]")
            pair = float(one.input_norm), float(one.output_norm)
            found.add((round(pair[0], 4), round(pair[1], 4)))
            assert float(one.gain) == pytest.approx(pair[1] / pair[0], rel=1e-4)
        assert found == wanted


class Varying(Noted):
    """Called once, twice, three times."""

    n_calls = 1

    def __init__(self) -> None:
        super().__init__()
        self.part = nn.Linear(4, 4)

    def forward(self, x: Tensor) -> Tensor:
        for _ in range(self.n_calls):
            x = self.note("output", self.part(x)).tanh()
        return x


def test_a_call_that_is_not_made_in_a_step_is_a_gap_there(watch: Watch) -> None:
    def loop(model: Any, optimizer: Optimizer) -> None:
        for step in STEPS:
            model.n_calls = step + 1
            optimizer.zero_grad()
            model(batch(step)).square().mean().backward()
            optimizer.step()

    twin, model = made(Varying), made(Varying)
    notes, run = notes_of(twin), watch(model, probes=None)
    run.attach("part", "output_norm", per_call=True)
    train_alike(loop, twin, model)
    sizes = iter([norm(y) for y in notes.values("output")])
    table = [[next(sizes) if call <= step else np.nan for call in range(3)] for step in STEPS]
    for call in range(3):
        same_column(run, f"part[{call}]", "output_norm", [row[call] for row in table])


@pytest.mark.parametrize("reentrant", [True, False])
def test_calls_of_a_checkpointed_layer_stay_apart(reentrant: bool, watch: Watch) -> None:
    """Where the graph is made in the recomputation, nobody knows which call a gradient is of."""

    class Twice(Noted):
        def __init__(self, plain: bool) -> None:
            super().__init__()
            self.part, self._plain = nn.Linear(4, 4), plain

        def forward(self, x: Tensor) -> Tensor:
            for _ in range(2):
                x = x * 2
                if self._plain:
                    x = self.block(x)
                else:
                    x = torch.utils.checkpoint.checkpoint(self.block, x, use_reentrant=reentrant)
            return x

        def block(self, x: Tensor) -> Tensor:
            return self.note("output", self.part(x)).tanh()

    def loop(model: nn.Module, optimizer: Optimizer) -> None:
        for step in STEPS:
            optimizer.zero_grad()
            model(batch(step).requires_grad_()).square().mean().backward()
            optimizer.step()

    oracle, twin, model = (made(partial(Twice, plain)) for plain in (True, False, False))
    notes, run = notes_of(oracle), watch(model, probes=None)
    run.attach("part", ["output_norm", "output_grad_norm"], per_call=True)
    train_alike(loop, twin, model)
    loop(oracle, sgd(oracle))
    for call in range(2):
        mine = slice(call, None, 2)
        place = f"part[{call}]"
        same_column(run, place, "output_norm", [norm(y) for y in notes.values("output")[mine]])
        gradients = [norm(g) for g in notes.gradients_of("output")[mine]]
        if reentrant:
            gradients = [np.nan] * len(STEPS)
        same_column(run, place, "output_grad_norm", gradients)
    assert "part[2]" not in run.data.module.values
    assert not run.status().errors
