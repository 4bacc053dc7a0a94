"""Two variants of one step, alternating in one process; the ratio of each pair, then the median.

CPU time of the whole process, so that other load on the machine does not count; the order within
a pair is swapped each time, so that warm caches favour neither.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

__all__ = ["Ratio", "paired"]


@dataclass(frozen=True)
class Ratio:
    """Median of the per-pair ratios, with its quartiles."""

    median: float
    low: float
    high: float
    n_pairs: int
    base_ms: float
    """Median CPU time of the baseline's step; only to know what the ratio is of."""

    def __str__(self) -> str:
        quartiles = f"{self.low:.3f}-{self.high:.3f}"
        return f"{self.median:6.3f}  ({quartiles}, n = {self.n_pairs}, {self.base_ms:.1f} ms)"


def paired(
    probed: Callable[[], None], plain: Callable[[], None], n_pairs: int, warm_up: int = 5
) -> Ratio:
    """Ratio of the CPU times of ``probed`` and ``plain``."""
    for _ in range(warm_up):
        plain()
        probed()
    ratios, base = [], []
    for i in range(n_pairs):
        times = {}
        for variant in (plain, probed) if i % 2 else (probed, plain):
            begun = time.process_time()
            variant()
            times[variant] = time.process_time() - begun
        ratios.append(times[probed] / times[plain])
        base.append(times[plain])
    low, middle, high = np.quantile(ratios, [0.25, 0.5, 0.75])
    return Ratio(float(middle), float(low), float(high), n_pairs, 1e3 * float(np.median(base)))
