"""Losses at which a landscape changes its color, and at which it has a line."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from matplotlib.colors import LogNorm, Normalize
from matplotlib.ticker import LogLocator, MaxNLocator

from notebook_probe.figures.colours import WIDE_RATIO

__all__ = ["ContourLevels"]

Floats = npt.NDArray[np.float64]

N_FILLED = 48
N_LINES = 10


@dataclass(frozen=True, slots=True)
class ContourLevels:
    """Contour levels from the lowest to the highest loss; geometric over several decades.

    Attributes
    ----------
    norm : Normalize
    filled, lines : array
    """

    norm: Normalize
    filled: Floats
    lines: Floats

    @classmethod
    def of(cls, losses: Floats) -> ContourLevels:
        """Return suitable levels for some losses.

        Raises
        ------
        ValueError
            No loss is finite.
        """
        finite = losses[np.isfinite(losses)].astype(float)
        if not finite.size:
            raise ValueError("no loss of this landscape is finite: there is nothing to draw")
        low, high = float(finite.min()), float(finite.max())
        if not high > low:
            low, high = low - 0.5, high + 0.5
        if low > 0 and high > WIDE_RATIO * low:
            return cls(LogNorm(low, high), np.geomspace(low, high, N_FILLED), _log_lines(low, high))
        lines = MaxNLocator(N_LINES, steps=[1, 2, 2.5, 5, 10]).tick_values(low, high)
        return cls(
            Normalize(low, high), np.linspace(low, high, N_FILLED), _within(lines, low, high)
        )

    @property
    def is_log(self) -> bool:
        """True if the levels are geometric."""
        return isinstance(self.norm, LogNorm)

    def shown(self, losses: Floats) -> np.ma.MaskedArray:
        """Return the losses to draw: clipped, since rounding would leave holes at both ends."""
        masked = np.ma.masked_invalid(losses)
        return np.ma.array(np.clip(masked, self.filled[0], self.filled[-1]), mask=masked.mask)


def _log_lines(low: float, high: float) -> Floats:
    """Return lines at 1, 2 and 5 of each decade, or at decades only."""
    few = np.log10(high / low) < N_LINES / 3
    subs = (1.0, 2.0, 5.0) if few else (1.0,)
    return _within(LogLocator(subs=subs, numticks=2 * N_LINES).tick_values(low, high), low, high)


def _within(lines: Sequence[float], low: float, high: float) -> Floats:
    return np.asarray([line for line in lines if low < line < high], float)
