"""Retention of a series' points: all, every n-th, or fewer than n."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from notebook_probe.checks import is_whole

__all__ = ["EveryNth", "FewerThan", "KeepAll", "Policy", "in_words", "read_policy"]


class Policy(Protocol):
    """Retention of a series' values; equal policies keep the same ones."""

    @property
    def asked(self) -> dict[str, Any]:
        """Arguments from which `read_policy` makes the policy."""
        ...

    def takes(self, index: int, stride: int) -> bool:
        """Return whether to keep value number ``index``, with every ``stride``-th kept so far."""
        ...

    def is_over(self, n_kept: int) -> bool:
        """Return whether so many are kept that every second one goes, and the stride doubles."""
        ...


@dataclass(frozen=True, slots=True)
class KeepAll:
    """Every value, without a bound."""

    @property
    def asked(self) -> dict[str, Any]:
        return {"collect_all": ""}

    def takes(self, index: int, stride: int) -> bool:
        return True

    def is_over(self, n_kept: int) -> bool:
        return False


@dataclass(frozen=True, slots=True)
class EveryNth:
    """Values 0, n, 2n, … of a series, counted value by value."""

    n: int

    @property
    def asked(self) -> dict[str, Any]:
        return {"every_n_steps": self.n}

    def takes(self, index: int, stride: int) -> bool:
        return index % self.n == 0

    def is_over(self, n_kept: int) -> bool:
        return False


@dataclass(frozen=True, slots=True)
class FewerThan:
    """Fewer than n values, evenly spaced: those whose number is a multiple of the stride.

    The stride is 1 at first. When n are kept, those at positions 0, 2, 4, … stay, and it doubles.
    """

    n: int

    @property
    def asked(self) -> dict[str, Any]:
        return {"keep_n_points": self.n}

    def takes(self, index: int, stride: int) -> bool:
        return index % stride == 0

    def is_over(self, n_kept: int) -> bool:
        return n_kept >= self.n


def in_words(asked: Mapping[str, Any]) -> str:
    """Return the calls of the setters.

    >>> in_words({"collect_all": "", "keep_n_points": 5})
    'collect_all(), keep_n_points(5)'
    """
    return ", ".join(f"{name}({given})" for name, given in asked.items())


def read_policy(asked: Mapping[str, Any]) -> Policy:
    """Return the only policy of a collector.

    Parameters
    ----------
    asked : dict
        Arguments of the setters, by their names; a number below 1 sets nothing.

    Raises
    ------
    ValueError
        For none, for several, and for fewer than one point.
    TypeError
        For what is no whole number.

    Examples
    --------
    >>> read_policy({"keep_n_points": 5, "every_n_steps": 0})
    FewerThan(n=5)
    """
    policies = [_READ[name](name, given) for name, given in asked.items()]
    found = [policy for policy in policies if policy is not None]
    if len(found) == 1:
        return found[0]
    given = ", ".join(in_words(policy.asked) for policy in found)
    raise ValueError(
        f"{len(found)} policies{f': {given}' if given else ''}; allowed: exactly one of "
        f"collect_all(), every_n_steps(n), keep_n_points(n)"
    )


def _every(name: str, given: Any) -> Policy | None:
    n = _whole(name, given)
    return EveryNth(n) if n >= 1 else None


def _fewer(name: str, given: Any) -> Policy | None:
    n = _whole(name, given)
    if n == 1:
        raise ValueError("keep_n_points(1): fewer than one point would be kept; allowed: from 2")
    return FewerThan(n) if n >= 1 else None


_READ: dict[str, Callable[[str, Any], Policy | None]] = {
    "collect_all": lambda name, given: KeepAll(),
    "every_n_steps": _every,
    "keep_n_points": _fewer,
}


def _whole(name: str, given: Any) -> int:
    if not is_whole(given):
        raise TypeError(f"{name}({given!r}): a whole number is expected")
    return int(given)
