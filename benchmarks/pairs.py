"""Two variants of one step, alternating in one process; the ratio of each pair, then the median.

CPU time, so that other load on the machine does not count; and of this thread only, because what
another one does, such as a writer, falls into plain steps too. That is measured `alone`.
The order within a pair is swapped each time, so that warm caches favour neither.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

__all__ = ["IN_A_ROW", "Pairs", "Step", "alone", "paired"]

IN_A_ROW = 4
"""Steps of each of a pair where a budget decides what is measured."""

Step: TypeAlias = Callable[[], None]
Array: TypeAlias = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Pairs:
    """CPU seconds of every pair of steps."""

    probed: Array
    plain: Array

    @property
    def n(self) -> int:
        return len(self.plain)

    @property
    def plain_s(self) -> float:
        """Median of the plain step."""
        return float(np.median(self.plain))

    def ratio(self, quantile: float = 0.5) -> float:
        """Median, or another quantile, of the pairs' ratios."""
        return float(np.quantile(self.probed / self.plain, quantile))

    def total_ratio(self) -> float:
        """Ratio of the sums: has what a median leaves out, such as work every 100th step."""
        return float(self.probed.sum() / self.plain.sum())

    def difference_s(self) -> float:
        """Median of the pairs' differences."""
        return float(np.median(self.probed - self.plain))


def paired(
    probed: Step,
    plain: Step,
    *,
    seconds: float,
    at_least: int = 6,
    at_most: int = 400,
    in_a_row: int = 1,
) -> Pairs:
    """Measure pairs for so many seconds of wall time; both variants are warm already.

    A run takes the time between two of its steps for its own. Where that decides what it measures,
    several steps ``in_a_row`` make one of a pair, so that few of its steps are too long.
    """
    gc.collect()
    times: list[tuple[float, float]] = []
    begun = time.monotonic()
    while len(times) < at_least or (len(times) < at_most and time.monotonic() - begun < seconds):
        if len(times) % 2:
            plain_s, probed_s = _cpu_s(plain, in_a_row), _cpu_s(probed, in_a_row)
        else:
            probed_s, plain_s = _cpu_s(probed, in_a_row), _cpu_s(plain, in_a_row)
        times.append((probed_s, plain_s))
    measured = np.array(times)
    return Pairs(measured[:, 0], measured[:, 1])


def alone(step: Step, *, seconds: float, at_least: int = 6) -> tuple[int, float]:
    """Steps that follow each other, as in training: how many, and other threads' CPU s per step."""
    begun, process_s, thread_s = time.monotonic(), time.process_time(), time.thread_time()
    n = 0
    while n < at_least or time.monotonic() - begun < seconds:
        step()
        n += 1
    others_s = time.process_time() - process_s - (time.thread_time() - thread_s)
    return n, max(0.0, others_s) / n


def _cpu_s(step: Step, n: int) -> float:
    """CPU seconds of a step, the average of so many."""
    begun = time.thread_time()
    for _ in range(n):
        step()
    return (time.thread_time() - begun) / n
