"""Averages of losses, on the device where these are; on the host in float64."""

from __future__ import annotations

from typing import TypeAlias

import torch
from torch import Tensor

__all__ = ["LEAST_WEIGHT", "Mean", "MovingAverage", "Value", "on_host"]

Value: TypeAlias = "float | Tensor"
"""A number; a tensor of one element if it is on an accelerator."""

LEAST_WEIGHT = 0.01
"""Weight of a new value in a moving average of a hundred or more."""


def on_host(value: Tensor) -> Value:
    """Return the number if this does not wait for the device."""
    value = value.detach()
    return value.item() if value.device.type == "cpu" else value


class MovingAverage:
    """m ← m·(1 − w) + v·w with w = max(0.01, 1/count): a plain mean at first, exponential after.

    Examples
    --------
    >>> average = MovingAverage()
    >>> [average.add(value) for value in (1.0, 3.0, 2.0)]
    [1.0, 2.0, 2.0]
    """

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        """Forget everything."""
        self._n = 0
        self._average: Value = 0.0

    def add(self, value: Value) -> Value:
        """Add a value; return the new average."""
        self._n += 1
        weight = max(LEAST_WEIGHT, 1 / self._n)
        wide = _wide(value)
        self._average = wide if self._n == 1 else self._average * (1 - weight) + wide * weight
        return self._average

    def state_dict(self) -> dict[str, float | int]:
        """Return the state as plain numbers."""
        return {"n": self._n, "average": float(self._average)}

    def load_state_dict(self, state: dict[str, float | int]) -> None:
        """Continue from `state_dict`."""
        self._n, self._average = int(state["n"]), float(state["average"])


class Mean:
    """Σ weight·value / Σ weight.

    Examples
    --------
    >>> mean = Mean()
    >>> mean.add(1.0, weight=3)
    >>> mean.add(5.0, weight=1)
    >>> mean.value()
    2.0
    """

    def __init__(self) -> None:
        self._sum: Value = 0.0
        self._weight = 0

    def add(self, value: Value, weight: int) -> None:
        """Add a value."""
        self._sum = self._sum + _wide(value) * weight
        self._weight += weight

    def state_dict(self) -> dict[str, float | int]:
        """Return the state as plain numbers."""
        return {"sum": float(self._sum), "weight": self._weight}

    def load_state_dict(self, state: dict[str, float | int]) -> None:
        """Continue from `state_dict`."""
        self._sum, self._weight = float(state["sum"]), int(state["weight"])

    def value(self) -> float:
        """Return the mean so far; waits for the device."""
        return float(self._sum) / self._weight if self._weight else float("nan")


def _wide(value: Value) -> Value:
    # Long sums of float32 lose digits; mps has no float64.
    if not isinstance(value, Tensor):
        return value
    return value if value.device.type == "mps" else value.to(torch.float64)
