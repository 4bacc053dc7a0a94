"""A series as the line view holds it: in memory, or of a long run, read from its pyramid."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from notebook_probe.explorer.draw.lines.pixel_points import (
    MOST_MARKS,
    NOTHING,
    PixelAxis,
    PixelPoints,
    points_of,
)
from notebook_probe.record.format.missing import measured
from notebook_probe.record.format.source import StreamView, Thinned
from notebook_probe.record.views.thinning.growing_series import GrowingSeries
from notebook_probe.record.views.thinning.minmax import spread
from notebook_probe.record.views.thinning.zoom import in_window, thin_stream

__all__ = ["LinePoints", "line_of"]

FAR_ROWS = 2**17
"""Rows that are worth more than reading them once: a tenth of a second for ten series."""

Window = tuple[float, float] | None


class LinePoints(Protocol):
    """Points of one series of one stream."""

    @property
    def n_rows(self) -> int:
        """Approximate number of recorded values."""

    def read_new(self, stream: StreamView) -> None:
        """Take in what the stream has gained since the last call."""

    def points(
        self, stream: StreamView, window: Window, axis: PixelAxis, n_points: int
    ) -> PixelPoints:
        """Return about ``n_points`` points in the window, reading the stream if needed."""


def line_of(stream: StreamView, module: str, quantity: str) -> LinePoints:
    """Return the series, read as a whole only if that is quick."""
    finest = stream.levels.get(min(stream.levels, default=0))
    # Without a pyramid, zooming out would read every row anyway.
    far = stream.n_rows > FAR_ROWS and finest is not None and finest.has(quantity, module)
    return _Distant(module, quantity) if far else _InMemory(module, quantity)


class _InMemory:
    def __init__(self, module: str, quantity: str) -> None:
        self._series = module, quantity
        self._column = GrowingSeries()
        self._n_seen = 0

    @property
    def n_rows(self) -> int:
        return len(self._column.steps)

    def read_new(self, stream: StreamView) -> None:
        start, stop = self._n_seen, stream.n_rows
        if stop <= start:
            return
        module, quantity = self._series
        values = stream.values(quantity, start, stop, [module])[:, 0]
        known = measured(values)
        self._column.append(stream.steps(start, stop)[known], values[known])
        self._n_seen = stop

    def points(
        self, stream: StreamView, window: Window, axis: PixelAxis, n_points: int
    ) -> PixelPoints:
        return points_of(self._column, window, axis, n_points)


class _Distant:
    """A zoomed-out line. Counts unmeasured rows too, since telling them apart means reading."""

    n_rows = 0

    def __init__(self, module: str, quantity: str) -> None:
        self._series = module, quantity
        self._kept: _Read | None = None

    def read_new(self, stream: StreamView) -> None:
        self.n_rows = stream.n_rows

    def points(
        self, stream: StreamView, window: Window, axis: PixelAxis, n_points: int
    ) -> PixelPoints:
        key = window, stream.n_rows, axis.log, n_points
        if self._kept is None or self._kept.key != key:
            first, stop = _rows(stream, window)
            thin = thin_stream(stream, *self._series, first, stop, n_points, log=axis.log)
            ends = _steps_at(stream, first, stop) if first < stop else (0, 0)
            self._kept = _Read(key, thin, stop - first, *ends)
        kept = self._kept
        thin = kept.thinned
        if not len(thin.x) and not len(thin.nonfinite):
            return NOTHING
        marks = spread(thin.nonfinite.astype(np.int64), MOST_MARKS)
        steps = np.concatenate([thin.x.astype(np.int64), marks])
        # Stable: at one step, a point stays before the mark of a value that is not finite.
        order = np.argsort(steps, kind="stable")
        values = np.append(thin.y, np.full(len(marks), np.nan)).astype(np.float32)
        ended = len(marks) and (not len(thin.x) or marks[-1] > thin.x[-1])
        return PixelPoints(
            x=axis.position(steps[order]),
            y=values[order],  # a point that is not finite breaks the line
            marks=axis.position(marks),
            n_rows=kept.n_rows,
            n_nonfinite=len(thin.nonfinite),
            first_step=kept.first_step,
            last_step=kept.last_step,
            last_value=np.nan if ended else float(thin.y[-1]),
        )


@dataclass(frozen=True, slots=True)
class _Read:
    """Points read from a stream, valid while the stream and the request stay the same."""

    key: object
    thinned: Thinned
    n_rows: int
    first_step: int
    last_step: int


def _steps_at(stream: StreamView, first: int, stop: int) -> tuple[int, int]:
    """Return the steps of the first and of the last row."""
    return int(stream.steps(first, first + 1)[0]), int(stream.steps(stop - 1, stop)[0])


def _rows(stream: StreamView, window: Window) -> tuple[int, int]:
    """Return the rows with steps in the window, and one more on either side."""
    first, stop = in_window(stream, window)
    # One row more, so that the line continues to the edge of the picture.
    return max(first - 1, 0), min(stop + 1, stream.n_rows)
