"""Values that stand from their measurement until the next one, on the columns of a heat map."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from notebook_probe.record.format.source import Floats, Steps
from notebook_probe.record.views.thinning.blocks import Blocks, Latest

__all__ = ["ENDED", "NO_GAP", "NO_VALUE", "StandingValues", "standing"]

NO_GAP, ENDED, NO_VALUE = 0, 1, 2
"""Reasons of a gap: the series had ended, or had no value although one was due."""

NONE = -1
"""Step of a missing value."""


@dataclass(frozen=True, slots=True)
class StandingValues:
    """Latest value at or before the end of each column; arrays are (module, column)."""

    steps: Steps
    """Step at which it was measured; -1 before the first value."""
    values: Floats
    gap: npt.NDArray[np.uint8]
    """Reason why the value no longer stands; `NO_GAP` while it does, and before the first value."""


def standing(
    blocks: Blocks | None,
    rows: npt.NDArray[np.int64],
    before: Latest,
    columns: npt.NDArray[np.int64],
    n_columns: int,
    ends: Steps | None,
) -> StandingValues:
    """Return the standing value of each column, from the blocks of one stream, if any.

    Parameters
    ----------
    rows : int array, (module,)
        Column of each wanted module in the blocks.
    before : Latest
        Value of each of them before the first column, (1, module).
    columns : int array, (block,)
        Column of the picture that each block is.
    ends : int array, (module, column), optional
        Last step at or before the end of each column at which a series ended; -1 for none.
    """
    shape = len(rows), n_columns + 1
    steps = np.full(shape, NONE)
    values = np.full(shape, np.nan, np.float32)
    steps[:, 0], values[:, 0] = before.steps[0], before.values[0]
    rounds = np.full(n_columns, NONE)
    if blocks is not None:
        steps[:, columns + 1] = blocks.last_steps[:, rows].T
        values[:, columns + 1] = blocks.last_values[:, rows].T
        rounds[columns] = blocks.round_steps
    # Steps grow, so that the latest is the greatest.
    latest = np.maximum.accumulate(np.where(steps < 0, 0, np.arange(shape[1])), axis=1)
    steps = np.take_along_axis(steps, latest, axis=1)[:, 1:]
    values = np.take_along_axis(values, latest, axis=1)[:, 1:]
    passed_over = steps < np.maximum.accumulate(rounds)
    gap = np.where(passed_over, NO_VALUE, NO_GAP)
    if ends is not None:
        gap[steps < ends] = ENDED
    gap[steps == NONE] = NO_GAP
    return StandingValues(steps, values, gap.astype(np.uint8))
