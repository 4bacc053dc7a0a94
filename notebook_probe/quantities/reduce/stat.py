"""The sums behind norms, moments and counts, and how they merge exactly.

A `Stat` pools over the calls, micro-batches and tensors of a step: merging the parts gives the
same numbers as measuring the concatenation. Its fields are plain float64 numbers; what is measured
on an accelerator becomes a `Stat` when its sums have been copied to the host.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

from torch import Tensor

__all__ = ["ROUNDING", "Number", "Parts", "Stat", "root", "row_of_numbers"]

Number: TypeAlias = "float | Tensor"
Parts: TypeAlias = frozenset[str]

NOT_MEASURED = math.nan
ROUNDING = 1e-13
"""Share of the mean square below which a variance is nothing but the rounding of two sums."""


@dataclass(slots=True)
class Stat:
    """Sums over the elements of one or many tensors; a part that was not requested is NaN."""

    n: int
    sumsq: float
    """Sum of squares; of squared moduli for complex tensors."""
    mean: float = NOT_MEASURED
    spread: float = NOT_MEASURED
    """Sum of squared deviations from the mean."""
    n_zero: float = NOT_MEASURED
    n_nonfinite: float = NOT_MEASURED
    largest: float = NOT_MEASURED
    """Largest absolute value; NaN where one is."""

    def merge(self, other: Stat) -> Stat:
        """Return the Stat of both together; of one on a device its own kind."""
        if not isinstance(other, Stat):
            return other.merge(self)
        n = self.n + other.n
        if not self.n or not other.n:
            return other if other.n else self
        # The update of Chan et al.: exact without sums of squares that would cancel.
        shift = other.mean - self.mean
        return Stat(
            n=n,
            sumsq=self.sumsq + other.sumsq,
            mean=self.mean + shift * (other.n / n),
            spread=self.spread + other.spread + shift * shift * (self.n * (other.n / n)),
            n_zero=self.n_zero + other.n_zero,
            n_nonfinite=self.n_nonfinite + other.n_nonfinite,
            largest=_larger(self.largest, other.largest),
        )

    @property
    def rms(self) -> float:
        """Root of the mean square; NaN of nothing."""
        return root(self.sumsq / self.n) if self.n else math.nan


def _larger(one: float, other: float) -> float:
    """Return the larger of two numbers, NaN if one is."""
    return one if one >= other or one != one else other


def root(value: float) -> float:
    """Square root of a number; NaN below zero.

    >>> root(9.0)
    3.0
    """
    return math.sqrt(value) if value >= 0 else math.nan


def row_of_numbers(numbers: Sequence[float], n: int, parts: Parts) -> list[float]:
    """Return the sums of a row, as those on an accelerator, of what `traced_sums` has found.

    The sum of squares is at least the square of the number from which distances are measured, so
    that it does not cancel.

    Examples
    --------
    >>> row_of_numbers([3.0, 1.0, 1.0, 0.0], 2, frozenset({"sumsq", "moments", "zeros"}))
    [5.0, 7.0, 0.25, 2.0]
    """
    found = iter(numbers)
    if "moments" in parts:
        shift, total, squares = next(found), next(found), next(found)
        spread, sumsq = squares - total * total / n, squares
        if math.isfinite(squares):
            sumsq += 2.0 * shift * total + n * shift * shift
            spread = spread if spread >= ROUNDING * squares else 0.0
        row = [root(sumsq), total + n * shift, spread / n]
    else:
        row = [root(next(found))]
    if "zeros" in parts:
        row.append(n - next(found))
    return [*row, *found]
