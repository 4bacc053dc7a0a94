"""One axis of a parallel picture: positions of a column's values, and its ticks."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from matplotlib.ticker import LogLocator, MaxNLocator

from notebook_probe.checks import is_number
from notebook_probe.figures.style import number, shortened

__all__ = ["NOWHERE", "ParallelAxis", "axis_of"]

WIDE_RATIO = 30.0
"""Ratio of the largest to the smallest value above which an axis is logarithmic."""
FEW, CLOSEST = 6, 0.07
"""Maximum number of distinct values that get ticks themselves, and their least distance."""
MOST_CATEGORIES = 16
BAND = 0.4
"""Fraction of a category's room over which its runs are spread."""
LONGEST_CATEGORY = 14
NOWHERE = -0.13
"""Position of runs without a finite value; the axis is from 0 to 1."""

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class ParallelAxis:
    """Heights of all runs, and ticks at some.

    Attributes
    ----------
    heights : ndarray
        Height of each run from 0 to 1; `NOWHERE` without a value.
    ticks : tuple of (float, str)
    is_log : bool
    is_number : bool
    """

    heights: Floats
    ticks: tuple[tuple[float, str], ...]
    is_log: bool
    is_number: bool


def axis_of(values: Sequence[Any]) -> ParallelAxis:
    """Numbers on a scale, logarithmic over more than a decade; all else as categories.

    Runs of one category are spread next to each other, so that each can be followed.

    Examples
    --------
    >>> axis_of([1e-4, 1e-2, None, 1.0]).heights.tolist()
    [0.0, 0.5, -0.13, 1.0]
    >>> axis_of(["SGD", "Adam", "SGD"]).ticks
    ((0.25, 'Adam'), (0.75, 'SGD'))
    >>> axis_of([1, 2, 4, 4]).ticks
    ((0.0, '1'), (0.3333333333333333, '2'), (1.0, '4'))
    """
    known = [value for value in values if value is not None]
    if known and all(is_number(value) for value in known):
        return _of_numbers(np.array([math.nan if one is None else one for one in values], float))
    return _of_categories(values)


def _of_numbers(values: Floats) -> ParallelAxis:
    finite = values[np.isfinite(values)]
    if not len(finite):
        return ParallelAxis(np.full(len(values), NOWHERE), (), False, True)
    low, high = float(finite.min()), float(finite.max())
    is_log = low > 0 and high >= WIDE_RATIO * low
    if low == high:
        heights = np.where(np.isfinite(values), 0.5, NOWHERE)
        return ParallelAxis(heights, ((0.5, number(low)),), False, True)

    def placed(some: Floats) -> Floats:
        with np.errstate(all="ignore"):
            scaled = np.log(some / low) / math.log(high / low) if is_log else None
            return (some / 2 - low / 2) / (high / 2 - low / 2) if scaled is None else scaled

    at = np.unique(finite)
    if len(at) > FEW or np.diff(placed(at)).min() < CLOSEST:
        with np.errstate(all="ignore"):  # at the end of what a number can be
            at = np.asarray(
                (LogLocator(numticks=6) if is_log else MaxNLocator(5)).tick_values(low, high)
            )
        at = at[(at >= low) & (at <= high)]
    ticks = zip(placed(at).tolist(), map(number, at.tolist()), strict=True)
    heights = np.where(np.isfinite(values), placed(values), NOWHERE)
    return ParallelAxis(heights, tuple(ticks), is_log, True)


def _of_categories(values: Sequence[Any]) -> ParallelAxis:
    texts = [None if one is None else _text(one) for one in values]
    kinds = sorted({text for text in texts if text is not None})
    place = {text: (i + 0.5) / len(kinds) for i, text in enumerate(kinds)}
    heights = np.full(len(texts), NOWHERE)
    for kind in kinds:
        mine = [run for run, text in enumerate(texts) if text == kind]
        wide = min(BAND / len(kinds), 0.01 * (len(mine) - 1)) / 2
        heights[mine] = place[kind] + np.linspace(-wide, wide, len(mine))
    every = -(-len(kinds) // MOST_CATEGORIES)
    ticks = [(place[one], shortened(one, LONGEST_CATEGORY)) for one in kinds[:: every or 1]]
    return ParallelAxis(heights, tuple(ticks), False, False)


def _text(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, sort_keys=True, default=str)
