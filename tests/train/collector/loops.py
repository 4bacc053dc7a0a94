"""Models that name numbers, and bare loops that train them."""

from __future__ import annotations

from collections.abc import Iterable

import torch
from torch import Tensor, nn
from torch.optim import SGD, Optimizer

from notebook_probe import DataCollector, StepFunction

__all__ = ["Telling", "collected", "given", "sgd", "train"]


class Telling(nn.Module):
    """Tells each of its collectors the sum of its input, times the collector's own factor."""

    def __init__(self, *collectors: DataCollector) -> None:
        super().__init__()
        self.body = nn.Linear(2, 1)
        self.collectors = collectors

    def forward(self, x: Tensor) -> Tensor:
        for factor, collector in enumerate(self.collectors, 1):
            collector.collect(factor * x.sum(), "input")
        return self.body(x)


def given(value: float) -> Tensor:
    """A batch whose sum is ``value``, exactly."""
    return torch.tensor([[value, 0.0]])


def sgd(model: nn.Module) -> Optimizer:
    return SGD(model.parameters(), lr=0.125)


def train(model: nn.Module, optimizer: Optimizer, values: Iterable[float]) -> None:
    """A step for each value."""
    for value in values:
        optimizer.zero_grad()
        model(given(value)).sum().backward()
        optimizer.step()


def collected(collector: DataCollector, values: Iterable[float]) -> list[float]:
    """What a collector keeps of values that come one a step."""

    @StepFunction
    def step(value: float) -> None:
        collector.collect(value, "values")

    with collector.attach_to_executor(step):
        for value in values:
            step(value)
    return collector.get_series_values("values")
