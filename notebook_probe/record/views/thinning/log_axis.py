"""A logarithmic axis in parts that are thinned separately: the early ones are wide."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

__all__ = ["points_per_part", "steps_between_parts"]

N_PARTS = 12


def steps_between_parts(ends: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
    """Return the borders of equally wide parts of an axis over ``ends``."""
    low, high = np.log1p(ends)
    return np.expm1(np.linspace(low, high, N_PARTS + 1)[1:-1])


def points_per_part(n_points: int) -> int:
    """Return the share of each part in ``n_points``."""
    return -(-n_points // N_PARTS)
