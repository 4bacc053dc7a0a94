"""Functions of formulas, in float64: of one series, or over the modules of one quantity."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

__all__ = ["FUNCTIONS", "OPERATIONS", "Doubles", "FormulaFunction"]

Doubles: TypeAlias = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class FormulaFunction:
    """A function by its name."""

    call: Callable[[Doubles], Doubles]
    takes_modules: bool = False
    """True if its argument has a column for each module."""


def _running(accumulated: Callable[[Doubles], Doubles]) -> Callable[[Doubles], Doubles]:
    def of(values: Doubles) -> Doubles:
        # A NaN stays at its own step, and does not hide later values.
        return np.where(np.isnan(values), np.nan, accumulated(values))

    return of


def _over(reduce: Callable[..., Any]) -> Callable[[Doubles], Doubles]:
    def of(values: Doubles) -> Doubles:
        found: Doubles = reduce(values, axis=1)
        return found

    return of


FUNCTIONS: Mapping[str, FormulaFunction] = MappingProxyType(
    {
        "abs": FormulaFunction(np.abs),
        "sqrt": FormulaFunction(np.sqrt),
        "exp": FormulaFunction(np.exp),
        "log": FormulaFunction(np.log),
        "log10": FormulaFunction(np.log10),
        "running_min": FormulaFunction(_running(np.fmin.accumulate)),
        "running_max": FormulaFunction(_running(np.fmax.accumulate)),
        "mean": FormulaFunction(_over(np.mean), takes_modules=True),
        "min": FormulaFunction(_over(np.min), takes_modules=True),
        "max": FormulaFunction(_over(np.max), takes_modules=True),
        "sum": FormulaFunction(_over(np.sum), takes_modules=True),
    }
)

OPERATIONS: Mapping[str, Callable[[Any, Any], Any]] = MappingProxyType(
    {"+": np.add, "-": np.subtract, "*": np.multiply, "/": np.divide, "^": np.power}
)
