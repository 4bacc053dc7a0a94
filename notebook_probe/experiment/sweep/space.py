"""Distributions of values, as frozen values."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

__all__ = [
    "Choice",
    "Distribution",
    "Integers",
    "LogUniform",
    "Uniform",
    "choice",
    "drawn_from",
    "integers",
    "log_uniform",
    "uniform",
    "values_of",
]


class Distribution(Protocol):
    """Distribution of a value."""

    def sample(self, generator: np.random.Generator) -> Any: ...


@dataclass(frozen=True, slots=True)
class Uniform:
    """Every number from ``low`` to ``high`` is as likely."""

    low: float
    high: float

    def sample(self, generator: np.random.Generator) -> float:
        return float(generator.uniform(self.low, self.high))


@dataclass(frozen=True, slots=True)
class LogUniform:
    """Every ratio is as likely: as many values from 1e-4 to 1e-3 as from 1e-3 to 1e-2."""

    low: float
    high: float

    def sample(self, generator: np.random.Generator) -> float:
        drawn = math.exp(generator.uniform(math.log(self.low), math.log(self.high)))
        # exp(log(low)) may be a last digit below `low`.
        return min(max(drawn, self.low), self.high)


@dataclass(frozen=True, slots=True)
class Integers:
    """Every whole number from ``low`` to ``high`` is as likely, both ends among them."""

    low: int
    high: int

    def sample(self, generator: np.random.Generator) -> int:
        return int(generator.integers(self.low, self.high, endpoint=True))


@dataclass(frozen=True, slots=True)
class Choice:
    """Every one of some values is as likely."""

    values: tuple[Any, ...]

    def sample(self, generator: np.random.Generator) -> Any:
        return self.values[int(generator.integers(len(self.values)))]


def uniform(low: float, high: float) -> Uniform:
    """Draw a number between two, any as likely.

    Raises
    ------
    ValueError
        They are not finite, or not in order.

    Examples
    --------
    >>> uniform(0.0, 0.5)
    Uniform(low=0.0, high=0.5)
    """
    _check(low, high)
    return Uniform(float(low), float(high))


def log_uniform(low: float, high: float) -> LogUniform:
    """Draw a number between two above zero, any ratio as likely; for learning rates.

    Raises
    ------
    ValueError
        They are not finite, not in order, or not above zero.

    Examples
    --------
    >>> log_uniform(1e-4, 1e-1).sample(np.random.default_rng(0)) < 1e-1
    True
    """
    _check(low, high)
    if low <= 0:
        raise ValueError(f"log_uniform({low!r}, {high!r}): both must be above zero")
    return LogUniform(float(low), float(high))


def integers(low: int, high: int) -> Integers:
    """Draw a whole number, both ends among them.

    Raises
    ------
    ValueError
        They are not whole, or not in order.
    """
    _check(low, high)
    if int(low) != low or int(high) != high:
        raise ValueError(f"integers({low!r}, {high!r}): both must be whole")
    return Integers(int(low), int(high))


def choice(*values: Any) -> Choice:
    """Draw one of these values; a list of values means the same.

    Raises
    ------
    ValueError
        There are none.
    """
    if not values:
        raise ValueError("choice() needs values to choose from")
    return Choice(values)


def drawn_from(given: Sequence[Any] | Distribution, path: str) -> Distribution:
    """Return the distribution of a space's value.

    Raises
    ------
    TypeError, ValueError
        The value is neither a list of values nor a distribution.
    """
    if hasattr(given, "sample"):
        return given
    return Choice(values_of(given, path))


def values_of(given: Any, path: str) -> tuple[Any, ...]:
    """All values of a list, a tuple or a choice.

    Raises
    ------
    TypeError
        They cannot be counted.
    ValueError
        There are none.
    """
    if isinstance(given, Choice):
        return given.values
    if isinstance(given, str | bytes | dict) or hasattr(given, "sample"):
        raise TypeError(f"{path}: a grid needs a list of values, not {given!r}")
    try:
        found = tuple(given)
    except TypeError:
        raise TypeError(f"{path}: a list of values is needed, not {given!r}") from None
    if not found:
        raise ValueError(f"{path}: there are no values in {given!r}")
    return found


def _check(low: float, high: float) -> None:
    if not (math.isfinite(low) and math.isfinite(high) and low < high):
        raise ValueError(f"two finite numbers, the smaller first, not {low!r} and {high!r}")
