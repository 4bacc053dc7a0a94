"""The rows of a table while its runs grow: read again when their records have changed."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from notebook_probe.explorer.runs_table.reading import Records

__all__ = ["GROWING", "ReadRow", "RowsToRead"]

GROWING = ("running",)
"""States of a run that may tell more."""

QUIET_S = 60.0
"""Seconds after which an unchanged record is read again: a dead writer changes no file."""

ENDED = ("finished", "killed")

Row = Mapping[str, Any]
ReadRow = Callable[[Any], Row]
"""The row of an opened record."""


class RowsToRead:
    """Rows that have to be read again; for one thread.

    Parameters
    ----------
    rows : sequence of mapping
        Initial rows of the table.
    read : callable
        The row of an opened record.
    records : Records
    """

    def __init__(
        self,
        rows: Sequence[Row],
        read: ReadRow,
        records: Records,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._rows, self._read, self._records, self._clock = rows, read, records, clock
        self._read_s: dict[int, float] = {}
        for at in range(len(rows)):
            self.told(at)

    @property
    def n(self) -> int:
        """Number of runs that may still grow."""
        return len(self._read_s)

    def told(self, at: int) -> None:
        """Note that a row is up to date."""
        self._read_s.pop(at, None)
        if self._rows[at].get("state") in GROWING:
            self._read_s[at] = self._clock()

    def news(self) -> dict[int, Row]:
        """Return the changed rows, by their places."""
        found = {}
        for at, read_s in [*self._read_s.items()]:
            place = str(self._rows[at].get("run") or "")
            is_quiet = self._clock() - read_s > QUIET_S  # its state may be another
            if not (is_quiet or self._records.has_changed(place)):
                continue
            self._read_s[at] = self._clock()
            try:
                found[at] = row = self._read(self._records.record(place))
            except Exception:  # any process may have written the record; its line shows the error
                self._records.forget(place)
                continue
            if row.get("state") in ENDED:
                del self._read_s[at]
        return found
