"""The runs that may be compared with one: opened in a separate thread, a row of each."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from notebook_probe.compare import differences
from notebook_probe.explorer.draw.worker import Worker
from notebook_probe.explorer.others.places import first_record, neighbours, resolved, stamp
from notebook_probe.explorer.others.run_row import RunRow, run_row, unread_row
from notebook_probe.record.format.schema import UNWRITTEN_OF
from notebook_probe.record.read.reader import OpenedRecord
from notebook_probe.record.store.location import local_path, stem
from notebook_probe.record.views.xarray_views import RunSource

__all__ = ["Other", "Shelf", "Task"]

MOST_LISTED = 100
"""Maximum records of a folder that are read; older ones are only counted."""

Task = Callable[[], None]


class Other(OpenedRecord):
    """Another run's record; warnings about it are shown in its row, not in the cell."""

    def _warn(self) -> None:
        pass


@dataclass(frozen=True, slots=True)
class _Entry:
    location: str
    row: RunRow
    record: OpenedRecord | None = None
    stamp: int = -1
    """Stamp of the commit that the row was read from."""


class Shelf:
    """Read other runs in a thread: a folder may be on a disk that is slow or missing.

    `look` and `keep` return at once; `rows` and `opened` return what is known by now.

    Parameters
    ----------
    source : Source
        The run that the others are compared with.
    run : callable, optional
        Runs a task; default: in a new thread.

    Attributes
    ----------
    listed : bool
        The folder was read since the last `look`.
    problem : str
        Reason why there is no list.
    n_left_out : int
        Records of the folder that are not listed.
    own : RunRow or None
        The run itself; None before the first `look`.
    """

    def __init__(self, source: RunSource, run: Callable[[Task], None] | None = None) -> None:
        self._source = source
        self._worker = Worker("notebook_probe runs")
        self.do = run or self._worker.do
        # The worker adds and removes entries while the refresher's thread lists them.
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
        """Folder whose records are listed; empty if the run is not local."""
        path = local_path(self._source.location)
        return "" if path is None else path.parent.name or str(path.parent)

    def look(self) -> None:
        """Read the changes of the folder."""
        if not self._looking:
            self._looking = True
            self.do(self._look)

    def keep(self, others: Sequence[str]) -> None:
        """Keep these runs open, wherever they are."""
        if tuple(others) != self._kept:
            self._kept = tuple(others)
            self.do(lambda: self._read_all(others))

    def rows(self) -> list[RunRow]:
        """Return the rows of all runs, the last started first."""
        with self._lock:
            entries = list(self._entries.values())
        return [one.row for one in sorted(entries, key=_begun, reverse=True)]

    def opened(self, location: str) -> OpenedRecord | None:
        """Return the record of a run that could be read; only this thread may read it further."""
        entry = self._entries.get(resolved(location))
        return entry.record if entry else None

    def row(self, location: str) -> RunRow | None:
        """Return the row of one run."""
        entry = self._entries.get(resolved(location))
        return entry.row if entry else None

    def close(self) -> None:
        """Read nothing more."""
        self._worker.close()

    # ------------------------------------------------------------------- in its own thread

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
        # All names at once, so that the list is there before the first record has been read.
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
        if (
            location in self._kept and entry.location != location
        ):  # under the address that was chosen
            entry = replace(entry, location=location, row={**entry.row, "run": location})
        changed = change(entry)
        with self._lock:
            self._entries[key] = changed

    def _read(self, entry: _Entry) -> _Entry:
        """Return the entry from its present record; with the reason if it cannot be read."""
        location, name = entry.location, stem(entry.location)
        now = stamp(location)
        # The same commit: nothing in the record can have changed.
        if entry.record is not None and now and now == entry.stamp:
            return entry
        try:
            record = entry.record or Other(first_record(location))
            if UNWRITTEN_OF in record.attrs:
                raise ValueError("rows for another record: its next writer adds them")
            _ = record.revision  # looks for a newer commit
            problem = "; ".join(map(str, record.problems))
            differs = differences(self._source, record).text
            row = run_row(location, name, record, differs, problem)
        # Any process may have written the record, on a disk that was removed.
        except Exception as error:
            problem = f"cannot be read: {error}"
            return _Entry(location, unread_row(location, name, problem), None, now)
        return _Entry(location, row, record, now)


def _begun(entry: _Entry) -> float:
    return entry.row["begun_ms"] or entry.stamp / 1e6
