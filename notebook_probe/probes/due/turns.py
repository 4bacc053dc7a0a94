"""Turns: the due steps at which each module is measured, when one of several due steps is."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType

from notebook_probe.probes.step.stretching import LARGEST

__all__ = ["LEAST_MODULES", "MOST_TURNS", "Turns"]

LEAST_MODULES = 32
"""Places that are measured together at least: a step in which something is due costs as much as
about twenty more modules, whatever is measured in it."""
MOST_TURNS = 64
"""Maximum number of turns: each has separate readings, which are built once and kept."""


class Turns:
    """The turns of places among the due steps of a schedule.

    With a quantity's factor f, a place is measured at the due steps k with ``k % f`` equal to
    its turn: once in f due steps, always after the same number of them. Places that are neighbors
    in the order of their names take one turn, and the turns are spread evenly over the f steps. A
    place that is measured with the factor 2 f is measured with the factor f at the same step, so
    that quantities with different factors still meet at a module.

    Parameters
    ----------
    places : iterable of str
        Places in any order.

    Examples
    --------
    >>> turns = Turns(f"layers.{i:03}" for i in range(128))
    >>> [turns.turn(f"layers.{i:03}", 16) for i in (0, 31, 32, 64, 127)]
    [12, 12, 9, 6, 3]
    >>> [turns.turn(f"layers.{i:03}", 2) for i in (0, 31, 32, 64, 127)]
    [0, 0, 1, 0, 1]
    """

    def __init__(self, places: Iterable[str] = ()) -> None:
        ordered = sorted({*places})
        self.n = _n_turns(len(ordered))
        spread = [_spread(number, self.n) for number in range(self.n)]
        self._turns: Mapping[str, int] = MappingProxyType(
            {place: spread[rank * self.n // len(ordered)] for rank, place in enumerate(ordered)}
        )

    def turn(self, place: str, factor: int) -> int:
        """Return the remainder of the due steps at which a place is measured."""
        return self._turns.get(place, 0) % factor


def _n_turns(n_places: int) -> int:
    """Return the largest power of two that leaves enough places to each turn."""
    n = 1
    while 2 * n * LEAST_MODULES <= n_places and n < MOST_TURNS:
        n *= 2
    return n


def _spread(number: int, n: int) -> int:
    """Return an integer whose remainders by powers of two are spread evenly over the n numbers.

    Its digits in base n are the number and n - 1 minus the number by turns: divided by any large
    power of two, the remainders are near 1, 2, ..., n parts of n + 1.
    """
    found, power, digit = 0, 1, number
    while n > 1 and power < LARGEST:
        found += digit * power
        power, digit = power * n, n - 1 - digit
    return found
