"""Variants of one piece of work, in turns in one process; of each the tenth lowest of a hundred.

What another process takes from this one only ever adds time, so that a low quantile is closer to
an idle machine than a median; the least would be luck.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Mapping

import numpy as np

__all__ = ["LOW", "cpu_s", "in_turns"]

LOW = 0.1


def in_turns(variants: Mapping[str, Callable[[], float]], n: int) -> dict[str, float]:
    """Low quantile of what each returns, after a turn that warms it up."""
    found: dict[str, list[float]] = {name: [] for name in variants}
    for turn in range(n + 1):
        for name, measured in variants.items():
            gc.collect()
            value = measured()
            if turn:
                found[name].append(value)
    return {name: float(np.quantile(values, LOW)) for name, values in found.items()}


def cpu_s(work: Callable[[], object]) -> float:
    """CPU seconds of this thread."""
    begun = time.thread_time()
    work()
    return time.thread_time() - begun
