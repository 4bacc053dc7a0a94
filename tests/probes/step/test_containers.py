"""Whatever modules take and return: containers, keywords, packed sequences, no tensor at all."""

from __future__ import annotations

from collections import OrderedDict, UserDict, deque, namedtuple
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import PackedSequence, pack_padded_sequence
from torch.optim import Optimizer

from tests.models import Prediction, floats, made
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
STEPS = range(2)
loop = plain_loop(batch, STEPS)


Pair = namedtuple("Pair", "first second")


@dataclass
class Unset:
    """One of its fields never gets a value."""

    logits: Tensor
    hidden: Tensor
    attentions: Tensor = field(init=False)


@dataclass
class ModelOutput(OrderedDict[str, Any]):
    """A dict and a dataclass at once, as language models return."""

    logits: Any = None
    hidden: Any = None
    cache: Any = None

    def __post_init__(self) -> None:
        for name in ("logits", "hidden"):
            self[name] = getattr(self, name)


def knotted(a: Tensor, b: Tensor) -> list[Any]:
    made_of: list[Any] = [a, b]
    made_of.append(made_of)
    return made_of


WRAPS: dict[str, Callable[[Tensor, Tensor], Any]] = {
    "tuple": lambda a, b: (a, b),
    "list": lambda a, b: [a, b],
    "deque": lambda a, b: deque([a, b]),
    "dict": lambda a, b: {"a": a, "b": b, "none": None},
    "mapping": lambda a, b: UserDict({"a": a, "b": b}),
    "namedtuple": Pair,
    "dataclass": lambda a, b: Prediction(a, (b,)),
    "dataclass with an unset field": Unset,
    "dict and dataclass": ModelOutput,
    "nested": lambda a, b: {"deep": [(a, {"deeper": (None, b)}), "text", 3]},
    "the same tensor twice": lambda a, b: (a, b, {"again": a}),
    "a list inside itself": knotted,
}


def tensors_in(value: Any) -> Iterator[Tensor]:
    """The two tensors again."""
    if isinstance(value, Tensor):
        yield value
        return
    if isinstance(value, dict | UserDict):
        parts = list(value.values())
    elif isinstance(value, Prediction | Unset):
        parts = [part for part in vars(value).values() if not isinstance(part, str)]
    else:
        parts = [part for part in value if part is not value] if not isinstance(value, str) else []
    for part in parts:
        if part is not None and not isinstance(part, str | int):
            yield from tensors_in(part)


class Gives(Noted):
    """Its first part returns two tensors in some container, its second takes them so."""

    class Part(nn.Module):
        def __init__(self, outer: Noted, wrap: Callable[[Tensor, Tensor], Any]) -> None:
            super().__init__()
            self.linear = nn.Linear(4, 3)
            self._outer, self._wrap = [outer], wrap

        def forward(self, x: Tensor) -> Any:
            (outer,), y = self._outer, self.linear(x)
            return self._wrap(outer.note("part", y.tanh()), outer.note("part", 2 * y))

    class Taker(nn.Module):
        def forward(self, value: Any) -> Tensor:
            first, second, *_ = dict.fromkeys(tensors_in(value))
            return first * 3 + second.square()

    def __init__(self, wrap: Callable[[Tensor, Tensor], Any]) -> None:
        super().__init__()
        self.part, self.taker = Gives.Part(self, wrap), Gives.Taker()

    def forward(self, x: Tensor) -> Tensor:
        return self.taker(self.part(x))


@pytest.mark.parametrize("kind", WRAPS)
def test_every_tensor_in_a_container_counts_once_as_do_their_gradients(
    kind: str, watch: Watch
) -> None:
    twin, model = made(partial(Gives, WRAPS[kind])), made(partial(Gives, WRAPS[kind]))
    notes = notes_of(twin)
    run = watch(model, probes={"part": ["output_norm", "output_std", "output_grad_norm"]})
    run.attach("taker", ["input_norm", "input_mean"])
    train_alike(loop, twin, model)
    values, gradients = notes.values("part"), notes.gradients_of("part")
    both = [np.concatenate(values[2 * step : 2 * step + 2]) for step in STEPS]
    arrived = [np.concatenate(gradients[2 * step : 2 * step + 2]) for step in STEPS]
    same_column(run, "part", "output_norm", [norm(y) for y in both])
    same_column(run, "part", "output_std", [float(y.std(ddof=1)) for y in both])
    same_column(run, "part", "output_grad_norm", [norm(g) for g in arrived])
    same_column(run, "taker", "input_norm", [norm(y) for y in both])
    same_column(run, "taker", "input_mean", [float(y.mean()) for y in both])
    assert not run.status().errors


class Opaque(SimpleNamespace):
    """A container nobody knows, like a graph's data object."""


def test_an_unknown_container_is_a_gap_and_what_is_inside_the_module_is_measured(
    watch: Watch,
) -> None:
    class Hides(Noted):
        class Part(nn.Module):
            def __init__(self, outer: Noted) -> None:
                super().__init__()
                self.linear, self._outer = nn.Linear(4, 3), [outer]

            def forward(self, hidden: Opaque) -> Opaque:
                return Opaque(x=self._outer[0].note("output", self.linear(hidden.x)))

        def __init__(self) -> None:
            super().__init__()
            self.part = Hides.Part(self)

        def forward(self, x: Tensor) -> Tensor:
            return self.part(Opaque(x=x)).x

    twin, model = made(Hides), made(Hides)
    notes = notes_of(twin)
    quantities = ["input_norm", "output_norm", "output_grad_norm"]
    run = watch(model, probes={("part", "part.linear"): quantities})
    train_alike(loop, twin, model)
    run.controls.settle()
    for quantity in quantities:
        assert np.isnan(column(run, "part", quantity)).all()
    same_column(run, "part.linear", "output_norm", [norm(y) for y in notes.values("output")])
    gradients = notes.gradients_of("output")
    same_column(run, "part.linear", "output_grad_norm", [norm(g) for g in gradients])
    assert not run.status().errors
    notes_told = {p.quantity: p.note for p in run.probes() if p.module == "part"}
    for quantity in quantities:
        assert "Opaque" in notes_told[quantity], "which container was not understood"


def test_keywords_are_inputs_and_what_is_no_tensor_is_left_out(watch: Watch) -> None:
    class Named(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.linear = nn.Linear(4, 3)

        def forward(self, *, left: Tensor, parts: dict[str, Tensor], mode: str = "sum") -> Tensor:
            return self.linear(left + parts["right"])

    class Talks(nn.Module):
        def forward(self, text: str = "quiet") -> str:
            return text.upper()

    class Counts(nn.Module):
        def forward(self, x: Tensor) -> int:
            return len(x)

    class Outer(Noted):
        def __init__(self) -> None:
            super().__init__()
            self.named, self.talks, self.counts = Named(), Talks(), Counts()

        def forward(self, x: Tensor) -> Tensor:
            assert self.talks() == "QUIET"
            assert self.talks("a") == self.talks(text="a") == "A"
            size = self.counts(x)
            return self.named(left=x, parts={"right": size * x, "same": x}, mode="sum")

    twin, model = made(Outer), made(Outer)
    run = watch(model, probes={"*": ["input_norm", "output_norm", "output_grad_norm"]})
    train_alike(loop, twin, model)
    same_column(run, "named", "input_norm", [norm_of(batch(i), 5 * batch(i)) for i in STEPS])
    same_column(run, "counts", "input_norm", [norm_of(batch(i)) for i in STEPS])
    for place, quantity in (
        ("talks", "input_norm"),
        ("talks", "output_norm"),
        ("counts", "output_norm"),
    ):
        assert np.isnan(column(run, place, quantity)).all()
    assert not run.status().errors


def test_of_a_packed_sequence_the_data_counts_and_the_bookkeeping_does_not(watch: Watch) -> None:
    class Packed(Noted):
        def __init__(self) -> None:
            super().__init__()
            self.lstm = nn.LSTM(4, 3)

        def forward(self, x: Tensor) -> Tensor:
            packed = pack_padded_sequence(x, torch.tensor([2, 4, 5]), enforce_sorted=False)
            self.note("input", packed.data)
            output, (hidden, cell) = self.lstm(packed)
            assert isinstance(output, PackedSequence)
            self.note("output", output.data)
            self.note("state", torch.cat([hidden, cell]))
            return output.data.square() + hidden.sum() * cell.sum()

    def ragged(model: nn.Module, optimizer: Optimizer) -> None:
        for step in STEPS:
            optimizer.zero_grad()
            model(floats(5, 3, 4)(step)).sum().backward()
            optimizer.step()

    twin, model = made(Packed), made(Packed)
    notes = notes_of(twin)
    run = watch(model, probes={"lstm": ["input_norm", "input_mean", "output_norm"]})
    train_alike(ragged, twin, model)
    inputs = notes.values("input")
    both = zip(notes.values("output"), notes.values("state"), strict=True)
    states = [norm(np.concatenate(pair)) for pair in both]
    same_column(run, "lstm", "input_norm", [norm(x) for x in inputs])
    same_column(run, "lstm", "input_mean", [float(x.mean()) for x in inputs])
    same_column(run, "lstm", "output_norm", states)
