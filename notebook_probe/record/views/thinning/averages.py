"""Averages of series as they grow: every recorded value is read once, in the order of steps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from notebook_probe.record.format.missing import measured
from notebook_probe.record.format.source import Floats, Steps, StreamView
from notebook_probe.record.views.thinning.average import Average, is_averaged, warm_up
from notebook_probe.record.views.thinning.growing_series import GrowingSeries
from notebook_probe.record.views.thinning.merged_rows import Part, merged_rows
from notebook_probe.record.views.thinning.minmax import ends_of_blocks, spread
from notebook_probe.record.views.thinning.zoom import has_series, in_window

__all__ = ["AVERAGED_TOGETHER", "Averages", "average_between", "holding"]

AVERAGED_TOGETHER = 32
"""Maximum series per `Averages`, so that a slab of them is averaged in a tenth of a second."""
SLAB_ROWS = 2**15
BLOCK = 64
"""Rows of which a thin column keeps the least and the greatest average."""

Window = tuple[float, float] | None


def holding(streams: Mapping[str, StreamView], module: str, quantity: str) -> dict[str, StreamView]:
    """Return the streams that have the series, by name."""
    return {name: one for name, one in streams.items() if has_series(one, module, quantity)}


class Averages:
    """Averages of a quantity of some modules at every step, ready to be thinned.

    Parameters
    ----------
    weight, log
        See `Average`.
    thin : bool
        Keep of every 64 rows that are read at once only the least and the greatest average; for
        series too long for memory, of which `average_between` brings the rest.

    Attributes
    ----------
    columns : dict of str to Column
        Averages so far, by module.
    """

    def __init__(
        self, quantity: str, modules: Sequence[str], weight: float, *, log: bool, thin: bool
    ) -> None:
        self._quantity, self._modules = quantity, tuple(modules)
        self._weight, self._log, self.is_thin = weight, log, thin
        self._begin()

    def _begin(self) -> None:
        self.columns = {module: GrowingSeries() for module in self._modules}
        self._average = Average(self._weight, len(self._modules), log=self._log)
        self._n_seen: dict[str, int] = {}
        self._versions: dict[str, tuple[object, ...]] = {}
        self._last_step = -1

    def read_new(self, streams: Mapping[str, StreamView], most_values: int) -> int:
        """Read about a number of new values of the streams; return the exact number.

        Start again at the first row if rows were replaced, or older ones have been added.
        """
        n_read, is_anew = 0, False
        held = [one for one in streams.values() if self._has_any(one)]
        # Rows that were averaged already may have been replaced: the average has to start again.
        if any(self._versions.setdefault(one.name, one.version) != one.version for one in held):
            self._begin()
        while n_read < most_values and (parts := self._next(held, most_values - n_read)):
            steps, values = merged_rows(parts, self._quantity, self._modules)
            if steps[0] < self._last_step and not is_anew:  # once: rows may not grow at all
                self._begin()
                is_anew = True
                continue
            self._take(steps, values)
            self._n_seen |= {stream.name: stop for stream, _, stop in parts}
            self._last_step = int(steps[-1])
            n_read += values.size
        return n_read

    def share(self, streams: Mapping[str, StreamView]) -> float:
        """Return the fraction of the rows that have been read."""
        n_rows = sum(one.n_rows for one in streams.values() if self._has_any(one))
        return min(1.0, sum(self._n_seen.values()) / n_rows) if n_rows else 1.0

    def _has_any(self, stream: StreamView) -> bool:
        return any(one.name == self._quantity for one in stream.variables) and not set(
            self._modules
        ).isdisjoint(stream.modules)

    def _next(self, streams: Sequence[StreamView], most_values: int) -> list[Part]:
        """Return the next rows of each stream, up to a step that all of them have reached."""
        parts: list[Part] = []
        most_rows = max(BLOCK, most_values // len(self._modules))
        for stream in streams:
            first = self._n_seen.get(stream.name, 0)
            # Slab borders are fixed, so that the same rows are read from the same chunks.
            stop = min(stream.n_rows, (first // SLAB_ROWS + 1) * SLAB_ROWS, first + most_rows)
            if first < stop:
                parts.append((stream, first, stop))
        # The usual case: a single stream, whose steps are in order already.
        if len(parts) < 2:
            return parts
        ends = [int(one.steps(stop - 1, stop)[0]) for one, _, stop in parts if stop < one.n_rows]
        until = min(ends, default=None)
        # Merged in the order of steps: a stream must not run ahead of the others.
        cut = ((one, a, _row_after(one, a, b, until)) for one, a, b in parts)
        return [(one, a, b) for one, a, b in cut if a < b]

    def _take(self, steps: Steps, values: Floats) -> None:
        # float32, as recorded; the sums inside stay in float64.
        averages = self._average.follow(values).astype(np.float32)
        known = measured(values)
        for place, column in enumerate(self.columns.values()):
            kept = known[:, place]
            if kept.all():
                # Without a mask there is no copy.
                new = steps, averages[:, place]
            else:
                new = steps[kept], averages[kept, place]
            column.append(*(_thinned(*new) if self.is_thin else new))


def average_between(
    streams: Mapping[str, StreamView],
    module: str,
    quantity: str,
    window: Window,
    weight: float,
    *,
    log: bool,
) -> tuple[Steps, Floats]:
    """Return steps and averages in a window of steps, as if averaged from the first row on.

    It begins enough values before the window that the omitted ones weigh less than 1e-9.
    """
    n_before = warm_up(weight)
    parts = [
        (stream, *_with_warm_up(stream, module, quantity, in_window(stream, window), n_before, log))
        for stream in holding(streams, module, quantity).values()
    ]
    steps, values = merged_rows(parts, quantity, [module])
    known = measured(values[:, 0])
    steps, values = steps[known], values[known]
    averages = Average(weight, log=log).follow(values)[:, 0].astype(np.float32)
    first = 0 if window is None else int(np.searchsorted(steps, window[0]))
    return steps[first:], averages[first:]


def _with_warm_up(
    stream: StreamView,
    module: str,
    quantity: str,
    rows: tuple[int, int],
    n_before: int,
    log: bool,
) -> tuple[int, int]:
    """Return the rows and ``n_before`` earlier ones to average."""
    first, stop = rows
    begin, n_found = first, 0
    while begin > 0 and n_found < n_before:
        end, begin = begin, max(0, begin - max(n_before, first - begin))
        values = stream.values(quantity, begin, end, [module])
        n_found += int(is_averaged(values, log=log).sum())
    return begin, stop


def _row_after(stream: StreamView, first: int, stop: int, step: int | None) -> int:
    """Behind the last of rows ``first:stop`` that is not after ``step``."""
    if step is None:
        return stop
    return first + int(np.searchsorted(stream.steps(first, stop), step, "right"))


def _thinned(steps: Steps, values: Floats) -> tuple[Steps, Floats]:
    """Return the least and greatest of every 64 rows, both ends, and non-finite rows."""
    n_blocks = len(values) // BLOCK
    if not n_blocks:
        return steps, values
    whole = n_blocks * BLOCK
    ends = ends_of_blocks(values[:whole].reshape(-1, BLOCK))
    rows = [
        np.array([0, len(values) - 1]),
        (np.arange(0, whole, BLOCK)[:, None] + ends).ravel(),
        np.arange(whole, len(values)),
        spread(np.flatnonzero(~np.isfinite(values)), n_blocks),
    ]
    kept = np.unique(np.concatenate(rows))
    return steps[kept], values[kept]
