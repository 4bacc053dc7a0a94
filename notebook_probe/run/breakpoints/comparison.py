"""A comparison with a number, as one types it: ``"> 10"``, ``"crosses 0.5"``."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass

from notebook_probe.errors import BreakpointError, near

__all__ = ["CROSSES", "Comparison", "as_comparison"]

CROSSES = "crosses"

SIGNS: dict[str, Callable[[float, float], bool]] = {
    ">": lambda value, threshold: value > threshold,
    "<": lambda value, threshold: value < threshold,
    ">=": lambda value, threshold: value >= threshold,
    "<=": lambda value, threshold: value <= threshold,
}
TEXT = re.compile(r"\s*([<>]=?|[^\W\d]+)\s*(\S+)\s*")


@dataclass(frozen=True, slots=True)
class Comparison:
    """A sign and a number; `CROSSES` compares with the row before.

    Examples
    --------
    >>> str(as_comparison("> 1e1"))
    '> 10'
    """

    sign: str
    threshold: float

    def __post_init__(self) -> None:
        if self.sign not in (*SIGNS, CROSSES):
            allowed = (*SIGNS, CROSSES)
            raise BreakpointError(f"no comparison {self.sign!r}; {near(self.sign, allowed)}")
        # An infinite threshold is met always or never, and NaN never.
        if not math.isfinite(self.threshold):
            raise BreakpointError(f"{self.sign} {self.threshold}: a finite number is needed")

    def __str__(self) -> str:
        return f"{self.sign} {self.threshold:g}"

    def holds(self, value: float, before: float) -> bool:
        """Return whether it holds for a value, given the one in the row before; never for NaN."""
        if self.sign != CROSSES:
            return SIGNS[self.sign](value, self.threshold)
        # On the threshold counts as below it, so that one crossing is not found twice.
        return min(value, before) <= self.threshold < max(value, before)


def as_comparison(text: object) -> Comparison:
    """Return the comparison in a text.

    Raises
    ------
    BreakpointError
        Invalid text, with what is allowed.
    """
    found = TEXT.fullmatch(text) if isinstance(text, str) else None
    try:
        if found is not None:
            return Comparison(found[1], float(found[2]))
    # BreakpointError is a ValueError, whose own text is better than the general one below.
    except ValueError as error:
        if isinstance(error, BreakpointError):
            raise
    raise BreakpointError(f"when={text!r}; such as '> 10', '< 1e-6' or 'crosses 0.5' is expected")
