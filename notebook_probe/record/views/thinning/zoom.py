"""A series between two steps, in as many points as a picture shows: read from the pyramid.

Blocks no wider than four points, two pixels, are used; the ends of the range, rows behind the end
of the pyramid, and blocks with a value that is not finite are read from the rows themselves.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from notebook_probe.record.format.missing import measured
from notebook_probe.record.format.source import Floats, LevelView, Steps, StreamView, Thinned
from notebook_probe.record.views.thinning.log_axis import points_per_part, steps_between_parts
from notebook_probe.record.views.thinning.minmax import minmax

__all__ = ["between", "has_series", "in_window", "thin_stream"]

RAW_ROWS = 2**15
"""Rows that are read as fast as their blocks, of which there are three arrays."""

Points = tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]


def has_series(stream: StreamView, module: str, quantity: str) -> bool:
    """Return whether the stream has both the module and the quantity."""
    return module in stream.modules and any(one.name == quantity for one in stream.variables)


def between(stream: StreamView, start: float | None, stop: float | None) -> tuple[int, int]:
    """Rows of the steps from ``start`` up to but not including ``stop``; None is the end."""
    first = 0 if start is None else _row(stream, start)
    return first, max(first, stream.n_rows if stop is None else _row(stream, stop))


def in_window(stream: StreamView, window: tuple[float, float] | None) -> tuple[int, int]:
    """Return the rows with steps in ``window``; all rows for None."""
    if window is None:
        return 0, stream.n_rows
    return between(stream, window[0], np.nextafter(window[1], np.inf))


def _row(stream: StreamView, step: float) -> int:
    """Return the first row at ``step`` or later."""
    low, high = 0, stream.n_rows
    if stream.levels:
        level = stream.levels[max(stream.levels)]
        block = int(np.searchsorted(level.steps(), step))
        if block == 0:
            return 0
        low, high = (block - 1) * level.size, block * level.size
        high = stream.n_rows if block == level.n_blocks else high
    return low + int(np.searchsorted(stream.steps(low, high), step))


def thin_stream(
    stream: StreamView,
    module: str,
    quantity: str,
    first: int,
    stop: int,
    n_points: int,
    *,
    log: bool = False,
) -> Thinned:
    """Rows ``first:stop`` of one series in at most ``n_points``; see `Source.thinned`.

    On a logarithmic axis of steps (``log``) the early ones are wide: each part of it gets an equal
    share, of at least 4 points.
    """
    if first >= stop or not log:
        return _thin(stream, module, quantity, first, stop, n_points)
    share = max(4, points_per_part(n_points))
    parts = [
        _thin(stream, module, quantity, a, b, share)
        for a, b in pairwise(_parts_of_log_axis(stream, first, stop))
    ]
    return Thinned(
        np.concatenate([part.x for part in parts]),
        np.concatenate([part.y for part in parts]),
        np.concatenate([part.nonfinite for part in parts]),
    )


def _parts_of_log_axis(stream: StreamView, first: int, stop: int) -> list[int]:
    """First row of each part, and ``stop``."""
    ends = np.concatenate([stream.steps(first, first + 1), stream.steps(stop - 1, stop)])
    return [first, *(_row(stream, step) for step in steps_between_parts(ends)), stop]


def _thin(
    stream: StreamView, module: str, quantity: str, first: int, stop: int, n_points: int
) -> Thinned:
    level = _level(stream, module, quantity, stop - first, n_points)
    if level is None:
        x, y = _raw(stream, module, quantity, first, stop)
    else:
        x, y = _coarse(stream, level, module, quantity, first, stop)
    return minmax(x, y, n_points)


def _level(
    stream: StreamView, module: str, quantity: str, n_rows: int, n_points: int
) -> LevelView | None:
    """Return the coarsest level with a block per four points, which is per two pixels."""
    fine = [
        level
        for size, level in sorted(stream.levels.items())
        if n_rows > RAW_ROWS and 4 * n_rows >= n_points * size and level.has(quantity, module)
    ]
    return fine[-1] if fine else None


def _raw(stream: StreamView, module: str, quantity: str, first: int, stop: int) -> Points:
    if first >= stop:  # which a store would read a chunk for
        return np.empty(0), np.empty(0)
    values = stream.values(quantity, first, stop, [module])[:, 0]
    known = measured(values)
    return stream.steps(first, stop)[known].astype(np.float64), values[known].astype(np.float64)


def _coarse(
    stream: StreamView, level: LevelView, module: str, quantity: str, first: int, stop: int
) -> Points:
    """Minimum and maximum of every block but those at the ends, at the step where it begins."""
    size = level.size
    low, high = first // size + 1, min((stop - 1) // size, level.n_blocks)
    if low >= high:
        return _raw(stream, module, quantity, first, stop)
    reduced = {key: one[:, 0] for key, one in level.reduced(quantity, [module], low, high).items()}
    mean = reduced["mean"]
    lost = low + np.flatnonzero(measured(mean) & ~np.isfinite(mean))
    fine, fine_stop = (int(lost[0]), int(lost[-1]) + 1) if len(lost) else (low, low)
    points = _Blocks(level.steps(low, high), reduced["min"], reduced["max"])
    return _joined(
        _raw(stream, module, quantity, first, low * size),
        points.between(0, fine - low),
        _raw(stream, module, quantity, fine * size, fine_stop * size),
        points.between(fine_stop - low, high - low),
        _raw(stream, module, quantity, high * size, stop),
    )


@dataclass(frozen=True, slots=True)
class _Blocks:
    steps: Steps
    minimum: Floats
    maximum: Floats

    def between(self, start: int, stop: int) -> Points:
        """Two points of each block, or one, or none where nothing was measured."""
        minimum, maximum = self.minimum[start:stop], self.maximum[start:stop]
        y = np.stack([minimum, maximum], axis=1).astype(np.float64)
        is_drawn = np.stack([np.isfinite(minimum), maximum > minimum], axis=1)
        x = np.repeat(self.steps[start:stop, None], 2, axis=1).astype(np.float64)
        return x[is_drawn], y[is_drawn]


def _joined(*parts: Points) -> Points:
    return np.concatenate([x for x, _ in parts]), np.concatenate([y for _, y in parts])
