"""A series as one line of characters."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt

    from notebook_probe.record.format.source import Floats, Steps

__all__ = ["BLOCKS", "DIGITS", "sparkline"]

COLUMNS = 60
BLOCKS = "▁▂▃▄▅▆▇█"
DIGITS = "0123456789"
LOST, EMPTY = "!", "."


def sparkline(steps: Steps, values: Floats, levels: str = BLOCKS, columns: int = COLUMNS) -> str:
    """Return a series as characters of rising height, over equal spans of steps.

    A character is the value of its span that is farthest from the median of all, so that no peak
    is lost; ``!`` is a span with NaN or an infinity, ``.`` one without rows.

    Examples
    --------
    >>> import numpy as np
    >>> sparkline(np.arange(8), np.arange(8.0), columns=8), sparkline(np.arange(2), np.ones(2))
    ('▁▂▃▄▅▆▇█', '▁▁')
    """
    columns = min(columns, len(steps))
    if not columns:
        return ""
    share = (steps - steps[0]) / (int(steps[-1]) - int(steps[0]) + 1)
    places = np.minimum((share * columns).astype(np.intp), columns - 1)
    finite = np.isfinite(values)
    order = _nearest_first(values, finite)  # of a span the last one is drawn
    line = [EMPTY] * columns
    for row, height in zip(order, _heights(values[order], len(levels)), strict=True):
        line[places[row]] = levels[height]
    for place in places[~finite]:
        line[place] = LOST
    return "".join(line)


def _nearest_first(values: Floats, finite: npt.NDArray[np.bool_]) -> npt.NDArray[np.intp]:
    """Return the rows of finite values, the farthest from their median last."""
    rows = np.flatnonzero(finite)
    known = values[rows].astype(np.float64)
    return rows[np.argsort(np.abs(known - np.median(known)), kind="stable")] if len(rows) else rows


def _heights(values: Floats, n_levels: int) -> npt.NDArray[np.intp]:
    """Return the level of each value between the least and the greatest."""
    known = values.astype(np.float64)
    if not len(known) or known.min() == known.max():
        return np.zeros(len(known), np.intp)
    share = (known - known.min()) / (known.max() - known.min())
    return np.rint(share * (n_levels - 1)).astype(np.intp)
