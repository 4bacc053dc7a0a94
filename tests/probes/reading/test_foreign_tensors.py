"""Measuring among other people's machinery: their tensor classes, modes, counters and settings."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any, ClassVar

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.optim import Optimizer
from torch.utils.flop_counter import FlopCounterMode

from tests.models import floats, made, sgd
from tests.probes.oracles import (
    Noted,
    Notes,
    column,
    notes_of,
    plain_loop,
    same_column,
    train_alike,
)
from tests.run.conftest import Watch
from tests.run.oracle import norm

batch = floats(5, 4)
STEPS = range(3)
EVERYTHING = ["output_norm", "output_mean", "output_std", "zero_fraction", "nonfinite_fraction"]
EVERYTHING += ["input_norm", "input_std", "output_grad_norm", "weight_norm", "update_ratio"]


class Layer(Noted):
    def __init__(self) -> None:
        super().__init__()
        self.part, self.drop, self.last = nn.Linear(4, 4), nn.Dropout(0.3), nn.Linear(4, 2)

    def forward(self, x: Tensor) -> Tensor:
        return self.last(self.drop(self.note("output", self.part(x)).tanh()))


loop = plain_loop(batch, STEPS)


def output_norms(notes: Notes) -> list[float]:
    return [norm(y) for y in notes.values("output")]


# ---------------------------------------------------------------- tensors of other classes


class Strict(Tensor):
    """Refuses whatever it has not been taught, and counts what it is asked."""

    known = ("as_subclass", "__get__", "linear", "tanh", "dropout", "square", "mean", "backward")
    asked: ClassVar[list[str]] = []

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name = getattr(func, "__name__", "")
        cls.asked.append(name)
        if name not in cls.known:
            raise TypeError(f"{name} has no meaning here")
        return super().__torch_function__(func, types, args, kwargs or {})


def largest(output: Tensor) -> Tensor:
    return output.abs().amax()


def test_a_tensor_of_somebodys_own_class_is_measured_without_asking_it(watch: Watch) -> None:
    def strictly(model: nn.Module, optimizer: Optimizer) -> None:
        for step in STEPS:
            optimizer.zero_grad()
            model(batch(step).as_subclass(Strict)).square().mean().backward()
            optimizer.step()

    class Bare(Noted):
        def __init__(self) -> None:
            super().__init__()
            self.part, self.last = nn.Linear(4, 4), nn.Linear(4, 2)

        def forward(self, x: Tensor) -> Tensor:
            return self.last(self.part(x).tanh())

    asked = []
    for watched in (False, True):
        twin, model = made(Bare), made(Bare)
        if watched:
            run = watch(model, probes={"part": [*EVERYTHING, largest], "last": [largest]})
        Strict.asked.clear()
        train_alike(strictly, twin, model)
        asked.append(len(Strict.asked))
    assert not run.status().errors
    assert asked[0] == asked[1]
    plain = made(Bare)
    notes = Notes()
    plain.part.register_forward_hook(lambda module, args, output: notes.keep("output", output))
    loop(plain, sgd(plain))
    same_column(run, "part", "output_norm", output_norms(notes))
    peaks = [float(np.abs(y).max()) for y in notes.values("output")]
    same_column(run, "part", "largest", peaks)


# ---------------------------------------------------------------- modes and counters


def of_rows(output: Tensor) -> Tensor:
    return (output @ output.T).trace()


def test_what_measuring_costs_is_not_counted_as_the_models(watch: Watch) -> None:
    counts = []
    for watched in (False, True):
        model = made(Layer)
        if watched:
            run = watch(model, probes={("part", "last"): [of_rows, *EVERYTHING]})
        with FlopCounterMode(display=False) as counter:
            loop(model, sgd(model))
        counts.append(counter.get_total_flops())
    assert counts[0] == counts[1]
    assert np.isfinite(column(run, "part", "of_rows")).all()


@contextmanager
def default_dtype() -> Iterator[None]:
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    try:
        yield
    finally:
        torch.set_default_dtype(before)


@contextmanager
def deterministic() -> Iterator[None]:
    torch.use_deterministic_algorithms(True)
    try:
        yield
    finally:
        torch.use_deterministic_algorithms(False)


SETTINGS: dict[str, Any] = {
    "nothing": nullcontext,
    "anomaly mode": lambda: torch.autograd.set_detect_anomaly(True),
    "default device": lambda: torch.device("meta"),
    "default dtype": default_dtype,
    "numpy raises": lambda: np.errstate(all="raise"),
    "saved tensors elsewhere": lambda: torch.autograd.graph.save_on_cpu(),
    "deterministic": deterministic,
}


@pytest.mark.filterwarnings("ignore:Anomaly Detection has been enabled")
@pytest.mark.parametrize("scale", [1e-20, 1.0, 1e15])
@pytest.mark.parametrize("setting", SETTINGS)
def test_other_peoples_settings_change_no_value(setting: str, scale: float, watch: Watch) -> None:
    def inside(model: nn.Module, optimizer: Optimizer) -> None:
        batches = [scale * batch(step) for step in STEPS]
        mode: AbstractContextManager[Any] = SETTINGS[setting]()
        with mode:
            for given in batches:
                optimizer.zero_grad()
                model(given).square().mean().backward()
                optimizer.step()

    twin, model = made(Layer), made(Layer)
    notes = notes_of(twin)
    run = watch(model, probes={("part", "last"): [*EVERYTHING, largest]})
    train_alike(inside, twin, model)
    run.controls.settle()
    same_column(run, "part", "output_norm", output_norms(notes))
    gradients = [norm(g) for g in notes.gradients_of("output")]
    same_column(run, "part", "output_grad_norm", gradients, rtol=1e-4)
    assert len(run.series("last", "update_ratio")) == 3
    assert not run.status().errors
    assert run.status().problem == ""


# ---------------------------------------------------------------- quantities that misbehave


def in_place(output: Tensor) -> Tensor:
    return output.abs_().amax()


def in_place_on_the_gradient(grad_output: Tensor) -> Tensor:
    return grad_output.mul_(2).amax()


def in_place_on_the_weight(weight: Tensor) -> Tensor:
    return weight.clamp_(0).amax()


@pytest.mark.parametrize("rude", [in_place, in_place_on_the_gradient, in_place_on_the_weight],
                         ids=lambda f: f.__name__)  # fmt: skip
def test_a_quantity_that_changes_its_tensor_is_told_and_disabled(rude: Any, watch: Watch) -> None:
    model = made(Layer)
    optimizer = sgd(model)
    run = watch(model, probes={"part": [rude, "output_norm"]})
    for step in range(5):
        optimizer.zero_grad()
        model(batch(step)).square().mean().backward()
        optimizer.step()
    run.controls.settle()
    (error,) = run.status().errors
    assert error.quantity == rude.__name__
    assert "in place" in error.error
    assert error.disabled
    assert len(run.series("part", "output_norm")) == 5


def sampled(output: Tensor) -> Tensor:
    return output.flatten()[torch.randperm(output.numel())[:3]].sum()


def test_a_quantity_that_draws_random_numbers_leaves_the_trainings_alone(watch: Watch) -> None:
    twin, model = made(Layer), made(Layer)
    run = watch(model, probes={"part": [sampled]})
    train_alike(loop, twin, model)
    assert np.isfinite(column(run, "part", "sampled")).all()
