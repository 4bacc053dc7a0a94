"""Two variants of a step by turns of several steps, timed by CUDA events and by the clock."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch

__all__ = ["Turns", "by_turns"]

TURN_S = 0.15
"""Seconds of a turn of at least two steps: the host runs ahead of the device."""
WARM = 3
AT_LEAST, AT_MOST = 4, 200
Step = Callable[[], None]


@dataclass(frozen=True)
class Turns:
    """Seconds of every pair of turns, (pair, [watched, plain]), each of so many steps."""

    n_steps: int
    by_clock: npt.NDArray[np.float64]
    by_events: npt.NDArray[np.float64]

    @property
    def n(self) -> int:
        return len(self.by_clock)

    @property
    def plain_s(self) -> float:
        """Median of a plain step."""
        return float(np.median(self.by_clock[:, 1])) / self.n_steps

    def wall(self) -> float:
        """Median ratio by the clock."""
        return _ratio(self.by_clock)

    def device(self) -> float:
        """Median ratio by CUDA events."""
        return _ratio(self.by_events)


def _ratio(seconds: npt.NDArray[np.float64]) -> float:
    return float(np.median(seconds[:, 0] / seconds[:, 1]))


def by_turns(watched: Step, plain: Step, device: str, seconds: float) -> Turns:
    """Measure pairs for so many seconds; the order within a pair is swapped each time."""
    for step in (watched, plain):
        for _ in range(WARM):
            step()
    turn_s = TURN_S if device == "cuda" else 0.0
    n_steps = max(2, round(turn_s / _turn(plain, device, WARM)[0] * WARM))
    clock: list[tuple[float, float]] = []
    events: list[tuple[float, float]] = []
    begun = time.monotonic()
    while len(clock) < AT_LEAST or (len(clock) < AT_MOST and time.monotonic() - begun < seconds):
        order = (watched, plain) if len(clock) % 2 else (plain, watched)
        found = {step: _turn(step, device, n_steps) for step in order}
        clock.append((found[watched][0], found[plain][0]))
        events.append((found[watched][1], found[plain][1]))
    return Turns(n_steps, np.array(clock), np.array(events))


def _turn(step: Step, device: str, n_steps: int) -> tuple[float, float]:
    """Seconds of some steps, by the clock until all is done, and by events on the device."""
    if device != "cuda":
        begun = time.perf_counter()
        for _ in range(n_steps):
            step()
        spent = time.perf_counter() - begun
        return spent, spent
    first, last = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    torch.cuda.synchronize()
    begun = time.perf_counter()
    first.record()
    for _ in range(n_steps):
        step()
    last.record()
    torch.cuda.synchronize()
    return time.perf_counter() - begun, first.elapsed_time(last) / 1e3
