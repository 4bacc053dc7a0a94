"""Modules that are not called, or not by their call: gaps that say so, never stale values."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest
from torch import Tensor, nn
from torch.optim import Optimizer

from tests.models import floats, made
from tests.probes.oracles import Noted, column, notes_of, plain_loop, same_column, train_alike
from tests.run.conftest import Watch
from tests.run.oracle import norm

batch = floats(5, 4)
FORWARD = ["input_norm", "input_mean", "output_norm", "output_mean", "output_std"]
BOTH = [*FORWARD, "zero_fraction", "output_grad_norm", "calls"]
STEPS = range(3)
loop = plain_loop(batch, STEPS)


class Experts(Noted):
    """Which of two layers is used depends on the step."""

    used = 0

    def __init__(self) -> None:
        super().__init__()
        self.experts = nn.ModuleList([nn.Linear(4, 3), nn.Linear(4, 3)])

    def forward(self, x: Tensor) -> Tensor:
        return self.note(f"{self.used}", self.experts[self.used](x))


USED = (0, 1, 1, 0, 1)


@pytest.mark.parametrize("to_none", [True, False])
def test_a_module_that_is_not_called_in_a_step_is_a_gap_there(to_none: bool, watch: Watch) -> None:
    def loop(model: nn.Module, optimizer: Optimizer) -> None:
        for step, used in enumerate(USED):
            model.used = used  # type: ignore[assignment]
            optimizer.zero_grad(set_to_none=to_none)
            model(batch(step)).square().mean().backward()
            optimizer.step()

    twin, model = made(Experts), made(Experts)
    notes = notes_of(twin)
    run = watch(model, probes={"experts.*": ["output_norm", "output_grad_norm", "grad_norm"]})
    run.attach("experts.*", ["weight_norm", "update_ratio"])
    train_alike(loop, twin, model)
    for expert in (0, 1):
        values = iter([norm(y) for y in notes.values(f"{expert}")])
        gradients = iter([norm(g) for g in notes.gradients_of(f"{expert}")])
        place, steps = f"experts.{expert}", range(len(USED))
        here = [used == expert for used in USED]
        same_column(run, place, "output_norm", [next(values) if h else math.nan for h in here])
        same_column(
            run, place, "output_grad_norm", [next(gradients) if h else math.nan for h in here]
        )
        names = (f"{place}.weight", f"{place}.bias")
        wanted = [
            norm(np.concatenate([notes.gradients[i][name] for name in names]))
            if names[0] in notes.gradients[i]
            else math.nan
            for i in steps
        ]
        same_column(run, place, "grad_norm", wanted)
        same_column(run, place, "weight_norm", [norm(notes.weights[i][names[0]]) for i in steps])
        ratios = [
            norm(notes.updates[i][names[0]]) / norm(notes.weights[i][names[0]]) for i in steps
        ]
        same_column(run, place, "update_ratio", ratios, rtol=1e-4)
    assert math.isnan(column(run, "experts.1", "grad_norm")[0]), "no gradient yet at all"
    assert run.data.step.values.tolist() == list(range(len(USED)))


def forward_by_hand(model: Any, x: Tensor) -> Tensor:
    return model.fc.forward(x)


def functional(model: Any, x: Tensor) -> Tensor:
    return nn.functional.linear(x, model.fc.weight, model.fc.bias)


def own_call(model: Any, x: Tensor) -> Tensor:
    return model.uncalled(x)


class Uncalled(nn.Linear):
    """Its own ``__call__`` leaves torch's hooks out."""

    def __call__(self, x: Tensor) -> Tensor:
        return self.forward(x)


class Bypassing(Noted):
    def __init__(self, way: Callable[[Any, Tensor], Tensor]) -> None:
        super().__init__()
        self.fc, self.uncalled, self.way = nn.Linear(4, 3), Uncalled(4, 3), way

    def forward(self, x: Tensor) -> Tensor:
        return self.way(self, x)


@pytest.mark.parametrize("way", [forward_by_hand, functional, own_call], ids=lambda f: f.__name__)
def test_a_layer_used_past_its_call_is_a_gap_that_says_so_and_its_parameters_are_read(
    way: Callable[[Any, Tensor], Tensor], watch: Watch
) -> None:
    twin, model = made(partial(Bypassing, way)), made(partial(Bypassing, way))
    place = "uncalled" if way is own_call else "fc"
    parameters = ["weight_norm", "grad_norm", "update_ratio"]
    notes, run = notes_of(twin), watch(model, probes={place: BOTH[:-1]})
    run.attach(f"{place}.weight", parameters)
    train_alike(loop, twin, model)
    run.controls.settle()
    name = f"{place}.weight"
    same_column(run, name, "weight_norm", [norm(each[name]) for each in notes.weights])
    same_column(run, name, "grad_norm", [norm(each[name]) for each in notes.gradients])
    assert np.isfinite(column(run, name, "update_ratio")).all()
    for probe in run.probes():
        if probe.module == place:
            assert np.isnan(column(run, place, probe.quantity)).all()
            assert probe.note.startswith("not called by any training forward")
    assert not run.status().errors


def test_the_projection_inside_attention_is_a_gap_and_its_weight_is_read(watch: Watch) -> None:
    class Attends(Noted):
        def __init__(self) -> None:
            super().__init__()
            self.attention = nn.MultiheadAttention(4, 2, batch_first=True)

        def forward(self, x: Tensor) -> Tensor:
            return self.note("output", self.attention(x, x, x, need_weights=False)[0])

    def loop(model: nn.Module, optimizer: Optimizer) -> None:
        for step in STEPS:
            optimizer.zero_grad()
            model(floats(2, 5, 4)(step)).square().mean().backward()
            optimizer.step()

    twin, model = made(Attends), made(Attends)
    notes = notes_of(twin)
    run = watch(model, probes={"attention": ["output_norm", "output_grad_norm"]})
    run.attach("attention.out_proj", ["output_norm", "weight_norm"])
    run.attach("attention.out_proj.weight", "grad_norm")
    train_alike(loop, twin, model)
    run.controls.settle()
    name = "attention.out_proj.weight"
    same_column(run, "attention", "output_norm", [norm(y) for y in notes.values("output")])
    same_column(
        run, "attention", "output_grad_norm", [norm(g) for g in notes.gradients_of("output")]
    )
    assert np.isnan(column(run, "attention.out_proj", "output_norm")).all()
    same_column(
        run, "attention.out_proj", "weight_norm", [norm(each[name]) for each in notes.weights]
    )
    same_column(run, name, "grad_norm", [norm(each[name]) for each in notes.gradients])
    told = {(p.module, p.quantity): p.note for p in run.probes()}
    note = told["attention.out_proj", "output_norm"]
    assert note.startswith("not called by any training forward")
