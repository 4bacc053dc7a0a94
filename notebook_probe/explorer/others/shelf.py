"""The runs that may be compared with one: opened in a thread of their own, a row of each."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from notebook_probe.compare import differences
from notebook_probe.compare.axes import Run
from notebook_probe.explorer.draw.worker import Worker
from notebook_probe.explorer.others.places import first_record, neighbours, resolved, stamp
from notebook_probe.explorer.others.run_row import RunRow, run_row, unread_row
from notebook_probe.record.format.schema import UNWRITTEN_OF
from notebook_probe.record.read.reader import OpenedRecord
from notebook_probe.record.store.location import local_path, stem

__all__ = ["Other", "Shelf", "Task"]

MOST_LISTED = 100
"""Records of a folder that are read; of those changed longest ago only their number is told."""

Task = Callable[[], None]


class Other(OpenedRecord):
    """A record beside; what of it is left out stands in its row, and is no warning of the cell."""

    def _warn(self) -> None:
        pass


@dataclass(frozen=True, slots=True)
class _Entry:
    location: str
    row: RunRow
    record: OpenedRecord | None = None
    stamp: int = -1
    """Of the commit that the row tells of."""


class Shelf:
    """Reads in a thread of its own: a folder may lie on a disk that is slow, or gone.

    `look` and `keep` return at once; `rows` and `opened` say what is known by now.

    Parameters
    ----------
    source : Source
        The run that the others stand beside.
    run : callable, optional
        Runs a task; a thread of its own unless given.

    Attributes
    ----------
    listed : bool
        The folder has been read since the last `look`.
    problem : str
        Why there is no list.
    n_left_out : int
        Records of the folder that are not listed.
    own : RunRow or None
        The run itself; None before the first `look`.
    """

    def __init__(self, source: Run, run: Callable[[Task], None] | None = None) -> None:
        self._source = source
        self._worker = Worker("notebook_probe runs")
        self.do = run or self._worker.do
        self._lock = threading.Lock()
        self._entries: dict[str, _Entry] = {}
        self._kept: tuple[str, ...] = ()
        self._looking = False
        self.listed = False
        self.problem = ""
        self.n_left_out = 0
        self.own: RunRow | None = None

    @property
    def folder(self) -> str:
        """The folder whose records are listed; empty where the run lies elsewhere."""
        path = local_path(self._source.location)
        return "" if path is None else path.parent.name or str(path.parent)

    def look(self) -> None:
        """Read the folder again, as far as it has changed."""
        if not self._looking:
            self._looking = True
            self.do(self._look)

    def keep(self, others: Sequence[str]) -> None:
        """Have these opened, wherever they are."""
        if tuple(others) != self._kept:
            self._kept = tuple(others)
            self.do(lambda: self._read_all(others))

    def rows(self) -> list[RunRow]:
        """What is known of each, those begun last first."""
        with self._lock:
            entries = list(self._entries.values())
        return [one.row for one in sorted(entries, key=_begun, reverse=True)]

    def opened(self, location: str) -> OpenedRecord | None:
        """The record of one that could be read; in this thread alone may it be read on."""
        entry = self._entries.get(resolved(location))
        return entry.record if entry else None

    def row(self, location: str) -> RunRow | None:
        """What is known of one."""
        entry = self._entries.get(resolved(location))
        return entry.row if entry else None

    def close(self) -> None:
        """Read nothing more."""
        self._worker.close()

    # ------------------------------------------------------------------- in the thread of its own

    def _look(self) -> None:
        self.own = run_row(self._source.location, self._source.name, self._source, "")
        try:
            found = neighbours(self._source.location)
            self.problem = ""
        except OSError as error:
            found, self.problem = [], f"{self.folder} cannot be listed: {error.strerror or error}"
        own = resolved(self._source.location)
        found = [one for one in found if resolved(one) != own]
        self.n_left_out = max(0, len(found) - MOST_LISTED)
        found = found[:MOST_LISTED]
        self._forget({resolved(one) for one in (*found, *self._kept)})
        for one in found:
            self._put(one, lambda entry: entry)
        self._read_all([*self._kept, *found])
        self._looking, self.listed = False, True

    def _read_all(self, locations: Iterable[str]) -> None:
        for one in locations:
            self._put(one, self._read)

    def _forget(self, kept: set[str]) -> None:
        with self._lock:
            self._entries = {key: one for key, one in self._entries.items() if key in kept}

    def _put(self, location: str, change: Callable[[_Entry], _Entry]) -> None:
        key = resolved(location)
        entry = self._entries.get(key) or _Entry(location, unread_row(location, stem(location)))
        if location in self._kept and entry.location != location:  # written as it was chosen
            entry = replace(entry, location=location, row={**entry.row, "run": location})
        changed = change(entry)
        with self._lock:
            self._entries[key] = changed

    def _read(self, entry: _Entry) -> _Entry:
        """The entry as its record is now; a row with the reason where it cannot be read."""
        location, name = entry.location, stem(entry.location)
        now = stamp(location)
        if entry.record is not None and now and now == entry.stamp:
            return entry
        try:
            record = entry.record or Other(first_record(location))
            if UNWRITTEN_OF in record.attrs:
                raise ValueError("rows that another record lacks: its next writer takes them in")
            _ = record.revision  # looks for a newer commit
            problem = "; ".join(map(str, record.problems))
            differs = differences(self._source, record).text
            row = run_row(location, name, record, differs, problem)
        except Exception as error:  # a record may be anybody's, on a disk that has gone
            problem = f"cannot be read: {error}"
            return _Entry(location, unread_row(location, name, problem), None, now)
        return _Entry(location, row, record, now)


def _begun(entry: _Entry) -> float:
    return entry.row["begun_ms"] or entry.stamp / 1e6
