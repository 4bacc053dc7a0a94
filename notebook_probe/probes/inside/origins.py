"""Origins of the sums that a graph hands out, as texts that the graph has of them."""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

from notebook_probe.quantities.reduce.features import Moment
from notebook_probe.quantities.reduce.reductions import Reduction, Traced, measuring

__all__ = [
    "COUNTED",
    "MOMENTS",
    "NOTHING_READ",
    "TENSORS",
    "Sums",
    "SumsOrigin",
    "origins",
    "reductions_of",
]

TENSORS = {
    "input": "input",
    "output": "output",
    "awaited": "output",
    "gradient": "grad_output",
    "entry": "grad_input",
}
"""The tensor of a call by what its sums are of."""

MOMENTS: dict[str, Moment] = {"gradient": "backward", "entry": "entry"}
"""Moment by what the sums are of, other than the forward."""

NOTHING_READ = "-"
"""Mark in a reading that nothing of a tensor is read."""

COUNTED = "count"
"""Mark in a reading that a gradient is only counted, to tell whether a call had one."""

_WITHOUT_SUMS = (NOTHING_READ, COUNTED)


class Sums(NamedTuple):
    """Sums of one reduction among those of a tensor."""

    reduction: Reduction
    parts: frozenset[str]
    length: int
    traced: Traced
    """Way in which the reduction reads in a graph."""

    def of_numbers(self, numbers: list[float], n: int) -> Any:
        """Return the state of a tensor of ``n`` elements, if its sums are a few numbers."""
        state = self.traced.of_numbers
        assert state is not None
        return state(numbers, n, self.parts)


class SumsOrigin(NamedTuple):
    """Origin of sums that a graph hands out.

    Attributes
    ----------
    what : str
        Either ``input``, ``output``, ``awaited`` (an output whose gradient will be read),
        ``gradient`` (of an output), or ``entry`` (the gradient of an input).
    nth : int
        Number of the tensor among those of the call.
    sums : tuple of Sums
        Meaning of each sum, in order.
    """

    keeper: str
    what: str
    nth: int
    sums: tuple[Sums, ...]

    @property
    def length(self) -> int:
        return sum(one.length for one in self.sums)

    @property
    def is_of_numbers(self) -> bool:
        """True if each state is of a few numbers."""
        return all(one.traced.of_numbers is not None for one in self.sums)


@cache
def origins(texts: str) -> list[SumsOrigin]:
    """Read the texts of some sums, one to a line.

    Examples
    --------
    >>> [one] = origins("0 output 1 3:moments,sumsq")
    >>> one.what, one.nth, one.length
    ('output', 1, 3)
    """
    return [*map(_origin, texts.split("\n"))]


def _origin(text: str) -> SumsOrigin:
    keeper, what, nth, *sums = text.split(" ")
    return SumsOrigin(keeper, what, int(nth), tuple(map(_sums_of, sums)))


def _sums_of(text: str) -> Sums:
    length, parts = text.split(":")
    names = parts.split(",")
    reduction = measuring(names[0])
    assert reduction.traced is not None
    return Sums(reduction, frozenset(names), int(length), reduction.traced)


@cache
def reductions_of(parts: str) -> tuple[tuple[Reduction, frozenset[str]], ...]:
    """Return the reductions that measure some parts, each with the parts that it measures."""
    if parts in _WITHOUT_SUMS:
        return ()
    found: dict[Reduction, set[str]] = {}
    for part in parts.split(","):
        found.setdefault(measuring(part), set()).add(part)
    return tuple((one, frozenset(own)) for one, own in found.items())
