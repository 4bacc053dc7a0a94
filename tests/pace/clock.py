"""Seconds as an idle core of the reference machine would take them.

A fixed piece of work is timed beside a test. Where it takes twice as long as on the reference
machine, because the processor is slower or busy, half of the test's time is counted.
"""

from __future__ import annotations

import time

import numpy as np

__all__ = ["calibrated", "slowness"]

REFERENCE_S = 0.0050
"""What `work` takes on the reference machine: two idle cores, the fastest of many."""
SAMPLES = 3
_MATRIX = np.linspace(0.0, 1.0, 64 * 64).reshape(64, 64)


def work() -> float:
    """Do what tests mostly do: interpret Python, and call numpy for small arrays."""
    total = 0.0
    for k in range(75_000):
        total += (k % 7) * 0.5
    for _ in range(180):
        total += float((_MATRIX @ _MATRIX).sum())
    return total


def slowness(samples: int = SAMPLES) -> float:
    """Return how many times as long as on the reference machine things take now."""
    return min(_timed() for _ in range(samples)) / REFERENCE_S


def _timed() -> float:
    begin = time.perf_counter()
    work()
    return time.perf_counter() - begin


def calibrated(seconds: float, slowness: float) -> float:
    """Return ``seconds`` on the reference machine. A faster machine counts no more than it took.

    Waiting is not made shorter by a faster processor, so that seconds are only ever taken off.
    """
    return seconds / max(slowness, 1.0)
