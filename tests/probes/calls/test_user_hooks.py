"""Gradients where others have a hand in it: hooks, copies, functions of their own."""

from __future__ import annotations

import copy
from functools import partial
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable
from torch.optim import Optimizer

from tests.models import floats, made, mlp, sgd
from tests.probes.oracles import (
    Noted,
    OneLayer,
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


# ---------------------------------------------------------------- other people's hooks


def doubled(module: nn.Module, args: Any, output: Tensor) -> Tensor:
    return 2 * output


class Bent(Noted):
    """A layer, and one that uses its output."""

    def __init__(self) -> None:
        super().__init__()
        self.part, self.last = nn.Linear(4, 4), nn.Linear(4, 2)

    def forward(self, x: Tensor) -> Tensor:
        return self.last(self.part(x).tanh())


class Written(Bent):
    """The same with the factors of the hooks written out: before the tap and behind it."""

    inner = outer = 1

    def forward(self, x: Tensor) -> Tensor:
        seen = self.note("output", self.inner * self.part(x))
        return self.last((self.outer * seen).tanh())


@pytest.mark.parametrize("schedule", ["every(1)", "every(2)"])
@pytest.mark.parametrize("begins", ["before watching", "before training", "in the middle"])
def test_a_users_hook_may_replace_the_output_and_those_before_the_tap_count(
    begins: str, schedule: str, watch: Watch
) -> None:
    """What stood there when the probe was attached is part of the value; what came later is not."""

    def train(model: Any, optimizer: Optimizer) -> None:
        written = isinstance(model, Written)
        for step in range(5):
            if step == {"before training": 0, "in the middle": 1}.get(begins, -1):
                if written:
                    model.outer = 2
                else:
                    model.part.register_forward_hook(doubled)
            optimizer.zero_grad()
            model(batch(step)).square().mean().backward()
            optimizer.step()

    oracle, plain, model = made(Written), made(Bent), made(Bent)
    notes = notes_of(oracle)
    if begins == "before watching":
        oracle.inner = 2
        for each in (plain, model):
            each.part.register_forward_hook(doubled)
    run = watch(
        model, probes={"part": [[q, schedule] for q in ("output_norm", "output_grad_norm")]}
    )
    train_alike(train, plain, model)
    train(oracle, sgd(oracle))
    due = slice(None, None, int(schedule[6]))
    outputs = [norm(y) for y in notes.values("output")][due]
    same_column(run, "part", "output_norm", outputs, 1e-4)
    gradients = [norm(g) for g in notes.gradients_of("output")][due]
    same_column(run, "part", "output_grad_norm", gradients, 1e-4)


class Straight(torch.autograd.Function):
    """A step function with a straight-through gradient."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        return (x > 0).float()

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Tensor:
        return gradients[0] * 0.5


class InPlaceFunction(torch.autograd.Function):
    """Doubles its input where it stands."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        ctx.mark_dirty(x)
        return x.mul_(2)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: Tensor) -> Tensor:
        return gradients[0] * 2


class Modern(torch.autograd.Function):
    """With setup_context, two outputs of which one has no gradient."""

    @staticmethod
    def forward(x: Tensor) -> tuple[Tensor, Tensor]:
        return x.square(), x.argmax(1)

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.save_for_backward(*inputs)
        ctx.mark_non_differentiable(output[1])

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Tensor:
        (x,) = ctx.saved_tensors
        return 2 * x * gradients[0]


class Functions(Noted):
    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(4, 3)
        self.straight, self.in_place, self.modern = (
            Applied(function) for function in (Straight, InPlaceFunction, Modern)
        )

    def forward(self, x: Tensor) -> Tensor:
        hidden = self.linear(x)
        straight = self.note("straight", self.straight(hidden))
        squares, _ = self.modern(hidden)
        doubled = self.in_place(hidden * 1)
        return self.note("in_place", doubled).sin() + self.note("modern", squares) + straight.exp()


class Applied(nn.Module):
    def __init__(self, function: type[torch.autograd.Function]) -> None:
        super().__init__()
        self._function = function

    def forward(self, x: Tensor) -> Any:
        return self._function.apply(x)


def test_custom_functions_are_measured_and_do_what_they_did(watch: Watch) -> None:
    twin, model = made(Functions), made(Functions)
    notes, run = notes_of(twin), watch(model, probes={"*": GRADIENT})
    train_alike(loop, twin, model)
    for place in ("straight", "in_place", "modern"):
        gradients = [norm(g) for g in notes.gradients_of(place)]
        same_column(run, place, "output_grad_norm", gradients)
    assert not run.status().errors


@pytest.mark.parametrize("inside", [True, False])
def test_a_users_tensor_hook_goes_on_changing_gradients(inside: bool, watch: Watch) -> None:
    """One set inside the module acts before the tap reads, one set outside acts after it."""

    class Halves(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.linear = nn.Linear(4, 3)

        def forward(self, x: Tensor) -> Tensor:
            y = self.linear(x)
            if inside:
                y.register_hook(lambda gradient: gradient * 0.25)
            return y

    class Outer(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.part = Halves()

        def forward(self, x: Tensor) -> Tensor:
            y = self.part(x)
            if not inside:
                y.register_hook(lambda gradient: gradient * 0.25)
            return y

    outputs = []

    def train(model: nn.Module, optimizer: Optimizer) -> None:
        for step in STEPS:
            optimizer.zero_grad()
            y = model(batch(step))
            outputs.append(y.detach().clone())
            y.square().sum().backward()
            optimizer.step()

    twin, model = made(Outer), made(Outer)
    run = watch(model, probes={"part": GRADIENT, "part.linear": ["grad_norm"]})
    train_alike(train, twin, model)
    factor = 2 * (0.25 if inside else 1.0)
    same_column(run, "part", "output_grad_norm", [factor * norm_of(y) for y in outputs[:3]])


@pytest.mark.filterwarnings("ignore:Full backward hook is firing when gradients are computed")
def test_full_backward_hooks_of_the_user_see_what_they_saw(watch: Watch) -> None:
    seen: list[Tensor] = []

    def clipped(module: nn.Module, grad_input: Any, grad_output: Any) -> Any:
        seen.append(grad_output[0].clone())
        return tuple(None if g is None else g.clamp(-1e-3, 1e-3) for g in grad_input)

    def build() -> nn.Module:
        model = mlp()
        model[2].register_full_backward_hook(clipped)
        model[0].register_full_backward_hook(clipped)
        return model

    twin, model = made(build), made(build)
    run = watch(model, probes={"*": ["output_grad_norm", "input_norm"]})
    train_alike(loop, twin, model)
    assert all(map(torch.equal, seen[:6], seen[6:]))
    same_column(run, "2", "output_grad_norm", [norm_of(g) for g in seen[0:6:2]])
    same_column(run, "0", "output_grad_norm", [norm_of(g) for g in seen[1:6:2]])


def test_a_shallow_copy_of_a_layer_is_not_the_layer(watch: Watch) -> None:
    """``copy.copy`` shares the very dict that the hooks are in."""

    def beside(model: Any, optimizer: Optimizer) -> None:
        other = copy.copy(model.part)
        for step in STEPS:
            optimizer.zero_grad()
            (model(batch(step)).square().mean() + other(100 * batch(step)).sum()).backward()
            optimizer.step()

    twin, model = made(OneLayer), made(OneLayer)
    notes, run = notes_of(twin), watch(model, probes={"part": ["output_norm", "input_norm"]})
    train_alike(beside, twin, model)
    same_column(run, "part", "output_norm", [norm(y) for y in notes.values("output")])
    same_column(run, "part", "input_norm", [norm_of(batch(step)) for step in STEPS])


def test_a_forward_that_was_replaced_on_the_instance_is_the_one_that_is_measured(
    watch: Watch,
) -> None:
    twin, model = made(OneLayer), made(OneLayer)
    notes, run = notes_of(twin), watch(model, probes={"part": ["output_norm", "output_grad_norm"]})
    for each in (twin, model):
        original = each.part.forward
        each.part.forward = partial(tripled, original)  # type: ignore[method-assign]
    train_alike(loop, twin, model)
    same_column(run, "part", "output_norm", [norm(y) for y in notes.values("output")])
    gradients = notes.gradients_of("output")
    same_column(run, "part", "output_grad_norm", [norm(g) for g in gradients])


def tripled(forward: Any, x: Tensor) -> Tensor:
    return 3 * forward(x)
