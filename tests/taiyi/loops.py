"""A loop as it was written for Taiyi, and what it was given to see."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from notebook_probe.taiyi import Monitor
from tests.models import floats

batch = floats(6, 4)


class Net(nn.Module):
    """Notes what its first layer is given and has as its weight."""

    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(OrderedDict(first=nn.Linear(4, 5), norm=nn.BatchNorm1d(5)))
        self.head = nn.Linear(5, 2)
        self.inputs: list[Any] = []
        self.weights: list[Any] = []

    @property
    def weight(self) -> Tensor:
        """Of the layer that is looked at most."""
        return self.body.get_parameter("first.weight")

    def forward(self, x: Tensor) -> Tensor:
        if self.training:
            self.inputs.append(x.detach().double().numpy())
            self.weights.append(self.weight.detach().double().numpy())
        return self.head(self.body(x))


def train(
    model: nn.Module,
    monitor: Monitor | None,
    numbers: Iterable[int],
    then: Callable[[int], Any] = lambda number: None,
) -> None:
    """A step of SGD for each number, tracked behind its backward."""
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for number in numbers:
        optimizer.zero_grad()
        model(batch(number)).square().mean().backward()
        if monitor is not None:
            monitor.track(number)
        then(number)
        optimizer.step()


def norms(tensors: Iterable[Any]) -> list[float]:
    return [float(np.linalg.norm(tensor)) for tensor in tensors]
