"""From values to pixels along one axis, and the ticks of it."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from notebook_probe.figures.style import number

__all__ = ["Scale", "Values", "scale"]

Values = npt.NDArray[np.float64]

DECADES = 2.0
"""Positive values that span more are drawn on a log axis."""
MOST_TICKS = 4


@dataclass(frozen=True)
class Scale:
    """Values between ``low`` and ``high``, logarithms where ``log``, to pixels."""

    low: float
    high: float
    start: float
    end: float
    log: bool

    def of(self, values: Values) -> Values:
        """The pixel of each; NaN where there is none."""
        with np.errstate(divide="ignore", invalid="ignore"):
            levels = np.log10(values) if self.log else np.asarray(values, float)
        share = (levels - self.low) / (self.high - self.low)
        return np.where(np.isfinite(share), self.start + share * (self.end - self.start), np.nan)

    def to(self, value: float) -> float:
        """The pixel of one value."""
        return float(self.of(np.asarray([value]))[0])

    def ticks(self) -> list[tuple[float, str]]:
        """Where round numbers lie, and the numbers."""
        step = _step(self.low, self.high, self.log)
        first, last = math.ceil(self.low / step - 1e-9), math.floor(self.high / step + 1e-9)
        levels = [step * n for n in range(first, last + 1)]
        values = [10**level for level in levels] if self.log else levels
        return [(self.to(value), _told(value, self.log)) for value in values]


def scale(
    values: Values, start: float, end: float, *, log: bool | None = None, whole: bool = False
) -> Scale:
    """The scale that shows all finite values; a constant lies in the middle.

    It is logarithmic if ``log`` says so, or None and there are more than two decades of positive
    values; ``whole``, it ends at ticks.
    """
    finite = values[np.isfinite(values)]
    if log is None:
        log = bool(finite.min() > 0 and math.log10(finite.max() / finite.min()) > DECADES)
    levels = np.log10(finite[finite > 0]) if log else finite
    low, high = float(levels.min()), float(levels.max())
    if high - low <= 1e-9 * max(abs(low), abs(high)):
        room = 0.5 * abs(low) or 1.0
        low, high = low - room, high + room
    if whole:
        step = 1.0 if log else _step(low, high, log)
        low, high = step * math.floor(low / step + 1e-9), step * math.ceil(high / step - 1e-9)
    return Scale(low, high, start, end, log)


def _step(low: float, high: float, log: bool) -> float:
    """Between ticks: 1, 2, 5 times a power of ten; whole decades on a log axis."""
    wanted = (high - low) / MOST_TICKS
    if log:
        return max(1.0, math.ceil(wanted - 1e-9))
    power = 10.0 ** math.floor(math.log10(wanted))
    return next(power * n for n in (1, 2, 5, 10) if power * n >= wanted * (1 - 1e-9))


def _told(value: float, log: bool) -> str:
    if log and not 1e-3 <= value <= 1e4:
        return f"1e{math.log10(value):.0f}"
    if abs(value) >= 1e6:
        return f"{value / 1e6:g}M"
    return number(0.0 if abs(value) < 1e-12 else value)
