"""A compiled model is run once more uncompiled: nothing recompiles, the numbers are the same."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from tests.models import floats, loss_of, made, mean_square, sgd
from tests.probes.parity import differing, everything
from tests.run.conftest import Watch

# What torch itself does when it compiles a part whose input has a history.
pytestmark = [
    pytest.mark.filterwarnings("ignore:.torch.jit.script_method. is deprecated"),
    pytest.mark.filterwarnings("ignore:The .grad attribute of a Tensor that is not a leaf"),
]

batch = floats(5, 4)
AGAIN = {"": [["sharpness", "every(2)"], ["hessian_trace", "every(2)"]], "norm": ["feature_drift"]}


class Counting:
    """A backend that compiles nothing, and counts how often it is asked to."""

    def __init__(self) -> None:
        self.n = 0

    def __call__(self, graph: Any, inputs: Any) -> Callable[..., Any]:
        self.n += 1
        forward: Callable[..., Any] = graph.forward
        return forward


class WithLayerNorm(nn.Module):
    """Without BatchNorm: a compiled step begins, for us, when its optimizer does."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.norm, self.last = nn.Linear(4, 6), nn.LayerNorm(6), nn.Linear(6, 2)

    def forward(self, x: Tensor) -> Tensor:
        found: Tensor = self.last(self.norm(self.first(x).tanh()))
        return found


def wrapped(model: nn.Module, backend: Counting) -> Any:
    return torch.compile(model, backend=backend)


def in_place(model: nn.Module, backend: Counting) -> Any:
    model.compile(backend=backend)
    return model


def a_part(model: Any, backend: Counting) -> Any:
    model.last = torch.compile(model.last, backend=backend)
    return model


def train(model: nn.Module, called: Any) -> None:
    optimizer = sgd(model)
    for step in range(4):
        optimizer.zero_grad()
        loss_of(called(batch(step))).backward()
        optimizer.step()


@pytest.mark.slow
@pytest.mark.parametrize("way", [wrapped, in_place, a_part])
def test_nothing_is_compiled_again_and_the_numbers_are_those_of_an_uncompiled_model(
    way: Callable[[nn.Module, Counting], Any], watch: Watch
) -> None:
    eager, alone, model = made(WithLayerNorm), made(WithLayerNorm), made(WithLayerNorm)
    plain = watch(eager, probes=AGAIN)
    plain.probe_batch(batch(9), None, mean_square)
    train(eager, eager)

    backend = Counting()
    train(alone, way(alone, backend))
    n_alone, backend.n = backend.n, 0
    torch._dynamo.reset()
    called = way(model, backend)
    run = watch(model, probes=AGAIN)
    run.probe_batch(batch(9), None, mean_square)
    train(model, called)

    assert backend.n == n_alone
    assert differing(everything(alone), everything(model)) == []
    for place, quantity in (("", "sharpness"), ("", "hessian_trace"), ("norm", "feature_drift")):
        expected = plain.series(place, quantity)
        np.testing.assert_array_equal(run.series(place, quantity), expected)
        assert expected.step.values.tolist() == ([0, 2] if place == "" else [0, 1, 2, 3])
