"""Indices, positions and masks among what a module takes and returns: they are no activations."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from tests.models import floats, made, sgd
from tests.probes.oracles import column, norm_of
from tests.run.conftest import Watch

batch = floats(6, 4)


class Part(nn.Module):
    """Returns what a function makes of its values."""

    def __init__(self, returns: Callable[[Tensor], Any]) -> None:
        super().__init__()
        self.linear, self.returns = nn.Linear(4, 8), returns

    def forward(self, x: Tensor, *_: Any, **__: Any) -> Any:
        return self.returns(self.linear(x))


class Whole(nn.Module):
    def __init__(self, returns: Callable[[Tensor], Any], *given: Tensor) -> None:
        super().__init__()
        self.part, self.last, self.given = Part(returns), nn.Linear(8, 1), given

    def forward(self, x: Tensor) -> Tensor:
        found = self.part(x, *self.given, mask=torch.ones(6, dtype=torch.bool))
        values = found["values"] if isinstance(found, dict) else found[0]
        return self.last(values)


RETURNS: dict[str, Callable[[Tensor], Any]] = {
    "indices of a router": lambda y: (y, y.topk(2, -1).indices + 1000),
    "positions": lambda y: {"values": y, "positions": torch.arange(6) + 1000},
    "a mask": lambda y: (y, y > 0),
    "all of a top-k": lambda y: (y, y.topk(3, -1)),
}


@pytest.mark.parametrize("kind", RETURNS)
def test_integers_beside_floats_are_no_part_of_an_output(kind: str, watch: Watch) -> None:
    sizes: list[float] = []

    def returns(y: Tensor) -> Any:
        found = RETURNS[kind](y)
        floating = [y, y.topk(3, -1).values] if kind == "all of a top-k" else [y]
        sizes.append(norm_of(*floating))
        return found

    model = made(lambda: Whole(returns))
    run, optimizer = watch(model, probes={"part": ["output_norm"]}), sgd(model)
    for step in range(3):
        optimizer.zero_grad()
        model(batch(step)).square().mean().backward()
        optimizer.step()
    assert column(run, "part", "output_norm") == pytest.approx(sizes, rel=1e-5)


def test_integers_beside_floats_are_no_part_of_an_input(watch: Watch) -> None:
    """As position ids and a mask that a layer is given beside its hidden values."""
    model = made(lambda: Whole(lambda y: (y,), torch.arange(6) + 1000))
    run, optimizer = watch(model, probes={"part": ["input_norm"]}), sgd(model)
    for step in range(3):
        optimizer.zero_grad()
        model(batch(step)).square().mean().backward()
        optimizer.step()
    wanted = [norm_of(batch(step)) for step in range(3)]
    assert column(run, "part", "input_norm") == pytest.approx(wanted, rel=1e-5)


def test_integers_alone_are_measured(watch: Watch) -> None:
    """Tokens are all that an embedding is given."""
    model = nn.Sequential(nn.Embedding(9, 4), nn.Linear(4, 1))
    run, optimizer = watch(model, probes={"0": ["input_mean"]}), sgd(model)
    tokens = torch.tensor([1, 2, 6])
    optimizer.zero_grad()
    model(tokens).square().mean().backward()
    optimizer.step()
    assert column(run, "0", "input_mean") == [3.0]
