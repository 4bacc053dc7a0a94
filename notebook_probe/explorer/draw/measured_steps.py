"""Steps at which the cells of a heat map were measured, in few bytes."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from notebook_probe.record.views.thinning.heat_grid import Grid

__all__ = ["CARRIED", "GAP", "before_steps", "cell_states", "measured_offsets"]

CARRIED = 4
"""Added to the state of a cell whose value was measured before its column.

Its step is that of the nearest cell on its left that was measured, so it is not sent.
"""


GAP = 8
"""Times the reason of its gap, added to the state of a cell without a value."""


def cell_states(grid: Grid) -> npt.NDArray[np.uint8]:
    """Return the state of each cell, with `CARRIED` or the reason of its gap added."""
    carried = np.where(grid.carried, CARRIED, 0).astype(np.uint8)
    return grid.state | carried | (grid.gap * np.uint8(GAP))


def measured_offsets(grid: Grid) -> npt.NDArray[np.unsignedinteger]:
    """Return the last measured step of each cell, counted from the first step of its column.

    Carried cells and those without a value have 0. The numbers are as narrow as columns allow, and
    there are none if each column is one step.
    """
    # One step per column: every offset would be 0.
    if grid.size == 1:
        return np.empty(0, np.uint8)
    starts = grid.first + grid.size * np.arange(grid.mean.shape[1])
    # A carried cell was measured before its column, so its difference is negative.
    return np.maximum(grid.measured - starts, 0).astype(np.min_scalar_type(grid.size - 1))


def before_steps(grid: Grid) -> list[int]:
    """Return the step of the value that stands before the first column, for each row.

    It is -1 for a row without one; the list is empty if no row has one.
    """
    first = np.where(grid.carried[:, 0], grid.measured[:, 0], -1)
    return first.tolist() if (first >= 0).any() else []
