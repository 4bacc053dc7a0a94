"""Colors of a heat map: which map, on which scale, from where to where."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from notebook_probe.record.views.thinning.robust_limits import robust_limits

__all__ = ["ColourMap", "ColourScale", "colour_scale"]

ColourMap: TypeAlias = Literal["value", "share", "sign"]
"""Color map: for sizes; for shares, with a blank zero; for both signs, blank in the middle."""


@dataclass(frozen=True, slots=True)
class ColourScale:
    """Color scale from ``low`` to ``high``; the values are from ``lowest`` to ``highest``."""

    colours: ColourMap
    log: bool
    low: float | None
    high: float | None
    lowest: float | None
    highest: float | None


def colour_scale(
    mean: npt.NDArray[np.float32],
    shown: npt.NDArray[np.float32],
    *,
    share: bool,
    log: bool | None,
) -> ColourScale:
    """Return the color scale of a grid; ``shown`` are the means, or the maximum of each cell.

    Parameters
    ----------
    share : bool
        They are shares of a whole.
    log : bool or None
        The user's choice; None chooses: no logarithm for shares or for values of both signs.
    """
    finite = shown[np.isfinite(shown)]
    # From the means: a scale must not change its kind when maxima are shown.
    signed = bool((mean < 0).any())
    if log is None:
        log = not share and not signed
    lows = robust_limits(mean, log=log)
    limits = lows if shown is mean else robust_limits(shown, log=log)
    # Maxima share the lower end with means, so that switching does not shift all colors.
    low, high = (lows[0], max(lows[1], limits[1])) if lows and limits else (None, None)
    colours: ColourMap = "share" if share else "sign" if signed and not log else "value"
    if low is not None and high is not None and not log:
        if colours == "share":
            low = min(0.0, low)
        elif colours == "sign":
            # Symmetric around 0, or the blank middle would not be zero.
            low, high = -max(-low, high), max(-low, high)
    lowest, highest = (float(finite.min()), float(finite.max())) if finite.size else (None, None)
    return ColourScale(colours, log, low, high, lowest, highest)
