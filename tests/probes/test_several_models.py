"""Steps of models that train each other, and of optimizers that take turns."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.optim import SGD, Adam, Optimizer

from tests.models import floats, made, sgd
from tests.probes.oracles import (
    Noted,
    Notes,
    column,
    norm_of,
    notes_of,
    same_column,
    train_alike,
)
from tests.probes.parity import differing, everything
from tests.run.conftest import Watch
from tests.run.oracle import norm

batch = floats(6, 4)
STEPS = range(3)
QUANTITIES = ["input_norm", "output_norm", "output_mean", "output_grad_norm"]


class Generator(Noted):
    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(4, 4)

    def forward(self, x: Tensor) -> Tensor:
        self.note("input", x)
        return self.note("output", self.first(x))


def test_the_two_models_of_a_gan_have_a_clock_and_gradients_of_their_own(watch: Watch) -> None:
    """The critic is trained three times as often, and judges inside the generator's step too."""

    def adversarial(generator: Noted, critic: Noted, optimizers: list[Optimizer]) -> None:
        make, judge = optimizers
        for step in STEPS:
            for part in range(3):
                judge.zero_grad()
                fake = generator(batch(10 * step + part)).detach()
                (critic(fake).mean() - critic(batch(500 + step)).square().mean()).backward()
                judge.step()
            make.zero_grad()
            critic(generator(batch(10 * step))).square().mean().backward()
            make.step()

    left, told, runs = [], [], []
    for watched in (False, True):
        generator, critic = made(Generator), made(Generator, seed=2)
        optimizers = [sgd(generator), Adam(critic.parameters(), lr=0.01)]
        if watched:
            every = [*QUANTITIES, "grad_norm", "update_ratio", "weight_norm"]
            runs = [watch(each, probes={"first": every}) for each in (generator, critic)]
        else:
            told = [notes_of(generator), notes_of(critic)]
            for notes, each, one in zip(told, (generator, critic), optimizers, strict=True):
                notes.follow(each, one)
        torch.manual_seed(3)
        adversarial(generator, critic, optimizers)
        left.append({**everything(generator, optimizers), **{
            f"critic {name}": value for name, value in everything(critic).items()}})  # fmt: skip
    assert differing(*left) == []
    for run, notes, n_steps in zip(runs, told, (3, 9), strict=True):
        assert run.data.step.values.tolist() == list(range(n_steps))
        gradients = [norm(np.concatenate(list(each.values()))) for each in notes.gradients]
        same_column(run, "first", "grad_norm", gradients)
        weights = [each["first.weight"] for each in notes.weights]
        same_column(run, "first", "weight_norm", [norm(w) for w in weights])
        ratios = [
            norm(u["first.weight"]) / norm(w) for u, w in zip(notes.updates, weights, strict=True)
        ]
        same_column(run, "first", "update_ratio", ratios, rtol=1e-4)
    # the critic judges twice in its own steps; what comes of the once in the generator's is cleared
    parts = _parted(told[1].values("output"), CRITIC)
    same_column(runs[1], "first", "output_norm", [norm(np.concatenate(p[-2:])) for p in parts])
    assert column(runs[1], "first", "calls") == [2] * 9
    found = runs[1].series("", "discarded_backwards")
    assert found.step.values[found.values > 0].tolist() == [3, 6]
    # what the generator makes for the critic alone, three times a step, has no gradient
    outputs = [norm(each) for each in told[0].values("output")[3::4]]
    same_column(runs[0], "first", "output_norm", outputs)
    assert column(runs[0], "first", "calls") == [1, 1, 1]


CRITIC = [2, 2, 2, 3, 2, 2, 3, 2, 2]


def _parted(calls: list[Any], sizes: list[int]) -> list[list[Any]]:
    ends = np.cumsum(sizes)
    return [calls[end - size : end] for end, size in zip(ends, sizes, strict=True)]


class Outer(Noted):
    """Somebody's model, of which a part is watched on its own as well."""

    def __init__(self) -> None:
        super().__init__()
        self.inner, self.head = made(Generator), nn.Linear(4, 2)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.inner(x).tanh())


def test_a_model_and_a_part_of_it_can_be_watched_at_once(watch: Watch) -> None:
    def loop(model: nn.Module, optimizer: Optimizer) -> None:
        for step in STEPS:
            optimizer.zero_grad()
            model(batch(step)).square().mean().backward()
            optimizer.step()

    twin, model = made(Outer), made(Outer)
    notes = notes_of(twin.inner)
    outer = watch(model, probes={"inner.first": QUANTITIES})
    inner = watch(model.inner, probes={"first": QUANTITIES})
    train_alike(loop, twin, model)
    for run, place in ((outer, "inner.first"), (inner, "first")):
        assert run.data.step.values.tolist() == [0, 1, 2]
        same_column(run, place, "output_norm", [norm(y) for y in notes.values("output")])
        gradients = notes.gradients_of("output")
        same_column(run, place, "output_grad_norm", [norm(g) for g in gradients])


class Local(Noted):
    """Each block trains itself, inside the forward of the whole."""

    def __init__(self) -> None:
        super().__init__()
        self.a, self.b = nn.Linear(4, 4), nn.Linear(4, 4)
        self.optimizers = [sgd(self.a), sgd(self.b)]

    def forward(self, x: Tensor) -> Tensor:
        for name, optimizer in zip("ab", self.optimizers, strict=True):
            x = self.note(name, self.get_submodule(name)(x.detach()))
            optimizer.zero_grad()
            x.square().mean().backward()
            optimizer.step()
        return x


def test_blocks_that_train_themselves_inside_a_forward_are_one_step(watch: Watch) -> None:
    left, run, notes = [], None, Notes()
    for watched in (False, True):
        model = made(Local)
        if watched:
            run = watch(model, probes={("a", "b"): ["output_norm", "output_grad_norm"]})
            run.attach(("a", "b"), ["grad_norm", "update_ratio"])
        else:
            notes = notes_of(model)
            for block, optimizer in zip((model.a, model.b), model.optimizers, strict=True):
                notes.follow(block, optimizer)
        for step in STEPS:
            model(batch(step))
        left.append(everything(model, model.optimizers))
    assert differing(*left) == []
    assert run is not None
    assert run.data.step.values.tolist() == [0, 1, 2]
    for i, name in enumerate("ab"):
        same_column(run, name, "output_norm", [norm(y) for y in notes.values(name)])
        same_column(run, name, "output_grad_norm", [norm(g) for g in notes.gradients_of(name)])
        gradients = [norm(np.concatenate(list(g.values()))) for g in notes.gradients[i::2]]
        same_column(run, name, "grad_norm", gradients)
        pairs = zip(notes.updates[i::2], notes.weights[i::2], strict=True)
        ratios = [norm(u["weight"]) / norm(w["weight"]) for u, w in pairs]
        same_column(run, name, "update_ratio", ratios, rtol=1e-4)


class Small(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.last = nn.Linear(4, 5), nn.Linear(5, 2)

    def forward(self, x: Tensor) -> Tensor:
        return self.last(self.first(x).relu())


def test_a_training_forward_between_two_optimizers_makes_two_steps_of_them(watch: Watch) -> None:
    def optimizers_of(model: nn.Module) -> tuple[Optimizer, Optimizer]:
        first, last = model.get_submodule("first"), model.get_submodule("last")
        return SGD(first.parameters(), lr=0.1), Adam(last.parameters(), lr=0.01)

    left, run, seen = [], None, []
    for watched in (False, True):
        model = made(Small)
        both = optimizers_of(model)
        if watched:
            run = watch(model, probes={("first", "last"): ["update_ratio", "weight_norm"]})
            run.attach(("first.weight", "last.weight"), "grad_norm")
            run.attach("first", "input_norm")
        torch.manual_seed(3)
        for step in range(6):
            model.zero_grad()
            model(batch(step)).square().mean().backward()
            if not watched:
                parts = [model.get_parameter(f"{name}.weight") for name in ("first", "last")]
                before = [part.detach().double().clone() for part in parts]
                gradients = [norm_of(part.grad) for part in parts if part.grad is not None]
            both[step % 2].step()
            if not watched:
                changes = [
                    norm_of(a.detach().double() - b) for a, b in zip(parts, before, strict=True)
                ]
                seen.append((gradients, changes, [norm_of(part) for part in before]))
        left.append(everything(model, both))
    assert differing(*left) == []
    assert run is not None
    assert run.data.step.values.tolist() == list(range(6))
    same_column(run, "first", "input_norm", [norm_of(batch(step)) for step in range(6)])
    for i, name in enumerate(("first", "last")):
        mine = [step % 2 == i for step in range(6)]
        ratios = [c[i] / w[i] if m else math.nan for m, (_, c, w) in zip(mine, seen, strict=True)]
        gradients = [g[i] if m else math.nan for m, (g, _, _) in zip(mine, seen, strict=True)]
        same_column(run, name, "update_ratio", ratios, rtol=1e-4)
        same_column(run, f"{name}.weight", "grad_norm", gradients)
        same_column(run, name, "weight_norm", [w[i] for _, _, w in seen])
