"""What modules take and return: containers, keywords, views."""

from __future__ import annotations

import math
from collections import namedtuple
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence

from tests.models import Prediction, floats, made, sgd, train_step, words
from tests.run.conftest import Watch
from tests.run.oracle import norm_of

batch = floats(5, 4)


Pair = namedtuple("Pair", "first second")


RETURNS: dict[str, Callable[[Tensor], Any]] = {
    "tuple": lambda x: (x, 2 * x),
    "list": lambda x: [x, 2 * x],
    "dict": lambda x: {"a": x, "b": 2 * x, "none": None},
    "namedtuple": lambda x: Pair(x, 2 * x),
    "dataclass": lambda x: Prediction(x, (2 * x,)),
    "nested": lambda x: {"deep": [(x, {"deeper": 2 * x})], "text": "ignored"},
    "the same tensor twice": lambda x: (x, 2 * x, x),
}


@pytest.mark.parametrize("kind", RETURNS)
def test_every_tensor_in_what_a_module_returns_counts_once(kind: str, watch: Watch) -> None:
    class Returns(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.linear = nn.Linear(4, 3)

        def forward(self, x: Tensor) -> Any:
            return RETURNS[kind](self.linear(x))

    class Outer(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.part = Returns()

        def forward(self, x: Tensor) -> Tensor:
            self.part(x)
            return self.part.linear.weight.sum()

    model = made(Outer)
    run = watch(model, probes={"part": ["output_norm"]})
    with torch.no_grad():
        y = nn.functional.linear(batch(0), model.part.linear.weight, model.part.linear.bias)
    train_step(model, sgd(model), batch(0))
    assert float(run.series("part", "output_norm")[0]) == pytest.approx(norm_of(y, 2 * y), rel=1e-6)


def test_keyword_inputs_count_and_text_does_not(watch: Watch) -> None:
    class Named(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.linear = nn.Linear(4, 3)

        def forward(self, *, left: Tensor, right: Tensor, mode: str = "sum") -> Tensor:
            return self.linear(left + right)

    class Outer(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.named = Named()

        def forward(self, x: Tensor) -> Tensor:
            return self.named(left=x, right=2 * x, mode="sum")

    model = made(Outer)
    run = watch(model, probes={"named": ["input_norm"]})
    train_step(model, sgd(model), batch(0))
    wanted = norm_of(batch(0), 2 * batch(0))
    assert float(run.series("named", "input_norm")[0]) == pytest.approx(wanted, rel=1e-6)


def test_a_module_without_tensors_is_a_gap(watch: Watch) -> None:
    class Talks(nn.Module):
        def forward(self, text: str) -> str:
            return text.upper()

    class Outer(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.talks, self.linear = Talks(), nn.Linear(4, 2)

        def forward(self, x: Tensor) -> Tensor:
            self.talks("quiet")
            return self.linear(x)

    model = made(Outer)
    run = watch(model, probes={"*": ["input_norm", "output_norm"]})
    train_step(model, sgd(model), batch(0))
    assert math.isnan(run.data.output_norm.sel(module="talks")[0])
    assert not run.status().errors


def test_a_packed_sequence_is_measured(watch: Watch) -> None:
    class Packed(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.lstm = nn.LSTM(4, 3)

        def forward(self, x: Tensor) -> Tensor:
            packed = pack_padded_sequence(x, torch.tensor([5, 3]))
            output, _ = self.lstm(packed)
            return output.data

    model = made(Packed)
    run = watch(model, probes={"lstm": ["input_norm", "output_grad_norm"]})
    train_step(model, sgd(model), floats(5, 2, 4)(0))
    assert not run.status().errors
    assert float(run.series("lstm", "output_grad_norm")[0]) > 0


def test_integer_inputs_are_measured(watch: Watch) -> None:
    model = nn.Sequential(nn.Embedding(7, 4))
    run = watch(model, probes={"0": ["input_norm", "input_mean"]})
    train_step(model, sgd(model), words(0))
    wanted = words(0).double().numpy()
    assert float(run.series("0", "input_mean")[0]) == pytest.approx(wanted.mean(), rel=1e-6)


@pytest.mark.parametrize("view", ["flatten", "transpose", "chunk"])
def test_a_view_that_is_changed_in_place_keeps_its_gradient(view: str, watch: Watch) -> None:
    class Views(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return {
                "flatten": lambda: x.flatten(1),
                "transpose": lambda: x.transpose(0, 1),
                "chunk": lambda: x.chunk(2, 1)[0],
            }[view]()

    class Outer(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.linear, self.view = nn.Linear(4, 6), Views()

        def forward(self, x: Tensor) -> Tensor:
            y = self.view(self.linear(x) * 1)
            if view != "chunk":  # an in-place change of a multi-view raises in torch itself
                y.mul_(3)
            return y

    model, plain = made(Outer), made(Outer)
    run = watch(model)
    run.attach("view", "output_norm")
    for each in (model, plain):
        train_step(each, sgd(each), batch(0))
    assert all(
        torch.equal(a, b) for a, b in zip(model.parameters(), plain.parameters(), strict=True)
    )
    assert not run.status().errors
