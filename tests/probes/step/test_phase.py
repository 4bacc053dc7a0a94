"""Training or evaluation: what counts, and in which step, decided at the outermost call."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.optim import Optimizer

import notebook_probe as nbp
from tests.evaluations import EVALUATIONS
from tests.models import floats, made
from tests.probes.oracles import (
    Noted,
    Notes,
    column,
    notes_of,
    same_column,
    train_alike,
)
from tests.run.conftest import Watch
from tests.run.oracle import norm

batch = floats(6, 4)
STEPS = range(3)
QUANTITIES = ["input_norm", "output_norm", "output_mean", "output_grad_norm"]


class Small(Noted):
    """BatchNorm and dropout: a validation in the wrong mode, or a number drawn too many, shows."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(4, 5)
        self.norm = nn.BatchNorm1d(5)
        self.drop = nn.Dropout(0.3)
        self.last = nn.Linear(5, 2)

    def encode(self, x: Tensor) -> Tensor:
        self.note("input", x)
        return self.note("output", self.first(x))

    def forward(self, x: Tensor) -> Tensor:
        normed = self.note("normed", self.norm(self.encode(x)))
        return self.last(self.drop(normed).relu())


def check_first(run: nbp.Run, notes: Notes, n_calls: int = 1) -> None:
    """What was recorded of the first layer is what the twin noted, and nothing else."""
    inputs, outputs = notes.values("input"), notes.values("output")
    n_steps = len(inputs) // n_calls
    assert run.data.step.values.tolist() == list(range(n_steps))
    parts = [slice(i * n_calls, (i + 1) * n_calls) for i in range(n_steps)]
    joined = [np.concatenate(outputs[part]) for part in parts]
    gradients = [np.concatenate(notes.gradients_of("output")[part]) for part in parts]
    wanted = [norm(np.concatenate(inputs[part])) for part in parts]
    same_column(run, "first", "input_norm", wanted)
    same_column(run, "first", "output_norm", [norm(y) for y in joined])
    same_column(run, "first", "output_mean", [float(y.mean()) for y in joined])
    same_column(run, "first", "output_grad_norm", [norm(g) for g in gradients])
    assert column(run, "first", "calls") == [n_calls] * n_steps


# ---------------------------------------------------------------- validation


def inference_in_train_mode(model: nn.Module, images: Tensor) -> None:
    with torch.inference_mode():
        model(images)


def a_part_alone(model: Any, images: Tensor) -> None:
    with torch.no_grad():
        model.first(images)


def evaluation_with_backward(model: nn.Module, images: Tensor) -> None:
    """As a saliency map is made: gradients of the input, of a model in eval mode."""
    model.eval()
    images = images.clone().requires_grad_()
    torch.autograd.grad(model(images).sum(), images)
    model.train()


VALIDATIONS = [
    *EVALUATIONS,
    inference_in_train_mode,
    a_part_alone,
    evaluation_with_backward,
]


@pytest.mark.parametrize("validate", VALIDATIONS, ids=lambda f: f.__name__)
def test_validation_between_steps_leaves_the_training_series_as_they_are(
    validate: Callable[[nn.Module, Tensor], None], watch: Watch
) -> None:
    def loop(model: nn.Module, optimizer: Optimizer) -> None:
        validate(model, 1e3 * batch(99))
        for step in STEPS:
            optimizer.zero_grad()
            model(batch(step)).square().mean().backward()
            optimizer.step()
            validate(model, 1e3 * batch(99))
            validate(model, 1e3 * batch(99))

    twin, model = made(Small), made(Small)
    notes, run = notes_of(twin), watch(model, probes={"first": QUANTITIES})
    train_alike(loop, twin, model)
    check_first(run, notes)


@pytest.mark.parametrize("validate", VALIDATIONS, ids=lambda f: f.__name__)
@pytest.mark.parametrize("moment", ["before the backward", "before the step"])
def test_validation_inside_a_step_neither_overwrites_nor_closes_it(
    validate: Callable[[nn.Module, Tensor], None], moment: str, watch: Watch
) -> None:
    def loop(model: nn.Module, optimizer: Optimizer) -> None:
        for step in STEPS:
            optimizer.zero_grad()
            loss = model(batch(step)).square().mean()
            if moment == "before the backward":
                validate(model, 1e3 * batch(99))
            loss.backward()
            if moment == "before the step":
                validate(model, 1e3 * batch(99))
            optimizer.step()

    twin, model = made(Small), made(Small)
    notes, run = notes_of(twin), watch(model, probes={"first": QUANTITIES})
    train_alike(loop, twin, model)
    check_first(run, notes)


def test_a_part_in_eval_mode_inside_a_training_forward_counts_as_training(watch: Watch) -> None:
    def loop(model: Any, optimizer: Optimizer) -> None:
        model.norm.eval()
        model.first.eval()
        for step in STEPS:
            optimizer.zero_grad()
            model(batch(step)).square().mean().backward()
            optimizer.step()

    twin, model = made(Small), made(Small)
    notes = notes_of(twin)
    run = watch(model, probes={("first", "norm"): QUANTITIES})
    train_alike(loop, twin, model)
    check_first(run, notes)
    same_column(run, "norm", "output_norm", [norm(y) for y in notes.values("normed")])
    same_column(run, "norm", "output_grad_norm", [norm(g) for g in notes.gradients_of("normed")])


def test_a_root_that_toggles_its_mode_inside_its_own_forward_stays_what_it_was(
    watch: Watch,
) -> None:
    class Teacher(Small):
        """Makes pseudo-labels with itself in eval mode, in the middle of its training forward."""

        def forward(self, x: Tensor) -> Tensor:
            first = self.encode(x)
            self.eval()
            with torch.no_grad():
                target = self.last(self.norm(self.first(x)))
            self.train()
            return self.last(self.norm(first)) - target

    def loop(model: nn.Module, optimizer: Optimizer) -> None:
        for step in STEPS:
            optimizer.zero_grad()
            model(batch(step)).square().mean().backward()
            optimizer.step()

    twin, model = made(Teacher), made(Teacher)
    notes, run = notes_of(twin), watch(model, probes={"first": ["output_grad_norm"]})
    train_alike(loop, twin, model)
    gradients = notes.gradients_of("output")
    same_column(run, "first", "output_grad_norm", [norm(g) for g in gradients])


def test_a_part_run_without_gradients_inside_a_training_forward_counts_as_training(
    watch: Watch,
) -> None:
    class Backbone(Small):
        """Its first layer is a feature extractor that is never trained."""

        def forward(self, x: Tensor) -> Tensor:
            with torch.no_grad():
                features = self.first(x)
            return self.last(self.norm(self.note("features", features + 0)))

    def loop(model: nn.Module, optimizer: Optimizer) -> None:
        for step in STEPS:
            optimizer.zero_grad()
            model(batch(step)).square().mean().backward()
            optimizer.step()

    twin, model = made(Backbone), made(Backbone)
    notes, run = notes_of(twin), watch(model, probes={"first": ["output_norm", "output_grad_norm"]})
    train_alike(loop, twin, model)
    same_column(run, "first", "output_norm", [norm(y) for y in notes.values("features")])
    assert np.isnan(column(run, "first", "output_grad_norm")).all()


def test_a_model_put_into_eval_mode_before_its_backward_was_training(watch: Watch) -> None:
    def loop(model: nn.Module, optimizer: Optimizer) -> None:
        for step in STEPS:
            optimizer.zero_grad()
            loss = model(batch(step)).square().mean()
            model.eval()
            loss.backward()
            optimizer.step()
            model.train()

    twin, model = made(Small), made(Small)
    notes, run = notes_of(twin), watch(model, probes={"first": QUANTITIES})
    train_alike(loop, twin, model)
    check_first(run, notes)


# ---------------------------------------------------------------- the root is not entered


def test_a_part_called_directly_is_measured_when_it_trains_and_not_when_it_does_not(
    watch: Watch,
) -> None:
    def loop(model: Any, optimizer: Optimizer) -> None:
        for step in STEPS:
            optimizer.zero_grad()
            with torch.no_grad():
                target = model.encode(1e3 * batch(step + 50))
            model.encode(batch(step)).square().mean().backward()
            optimizer.step()
            del target

    twin, model = made(Small), made(Small)
    notes, run = notes_of(twin), watch(model, probes={"first": QUANTITIES})
    train_alike(loop, twin, model)
    check_first(run, notes)


def test_a_loop_that_uses_now_the_root_and_now_a_part_loses_nothing(watch: Watch) -> None:
    def loop(model: Any, optimizer: Optimizer) -> None:
        for step in range(6):
            optimizer.zero_grad()
            forward = model if step % 2 else model.encode
            forward(batch(step)).square().mean().backward()
            optimizer.step()

    twin, model = made(Small), made(Small)
    notes, run = notes_of(twin), watch(model, probes={"first": QUANTITIES})
    train_alike(loop, twin, model)
    check_first(run, notes)


# ---------------------------------------------------------------- calls from inside calls


@pytest.mark.parametrize("place", ["", "first"])
@pytest.mark.parametrize("when", ["before watching", "after watching"])
@pytest.mark.parametrize("eval_mode", [False, True])
def test_a_users_hook_that_calls_the_model_again_without_gradients_is_an_evaluation_inside(
    place: str, when: str, eval_mode: bool, watch: Watch
) -> None:
    """The forward it interrupts goes on as the training that it is."""

    def monitor(model: nn.Module) -> None:
        busy: list[bool] = []

        def hook(module: nn.Module, args: Any, output: Any) -> None:
            if busy or not torch.is_grad_enabled():
                return
            busy.append(True)
            norm_layer = model.get_submodule("norm")
            norm_layer.eval()  # its running statistics are the training's
            with torch.no_grad():
                if eval_mode:
                    model.eval()(1e3 * batch(98))
                    model.train()
                else:
                    model(1e3 * batch(98))
            norm_layer.train()
            busy.clear()

        model.get_submodule(place).register_forward_hook(hook)

    def loop(model: nn.Module, optimizer: Optimizer) -> None:
        for step in STEPS:
            optimizer.zero_grad()
            model(batch(step)).square().mean().backward()
            optimizer.step()

    twin, model = made(Small), made(Small)
    notes = notes_of(twin)
    monitor(twin)
    if when == "before watching":
        monitor(model)
    run = watch(model, probes={("first", "norm"): QUANTITIES})
    if when == "after watching":
        monitor(model)
    train_alike(loop, twin, model)
    check_first(run, notes)
    same_column(run, "norm", "output_norm", [norm(y) for y in notes.values("normed")])
    same_column(run, "norm", "output_grad_norm", [norm(g) for g in notes.gradients_of("normed")])


def test_an_interrupted_validation_does_not_make_the_next_training_forward_one(
    watch: Watch,
) -> None:
    class Breaks(Small):
        broken = False

        def forward(self, x: Tensor) -> Tensor:
            output = super().forward(x)
            if self.broken:
                raise KeyboardInterrupt
            return output

    def loop(model: Any, optimizer: Optimizer) -> None:
        for step in STEPS:
            model.broken = True
            model.eval()
            with torch.no_grad(), pytest.raises(KeyboardInterrupt):
                model(1e3 * batch(step + 50))
            model.train()
            model.broken = False
            optimizer.zero_grad()
            model(batch(step)).square().mean().backward()
            optimizer.step()

    twin, model = made(Breaks), made(Breaks)
    notes, run = notes_of(twin), watch(model, probes={"first": QUANTITIES})
    train_alike(loop, twin, model)
    check_first(run, notes)
