"""Gradients of inputs: the module's own share, wherever else its input goes."""

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

from tests.models import ConvNet, Encoder, Residual, floats, loss_of, made, mlp, sgd, words
from tests.probes.calls.models import Recurrent
from tests.probes.oracles import (
    Noted,
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


# ---------------------------------------------------------------- the module's own share


class Skipped(Noted):
    """The input of the part goes past it as well."""

    def __init__(self, noted: bool) -> None:
        super().__init__()
        self.stem, self.part = nn.Linear(4, 4), nn.Linear(4, 4)
        self._noted = noted

    def forward(self, x: Tensor) -> Tensor:
        hidden = self.stem(x).tanh()
        given = self.note("input", hidden * 1) if self._noted else hidden  # the share, cut off
        return self.part(given).sin() + 10 * hidden


def test_of_an_input_that_also_goes_past_the_module_only_its_share_is_measured(
    watch: Watch,
) -> None:
    oracle, plain, model = made(partial(Skipped, True)), made(partial(Skipped, False)), None
    model = made(partial(Skipped, False))
    notes, run = notes_of(oracle), watch(model, probes={"part": [grad_input_size]})
    train_alike(loop, plain, model)
    loop(oracle, sgd(oracle))
    same_column(run, "part", SIZE, [norm(g) for g in notes.gradients_of("input")], rtol=1e-4)


class Wide(nn.Module):
    """A module with many inputs, of which some need no gradient and one comes twice."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(4, 4)

    def forward(self, a: Tensor, pair: tuple[Tensor, Tensor], *, c: Tensor, d: Tensor) -> Tensor:
        first, second = pair
        return self.linear(a).sin() * first + second.exp() * c + d


class Several(Noted):
    def __init__(self, noted: bool) -> None:
        super().__init__()
        self.stem, self.part, self._noted = nn.Linear(4, 4), Wide(), noted

    def forward(self, x: Tensor) -> Tensor:
        hidden = self.stem(x)
        a, b, c = hidden.tanh(), hidden.sin(), hidden.cos()
        if self._noted:
            own = [self.note("input", tensor * 1) for tensor in (a, b, c)]
            return self.part(own[0], (own[1], own[0]), c=own[2], d=x) + a + b + c
        return self.part(a, (b, a), c=c, d=x) + a + b + c


def test_all_inputs_are_pooled_each_tensor_once(watch: Watch) -> None:
    oracle, plain, model = (made(partial(Several, noted)) for noted in (True, False, False))
    notes, run = notes_of(oracle), watch(model, probes={"part": [grad_input_size]})
    train_alike(loop, plain, model)
    loop(oracle, sgd(oracle))
    kept = notes.gradients_of("input")
    pooled = [np.concatenate(kept[3 * step : 3 * step + 3]) for step in STEPS]
    same_column(run, "part", SIZE, [norm(g) for g in pooled], rtol=1e-4)


def test_query_key_and_value_of_one_tensor_are_one_input(watch: Watch) -> None:
    """Full backward hooks hand out three aliases, which changes the bits of the training."""

    class Attends(Noted):
        def __init__(self, noted: bool) -> None:
            super().__init__()
            self.stem, self.part = nn.Linear(4, 4), nn.MultiheadAttention(4, 2, batch_first=True)
            self._noted = noted

        def forward(self, x: Tensor) -> Tensor:
            hidden = self.stem(x)
            own = self.note("input", hidden * 1) if self._noted else hidden
            return self.part(own, own, own)[0] + hidden

    def train(model: nn.Module, optimizer: Optimizer) -> None:
        for step in STEPS:
            optimizer.zero_grad()
            model(floats(2, 5, 4)(step)).square().mean().backward()
            optimizer.step()

    oracle, plain, model = (made(partial(Attends, noted)) for noted in (True, False, False))
    notes, run = notes_of(oracle), watch(model, probes={"part": [grad_input_size]})
    train_alike(train, plain, model)
    train(oracle, sgd(oracle))
    same_column(run, "part", SIZE, [norm(g) for g in notes.gradients_of("input")], rtol=1e-4)


@pytest.mark.parametrize("is_first", [True, False])
def test_inputs_that_come_of_each_other_have_their_own_shares(is_first: bool, watch: Watch) -> None:
    """What one of them sends to the other was made before the call, and is no part of it."""

    class Fed(Noted):
        class Part(nn.Module):
            def forward(self, one: Tensor, other: Tensor) -> Tensor:
                return one.sin() * other.exp()

        def __init__(self, noted: bool) -> None:
            super().__init__()
            self.stem, self.part, self._noted = nn.Linear(4, 4), Fed.Part(), noted

        def forward(self, x: Tensor) -> Tensor:
            hidden = self.stem(x)
            given = [hidden, hidden.tanh()]
            if self._noted:
                given = [self.note("input", tensor * 1) for tensor in given]
            return self.part(*given) if is_first else self.part(*reversed(given))

    oracle, plain, model = (made(partial(Fed, noted)) for noted in (True, False, False))
    notes, run = notes_of(oracle), watch(model, probes={"part": [grad_input_size]})
    train_alike(loop, plain, model)
    loop(oracle, sgd(oracle))
    kept = notes.gradients_of("input")
    pooled = [norm(np.concatenate(kept[2 * step : 2 * step + 2])) for step in STEPS]
    same_column(run, "part", SIZE, pooled, rtol=1e-4)


def largest(grad_input: Tensor) -> Tensor:
    return grad_input.abs().amax()


def test_a_quantity_may_ask_for_the_tensor_itself(watch: Watch) -> None:
    oracle, plain, model = (made(partial(Skipped, noted)) for noted in (True, False, False))
    notes, run = notes_of(oracle), watch(model, probes={"part": [largest]})
    train_alike(loop, plain, model)
    loop(oracle, sgd(oracle))
    peaks = [float(np.abs(g).max()) for g in notes.gradients_of("input")]
    same_column(run, "part", "largest", peaks, rtol=1e-4)


def test_the_share_of_an_input_needs_no_graph_to_be_kept(watch: Watch) -> None:
    """A second backward over the same graph is pooled with the first."""

    def twice(model: nn.Module, optimizer: Optimizer) -> None:
        for step in STEPS:
            optimizer.zero_grad()
            loss = model(batch(step)).square().mean()
            loss.backward(retain_graph=True)
            (3 * loss).backward()
            optimizer.step()

    oracle, plain, model = (made(partial(Skipped, noted)) for noted in (True, False, False))
    notes, run = notes_of(oracle), watch(model, probes={"part": [grad_input_size]})
    train_alike(twice, plain, model)
    twice(oracle, sgd(oracle))
    arrived = [norm(total) / 4 * math.sqrt(10) for total in notes.gradients_of("input")]
    same_column(run, "part", SIZE, arrived, rtol=1e-4)


# ---------------------------------------------------------------- in place


class InPlace(Noted):
    """Parts that overwrite what they are given."""

    def __init__(self, op: str, inplace: bool) -> None:
        super().__init__()
        self.stem, self.last, self._noted = nn.Linear(4, 6), nn.Linear(6, 2), not inplace
        parts: dict[str, Callable[[], nn.Module]] = {
            "relu": lambda: nn.ReLU(inplace),
            "leaky": lambda: nn.LeakyReLU(0.1, inplace),
            "dropout": lambda: nn.Dropout(0.0, inplace),
            "hardtanh": lambda: nn.Hardtanh(inplace=inplace),
            "own": lambda: Doubles(inplace),
        }
        self.part = parts[op]()

    def forward(self, x: Tensor) -> Tensor:
        hidden = self.note("input", self.stem(x))
        return self.last(self.note("output", self.part(hidden)))


class Doubles(nn.Module):
    def __init__(self, inplace: bool) -> None:
        super().__init__()
        self._inplace = inplace

    def forward(self, x: Tensor) -> Tensor:
        return x.mul_(2).sin() if self._inplace else (x * 2).sin()


@pytest.mark.parametrize("op", ["relu", "leaky", "dropout", "hardtanh", "own"])
def test_a_module_that_overwrites_its_input_has_a_record_every_step(op: str, watch: Watch) -> None:
    oracle, plain, model = (made(partial(InPlace, op, how)) for how in (False, True, True))
    notes = notes_of(oracle)
    run = watch(model, probes={"part": [grad_input_size, "output_grad_norm"]})
    train_alike(loop, plain, model)
    loop(oracle, sgd(oracle))
    same_column(run, "part", SIZE, [norm(g) for g in notes.gradients_of("input")], rtol=1e-4)
    gradients = notes.gradients_of("output")
    same_column(run, "part", "output_grad_norm", [norm(g) for g in gradients], rtol=1e-4)
    assert not run.status().errors


VIEWS: dict[str, Callable[[Tensor], Tensor]] = {
    "flatten": lambda h: h.flatten(1),
    "transpose": lambda h: h.transpose(0, 1),
    "slice": lambda h: h[1:4],
    "transposed slice": lambda h: h[1:, :, ::2].transpose(0, 1),
    "overlapping": lambda h: h.flatten(1).unfold(1, 2, 1)[:, ::2],
    "one item": lambda h: h[2],
}


@pytest.mark.parametrize("changed", [True, False])
@pytest.mark.parametrize("view", VIEWS)
def test_a_module_whose_output_is_a_view_that_may_be_changed_later(
    view: str, changed: bool, watch: Watch
) -> None:
    class Viewed(Noted):
        class Part(nn.Module):
            def forward(self, hidden: Tensor) -> Tensor:
                return VIEWS[view](hidden)

        def __init__(self, in_place: bool) -> None:
            super().__init__()
            self.linear, self.part, self._in_place = nn.Linear(4, 6), Viewed.Part(), in_place

        def forward(self, x: Tensor) -> Tensor:
            hidden = (self.linear(x).tanh() * 1).reshape(5, 2, 3)
            output = self.part(self.note("input", hidden))
            return output.mul_(3) if self._in_place else output * 3

    oracle, plain, model = (made(partial(Viewed, how)) for how in (False, changed, changed))
    notes, run = notes_of(oracle), watch(model, probes={"part": [grad_input_size]})
    train_alike(loop, plain, model)
    loop(oracle, sgd(oracle))
    same_column(run, "part", SIZE, [norm(g) for g in notes.gradients_of("input")], rtol=1e-4)


@pytest.mark.parametrize("changed", [True, False])
def test_a_module_that_returns_its_input_in_pieces_is_right_or_has_a_gap(
    changed: bool, watch: Watch
) -> None:
    class Pieces(nn.Module):
        def forward(self, hidden: Tensor) -> tuple[Tensor, Tensor]:
            return hidden[:2], hidden.sum()

    class Cut(Noted):
        def __init__(self, in_place: bool) -> None:
            super().__init__()
            self.linear, self.part, self._in_place = nn.Linear(4, 6), Pieces(), in_place

        def forward(self, x: Tensor) -> Tensor:
            first, total = self.part(self.note("input", self.linear(x).tanh() * 1))
            return (first.mul_(3) if self._in_place else first * 3) + total

    oracle, plain, model = (made(partial(Cut, how)) for how in (False, changed, changed))
    notes, run = notes_of(oracle), watch(model, probes={"part": [grad_input_size]})
    train_alike(loop, plain, model)
    loop(oracle, sgd(oracle))
    wanted = [math.nan if changed else norm(g) for g in notes.gradients_of("input")]
    same_column(run, "part", SIZE, wanted, rtol=1e-4)


# ---------------------------------------------------------------- against full backward hooks


PLAIN: dict[str, tuple[Callable[[], nn.Module], Callable[[int], Tensor]]] = {
    "mlp": (mlp, batch),
    "convolution": (lambda: ConvNet(inplace=False), floats(4, 1, 6, 6)),
    "transformer": (lambda: Encoder(dropout=0.0), words),
    "gru": (Recurrent, floats(2, 5, 4)),
    "residual": (Residual, batch),
}


@pytest.mark.filterwarnings("ignore:Full backward hook is firing when gradients are computed")
@pytest.mark.parametrize("kind", PLAIN)
def test_values_are_those_of_full_backward_hooks_where_these_work(kind: str, watch: Watch) -> None:
    build, batches = PLAIN[kind]
    hooked, plain, model = made(build), made(build), made(build)
    arrived: dict[str, list[Tensor]] = {}

    def keep(path: str) -> Callable[..., None]:
        def hook(module: nn.Module, grad_input: Any, grad_output: Any) -> None:
            there = [g.double() for g in grad_input if g is not None]
            if isinstance(module, nn.MultiheadAttention):
                there = [sum(there[1:], there[0])]  # aliases of one tensor
            if there:
                arrived.setdefault(path, []).append(torch.cat([g.flatten() for g in there]))

        return hook

    for path, module in hooked.named_modules():
        if path:
            module.register_full_backward_hook(keep(path))

    def train(model: nn.Module, optimizer: Optimizer) -> None:
        for step in STEPS:
            optimizer.zero_grad()
            loss_of(model(batches(step))).backward()
            optimizer.step()

    run = watch(model, probes={"*": [grad_input_size]})
    train_alike(train, plain, model)
    train(hooked, sgd(hooked))
    for path, module in model.named_modules():
        if not path:
            continue
        kept = arrived.get(path, [])
        n = len(kept) // len(STEPS)
        wanted = [norm_of(*kept[n * i : n * (i + 1)]) if n else math.nan for i in STEPS]
        if path in run.data.module.values and not isinstance(module, nn.ModuleList):
            same_column(run, path, SIZE, wanted, rtol=1e-4)
    assert len(arrived) >= 1
