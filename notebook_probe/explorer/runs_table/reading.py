"""Details of one run in a table besides its values: the line of its loss, and its alerts."""

from __future__ import annotations

from collections import OrderedDict
from typing import TypedDict

from notebook_probe.alerts.listing import read_alerts
from notebook_probe.explorer.others.places import first_record, stamp
from notebook_probe.explorer.others.run_row import line_of
from notebook_probe.explorer.others.shelf import Other
from notebook_probe.lineage.progress import scalar_of
from notebook_probe.record.read.reader import OpenedRecord

__all__ = ["LookedAt", "Records", "looked_at"]

MOST_OPENED = 24
"""Records that are kept open; it takes longer to open one than to read on in it."""

MOST_TOLD = 6
"""Alerts whose words a badge has."""

SEVERE = "severe"


class LookedAt(TypedDict):
    """Loss and alerts of one record."""

    scalar: str
    """Scalar that the line shows; empty if none was logged."""
    line: list[float | None]
    last: float | None
    alerts: list[str]
    """Newest first, the first few."""
    n_alerts: int
    severe: bool
    """True if any alert is severe."""
    problem: str
    """Reason why the record cannot be read; the other fields are empty then."""


class Records:
    """Opened records by location; for one thread."""

    def __init__(self) -> None:
        self._opened: OrderedDict[str, OpenedRecord] = OrderedDict()
        self._stamps: dict[str, int] = {}

    def record(self, place: str) -> OpenedRecord:
        """Return the current record at a location.

        Raises
        ------
        RecordFormatError, OSError
            It cannot be read.
        """
        found = self._opened.pop(place, None) or Other(first_record(place))
        self._stamps[place] = stamp(place)
        _ = found.revision  # looks for a newer commit
        self._opened[place] = found
        while len(self._opened) > MOST_OPENED:
            self._opened.popitem(last=False)
        return found

    def forget(self, place: str) -> None:
        """Open the record again next time: another may be there."""
        self._opened.pop(place, None)

    def has_changed(self, place: str) -> bool:
        """Return whether a local record has another commit since it was read."""
        return stamp(place) != self._stamps.get(place)


def looked_at(records: Records, place: str) -> LookedAt:
    """Return a few numbers of a record and its alerts in words, or why there are none."""
    try:
        record = records.record(place)
        scalar = scalar_of(record)
        line, last = line_of(record, scalar) if scalar else ([], None)
        alerts = read_alerts(record.events)
    # Any process may have written the record, on a disk that was removed.
    except Exception as error:
        records.forget(place)
        return _with_problem(f"cannot be read: {error}")
    told = [f"step {one.step}: {one.text}" for one in reversed(alerts)]
    severe = any(one.severity == SEVERE for one in alerts)
    return {
        **_with_problem(""),
        "scalar": scalar,
        "line": line,
        "last": last,
        "alerts": told[:MOST_TOLD],
        "n_alerts": len(told),
        "severe": severe,
    }


def _with_problem(problem: str) -> LookedAt:
    return {
        "scalar": "",
        "line": [],
        "last": None,
        "alerts": [],
        "n_alerts": 0,
        "severe": False,
        "problem": problem,
    }
