"""What a run says that it takes of some steps."""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass

from benchmarks.quantities.loop import Loop
from notebook_probe.quantities.define.costs import MeasuredCost

__all__ = ["HISTORY", "LEAST", "Own", "in_all", "own"]

ENOUGH_S, LEAST, MOST = 0.5, 2, 60
"""Measured are at least two steps, and sixty or as many as take so long."""

HISTORY = 9
"""Steps after which what needs a past has one."""

SLOW_S = 3.0
"""Of steps that take so long one is enough, the first."""


@dataclass(frozen=True)
class Own:
    """Seconds per step."""

    own_s: float
    bare_s: float
    """Of the step without what is our own."""


def own(loop: Loop, least: int = LEAST) -> Own:
    """Of steps after the first, which makes room for what it needs."""
    first, seconds = _measured(loop, 1, 0.0)
    return first if seconds > SLOW_S else _measured(loop, least, ENOUGH_S)[0]


def _measured(loop: Loop, least: int, enough_s: float) -> tuple[Own, float]:
    """Also how long it took. A step is told of when it is closed."""
    before, begun, n, seconds = loop.run.status(), time.perf_counter(), 0, 0.0
    while n < least or (n < MOST and seconds < enough_s):
        loop.step()
        n, seconds = n + 1, time.perf_counter() - begun
        if seconds > SLOW_S * n:
            break
    loop.run.controls.settle()
    after = loop.run.status()
    whole_s, own_s = after.total_s - before.total_s, after.total_cost_s - before.total_cost_s
    return Own(own_s / n, (whole_s - own_s) / n), seconds


def in_all(parts: Iterable[tuple[float, Own]]) -> MeasuredCost:
    """Of shares of steps, ``(share, own)`` each."""
    own_s = bare_s = 0.0
    for share, measured in parts:
        own_s += share * measured.own_s
        bare_s += share * measured.bare_s
    return MeasuredCost(us=_rounded(1e6 * own_s), percent=_rounded(100 * own_s / bare_s))


def _rounded(number: float) -> float:
    return float(f"{number:.3g}")
