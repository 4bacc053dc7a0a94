"""Wall time as an axis: seconds since the run's first row."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

from notebook_probe.record.format.source import Source, Steps
from notebook_probe.record.views.growing import Growing

__all__ = ["WallTime"]


class WallTime:
    """Wall times of every stream's rows, read when needed and cached."""

    def __init__(self) -> None:
        self._streams: dict[str, tuple[Growing[np.int64], Growing[np.int64]]] = {}

    def read_new(self, source: Source) -> None:
        """Append the new rows of the source."""
        for name, stream in source.streams.items():
            steps, times_ms = self._streams.setdefault(name, (Growing(np.int64), Growing(np.int64)))
            start, stop = len(steps), stream.n_rows
            if stop > start:
                steps.append(stream.steps(start, stop))
                times_ms.append(stream.times(start, stop))

    @property
    def origin_ms(self) -> int:
        """Milliseconds since 1970 of the first row."""
        firsts = [
            int(times_ms.values[0]) for _, times_ms in self._streams.values() if len(times_ms)
        ]
        return min(firsts, default=0)

    def seconds(self, streams: Iterable[str], steps: Steps) -> npt.NDArray[np.float64]:
        """Seconds since the run's first row of steps recorded in any of ``streams``."""
        found = np.full(len(steps), np.nan)
        for stream in streams:
            recorded, times_ms = (one.values for one in self._streams[stream])
            # searchsorted may point behind the last row.
            rows = np.minimum(np.searchsorted(recorded, steps), len(recorded) - 1)
            here = recorded[rows] == steps
            found[here] = (times_ms[rows[here]] - self.origin_ms) / 1000.0
        return found
