"""Gradients of outputs: what arrives, whatever is done to them on the way."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from tests.models import ConvNet, Encoder, Residual, Tagger, floats, loss_of, made, mlp, sgd, words
from tests.probes.calls.models import Recurrent
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
STEPS = range(3)
GRADIENT = ["output_grad_norm"]
loop = plain_loop(batch, STEPS)


# ---------------------------------------------------------------- in place behind a module


def set_items(y: Tensor, skip: Tensor) -> Tensor:
    y[:, 0] = 0.0
    y[:, 2:4] = skip[:, :2]
    return y


def chunked(y: Tensor, skip: Tensor) -> Tensor:
    first, last = y.unsafe_chunk(2, 1)
    return torch.cat([first.mul_(3), last], 1)


def slice_of(y: Tensor, skip: Tensor) -> Tensor:
    y[:, :2].mul_(3)
    return y


def diagonal(y: Tensor, skip: Tensor) -> Tensor:
    y.diagonal().zero_()
    return y


def added(y: Tensor, skip: Tensor) -> Tensor:
    y += skip
    return y


IN_PLACE: dict[str, tuple[Callable[..., Tensor], Callable[..., Tensor]]] = {
    "relu_": (lambda y, skip: y.relu_(), lambda y, skip: y.relu()),
    "+=": (added, lambda y, skip: y + skip),
    "add_": (lambda y, skip: y.add_(skip, alpha=2), lambda y, skip: y + 2 * skip),
    "mul_": (lambda y, skip: y.mul_(skip), lambda y, skip: y * skip),
    "sigmoid_": (lambda y, skip: y.sigmoid_(), lambda y, skip: y.sigmoid()),
    "setitem": (
        set_items,
        lambda y, skip: torch.cat([0 * skip[:, :1], y[:, 1:2], skip[:, :2], y[:, 4:]], 1),
    ),
    "slice": (slice_of, lambda y, skip: torch.cat([3 * y[:, :2], y[:, 2:]], 1)),
    "chunk": (chunked, lambda y, skip: torch.cat([3 * y[:, :3], y[:, 3:]], 1)),
    "diagonal": (diagonal, lambda y, skip: y * (1 - torch.eye(5, 6))),
    "twice": (lambda y, skip: y.mul_(2).relu_(), lambda y, skip: (2 * y).relu()),
}


class Followed(Noted):
    """A layer and what is done to its output."""

    def __init__(self, change: Callable[[Tensor, Tensor], Tensor]) -> None:
        super().__init__()
        self.part, self.skip = nn.Linear(4, 6), nn.Linear(4, 6)
        self._change = change

    def forward(self, x: Tensor) -> Tensor:
        skip = self.note("skip", self.skip(x))
        return self._change(self.note("output", self.part(x)), skip)


@pytest.mark.parametrize("op", IN_PLACE)
def test_the_gradient_is_that_of_the_value_before_an_operation_in_place(
    op: str, watch: Watch
) -> None:
    in_place, elsewhere = IN_PLACE[op]
    plain, oracle, model = (
        made(partial(Followed, change)) for change in (in_place, elsewhere, in_place)
    )
    notes = notes_of(oracle)
    run = watch(model, probes={("part", "skip"): ["output_grad_norm", "output_norm"]})
    train_alike(loop, plain, model)
    loop(oracle, sgd(oracle))
    for place, name in (("part", "output"), ("skip", "skip")):
        same_column(run, place, "output_norm", [norm(y) for y in notes.values(name)])
        gradients = notes.gradients_of(name) or [np.full(1, math.nan)] * 3
        same_column(run, place, "output_grad_norm", [norm(g) for g in gradients], rtol=1e-4)
    assert not run.status().errors


def test_a_module_that_works_in_place_and_the_one_before_it_have_a_gradient_each(
    watch: Watch,
) -> None:
    """Both return the same tensor object, at two moments of its life."""

    class Stacked(Noted):
        def __init__(self, inplace: bool) -> None:
            super().__init__()
            self.first, self.last = nn.Linear(4, 6), nn.Linear(6, 2)
            self.relu, self.drop = nn.LeakyReLU(0.1, inplace), nn.Dropout(0.0, inplace)

        def forward(self, x: Tensor) -> Tensor:
            hidden = self.note("first", self.first(x))
            return self.last(self.drop(self.note("relu", self.relu(hidden))))

    plain, oracle, model = (made(partial(Stacked, inplace)) for inplace in (True, False, True))
    notes, run = notes_of(oracle), watch(model, probes={("first", "relu"): GRADIENT})
    train_alike(loop, plain, model)
    loop(oracle, sgd(oracle))
    for place in ("first", "relu"):
        gradients = [norm(g) for g in notes.gradients_of(place)]
        same_column(run, place, "output_grad_norm", gradients, rtol=1e-4)


# ---------------------------------------------------------------- against full backward hooks


PLAIN: dict[str, tuple[Callable[[], nn.Module], Callable[[int], Tensor]]] = {
    "mlp": (mlp, batch),
    "convolution": (lambda: ConvNet(inplace=False), floats(4, 1, 6, 6)),
    "transformer": (lambda: Encoder(dropout=0.0), words),
    "gru": (Recurrent, floats(2, 5, 4)),
    "lstm": (Tagger, words),
    "residual": (Residual, batch),
}


@pytest.mark.filterwarnings("ignore:Full backward hook is firing when gradients are computed")
@pytest.mark.parametrize("kind", PLAIN)
def test_gradients_are_those_of_full_backward_hooks_where_these_work(
    kind: str, watch: Watch
) -> None:
    build, batches = PLAIN[kind]
    hooked, plain, model = made(build), made(build), made(build)
    arrived: dict[str, list[list[Tensor]]] = {}

    def keep(path: str) -> Callable[..., None]:
        def hook(module: nn.Module, grad_input: Any, grad_output: Any) -> None:
            arrived.setdefault(path, []).append([g.clone() for g in grad_output if g is not None])

        return hook

    for path, module in hooked.named_modules():
        if path:
            module.register_full_backward_hook(keep(path))

    def train(model: nn.Module, optimizer: Optimizer) -> None:
        for step in STEPS:
            optimizer.zero_grad()
            loss_of(model(batches(step))).backward()
            optimizer.step()

    run = watch(model, probes={"*": GRADIENT})
    train_alike(train, plain, model)
    train(hooked, sgd(hooked))
    calls = {path: len(kept) // len(STEPS) for path, kept in arrived.items()}
    assert len(calls) >= 2
    for path, n in calls.items():
        parts = [arrived[path][n * i : n * (i + 1)] for i in STEPS]
        wanted = [norm_of(*(tensor for call in part for tensor in call)) for part in parts]
        same_column(run, path, "output_grad_norm", wanted, rtol=1e-4)


# ---------------------------------------------------------------- frozen, used twice, unused


def test_frozen_parts_are_a_gap_and_the_rest_is_measured(watch: Watch) -> None:
    class Frozen(Noted):
        def __init__(self) -> None:
            super().__init__()
            self.body, self.middle, self.head = (nn.Linear(4, 4) for _ in range(3))
            self.body.requires_grad_(False)
            self.middle.requires_grad_(False)

        def forward(self, x: Tensor) -> Tensor:
            return self.note("head", self.head(self.middle(self.body(x)).relu()))

    twin, model = made(Frozen), made(Frozen)
    notes = notes_of(twin)
    run = watch(model, probes={"*": ["output_norm", "output_grad_norm", "grad_norm", "input_norm"]})
    train_alike(loop, twin, model)
    for place in ("body", "middle"):
        assert np.isfinite(column(run, place, "output_norm")).all()
        assert np.isnan(column(run, place, "output_grad_norm")).all()
        assert np.isnan(column(run, place, "grad_norm")).all()
    same_column(run, "body", "input_norm", [norm_of(batch(step)) for step in STEPS])
    gradients = notes.gradients_of("head")
    same_column(run, "head", "output_grad_norm", [norm(g) for g in gradients])
    wanted = [norm(np.concatenate([g["head.weight"], g["head.bias"]])) for g in notes.gradients]
    same_column(run, "head", "grad_norm", wanted)
    assert not run.status().errors


def test_a_frozen_layer_behind_a_trained_one_passes_its_gradient_on(watch: Watch) -> None:
    class Sandwich(Noted):
        def __init__(self) -> None:
            super().__init__()
            self.first, self.frozen = nn.Linear(4, 4), nn.Linear(4, 3)
            self.frozen.requires_grad_(False)

        def forward(self, x: Tensor) -> Tensor:
            return self.note("frozen", self.frozen(self.note("first", self.first(x)).tanh()))

    twin, model = made(Sandwich), made(Sandwich)
    notes, run = notes_of(twin), watch(model, probes={"*": ["output_grad_norm", "grad_norm"]})
    train_alike(loop, twin, model)
    for place in ("first", "frozen"):
        same_column(run, place, "output_grad_norm", [norm(g) for g in notes.gradients_of(place)])
    assert np.isnan(column(run, "frozen", "grad_norm")).all()


def test_what_is_unfrozen_in_the_middle_is_measured_from_then_on(watch: Watch) -> None:
    class Thawing(Noted):
        def __init__(self) -> None:
            super().__init__()
            self.body, self.head = nn.Linear(4, 4).requires_grad_(False), nn.Linear(4, 3)

        def forward(self, x: Tensor) -> Tensor:
            return self.head(self.note("body", self.body(x)).relu())

    def thaw(model: Any, optimizer: Optimizer) -> None:
        for step in range(5):
            if step == 2:
                model.body.requires_grad_(True)
            if step == 4:
                model.body.requires_grad_(False)
            optimizer.zero_grad()
            model(batch(step)).square().mean().backward()
            optimizer.step()

    twin, model = made(Thawing), made(Thawing)
    notes = notes_of(twin)
    run = watch(model, probes={"body": ["output_grad_norm", "grad_norm", "update_ratio"]})
    train_alike(thaw, twin, model)
    gap = [math.nan, math.nan]
    arrived = [norm(g) for g in notes.gradients_of("body")]
    assert len(arrived) == 2
    same_column(run, "body", "output_grad_norm", [*gap, *arrived, math.nan])
    names = ("body.weight", "body.bias")
    gradients = [norm(np.concatenate([notes.gradients[i][n] for n in names])) for i in (2, 3)]
    same_column(run, "body", "grad_norm", [*gap, *gradients, math.nan])
    ratios = [
        norm(u["body.weight"]) / norm(w["body.weight"])
        for u, w in zip(notes.updates, notes.weights, strict=True)
    ]
    assert ratios[:2] == [0, 0]
    same_column(run, "body", "update_ratio", ratios, rtol=1e-4)


def test_of_an_output_with_several_consumers_the_total_is_measured(watch: Watch) -> None:
    class Forked(Noted):
        def __init__(self) -> None:
            super().__init__()
            self.part = nn.Linear(4, 3)

        def forward(self, x: Tensor) -> Tensor:
            y = self.note("output", self.part(x))
            return y.tanh() + y.square() * y.detach() + y.detach().sin()

    twin, model = made(Forked), made(Forked)
    notes, run = notes_of(twin), watch(model, probes={"part": GRADIENT})
    train_alike(loop, twin, model)
    gradients = notes.gradients_of("output")
    same_column(run, "part", "output_grad_norm", [norm(g) for g in gradients])


class Lstm(Noted):
    """Which of its three outputs are used can be chosen."""

    def __init__(self, used: str) -> None:
        super().__init__()
        self.part, self.other = nn.LSTM(4, 3, batch_first=True), nn.Linear(4, 1)
        self._used = used

    def forward(self, x: Tensor) -> Tensor:
        output, (hidden, cell) = self.part(x)
        parts = {"output": output, "hidden": hidden, "cell": cell}
        for name, tensor in parts.items():
            self.note(name, tensor)
        chosen = [parts[name].square().mean() for name in parts if name in self._used.split()]
        return sum(chosen, self.other(x).square().mean())


@pytest.mark.parametrize(
    "used", ["output", "hidden", "cell", "output cell", "output hidden cell", "none"]
)
def test_gradients_are_pooled_over_what_arrived_and_nothing_is_a_gap(
    used: str, watch: Watch
) -> None:
    def sequences(model: nn.Module, optimizer: Optimizer) -> None:
        for step in STEPS:
            optimizer.zero_grad()
            model(floats(2, 5, 4)(step)).backward()
            optimizer.step()

    twin, model = made(partial(Lstm, used)), made(partial(Lstm, used))
    notes, run = notes_of(twin), watch(model, probes={"part": ["output_grad_norm", "output_norm"]})
    train_alike(sequences, twin, model)
    arrived = [notes.gradients_of(name) for name in ("output", "hidden", "cell")]
    if used == "none":
        assert arrived == [[], [], []]
        assert np.isnan(column(run, "part", "output_grad_norm")).all()
    else:
        pooled = [norm(np.concatenate(each)) for each in zip(*filter(None, arrived), strict=True)]
        same_column(run, "part", "output_grad_norm", pooled)
    values = [notes.values(name) for name in ("output", "hidden", "cell")]
    same_column(
        run,
        "part",
        "output_norm",
        [norm(np.concatenate(each)) for each in zip(*values, strict=True)],
    )
    assert not run.status().errors


def peak(output: Tensor) -> Tensor:
    return output.abs().amax()


def gradient_peak(grad_output: Tensor) -> Tensor:
    return grad_output.abs().amax()


def test_a_function_of_tensors_is_given_the_first_output_and_the_gradient_of_that(
    watch: Watch,
) -> None:
    def sequences(model: nn.Module, optimizer: Optimizer) -> None:
        for step in STEPS:
            optimizer.zero_grad()
            model(floats(2, 5, 4)(step)).backward()
            optimizer.step()

    build = partial(Lstm, "output hidden cell")
    twin, model = made(build), made(build)
    notes, run = notes_of(twin), watch(model, probes={"part": [peak, gradient_peak]})
    train_alike(sequences, twin, model)
    peaks = [float(np.abs(y).max()) for y in notes.values("output")]
    same_column(run, "part", "peak", peaks)
    gradients = [float(np.abs(g).max()) for g in notes.gradients_of("output")]
    same_column(run, "part", "gradient_peak", gradients)
