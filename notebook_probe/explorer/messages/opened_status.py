"""Status of an opened record."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from notebook_probe.errors import RecordFormatError, StoreSilentError
from notebook_probe.explorer.messages.status_message import N_RECENT
from notebook_probe.lineage.progress import n_steps
from notebook_probe.record.format.missing import measured
from notebook_probe.record.format.schema import is_of_loop
from notebook_probe.record.format.source import ROOT, Source, StreamView
from notebook_probe.run.health.status import State, StatusHead

__all__ = ["OpenedStatus"]

QUIET_S = 60.0
"""A record that has gained no row for so long is not being trained any more, or not now."""
MEASURE_S = 10.0
"""A growing folder, which may hold a thousand files, is not measured at every commit."""


class OpenedStatus:
    """Status of a source without controls, computed again when there is something new."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._revision = -1
        self._n_steps = 0
        self._last_s = 0.0
        self._nbytes = 0
        self._measured_s = 0.0
        self._logged: dict[str, list[float]] = {}
        self._damage = ""

    @property
    def last_ms(self) -> float:
        """Time of the last recorded row, in milliseconds since 1970; 0 before the first."""
        return 1000.0 * self._last_s

    def recent(self, name: str) -> list[float]:
        """Return the last values of a scalar that the loop logged."""
        return self._logged.get(name, [])

    def head(self) -> StatusHead:
        """Return what the record says about the state of its run."""
        problem = ""
        try:
            self._look_again()
            problem = self._damage
        except StoreSilentError as error:  # what was read before is shown
            problem = str(error)
        return StatusHead(
            name=self._source.name,
            location=self._source.location,
            state=self._state(),
            step=self._n_steps,
            steps_per_second=math.nan,
            cost_percent=math.nan,
            n_probes=0,
            dropped_rows=0,
            nbytes=self._nbytes,
            flushed_age_s=self._age_s(),
            scalars={name: values[-1] for name, values in self._logged.items()},
            problem=problem,
        )

    def _look_again(self) -> None:
        revision = self._source.revision
        if revision != self._revision:
            self._look()
            self._revision = revision

    def _state(self) -> State:
        if self._source.finished:
            return "finished"
        # Only a finished record says so; a killed writer leaves it open, hence the clock.
        return "training" if time.time() - self._last_s < QUIET_S else "idle"

    def _age_s(self) -> float:
        """Return the seconds since the last row, by the local clock; NaN for a finished run."""
        if self._source.finished or not self._last_s:
            return math.nan
        # Clocks of two machines differ, so an age may seem negative.
        return max(0.0, time.time() - self._last_s)

    def _look(self) -> None:
        self._damage = ""
        self._attempt(self._count_steps)
        for stream in self._source.streams.values():
            if n_rows := stream.n_rows:
                self._attempt(partial(self._read_time, stream, n_rows))
                self._attempt(partial(self._read_logged, stream, n_rows))
        if self._source.finished or time.monotonic() - self._measured_s > MEASURE_S:
            self._measured_s = time.monotonic()
            self._nbytes = _folder_bytes(Path(self._source.location))

    def _attempt(self, read: Callable[[], None]) -> None:
        """Read a part of the record; keep the first error of a damaged one."""
        try:
            read()
        except RecordFormatError as error:
            self._damage = self._damage or str(error)

    def _count_steps(self) -> None:
        self._n_steps = max(self._n_steps, n_steps(self._source))

    def _read_time(self, stream: StreamView, n_rows: int) -> None:
        self._last_s = max(self._last_s, stream.times(n_rows - 1, n_rows)[0] / 1000.0)

    def _read_logged(self, stream: StreamView, n_rows: int) -> None:
        for name in (one.name for one in stream.variables if is_of_loop(one)):
            if ROOT in stream.modules:
                # Only the rows of the small line in the bar: a record may have millions.
                rows = stream.values(name, max(0, n_rows - N_RECENT), n_rows, [ROOT])
                values = rows[measured(rows)].tolist()
                self._logged |= {name: values} if values else {}


def _folder_bytes(folder: Path) -> int:
    """Return the bytes that the files below a folder occupy; 0 if the record is not local.

    A chunk that is being written to has its final length already; only its used blocks count.
    """
    if not folder.is_dir():
        return 0
    return sum(_used_bytes(path.stat()) for path in folder.rglob("*") if path.is_file())


def _used_bytes(stat: os.stat_result) -> int:
    # The hot tail writes into a sparse file of its final size. Windows has no st_blocks.
    return min(stat.st_size, 512 * getattr(stat, "st_blocks", stat.st_size))
