"""The same series of another run, for views that show two runs next to each other."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Any, cast

from notebook_probe.errors import ProbeError
from notebook_probe.explorer.messages.selection import PanelSelection
from notebook_probe.record.format.source import Source
from notebook_probe.record.read.reader import OpenedRecord
from notebook_probe.record.views.xarray_views import RunSource

__all__ = ["of_two_runs", "run_name"]

MOST_OPENED = 2
"""Other records that are kept open: opening one takes longer than reading on in it."""

Told = dict[str, Any]

_opened: OrderedDict[str, OpenedRecord] = OrderedDict()


def of_two_runs(
    source: Source, selection: PanelSelection, read: Callable[[Source], Sequence[Told]]
) -> Told | None:
    """Return the series of a run, each with that of the first compared run, if it has one.

    Parameters
    ----------
    source : Source
    selection : PanelSelection
    read : callable
        The series of one run.
    """
    own = read(source)
    if not own:
        return None
    there = selection.others[0] if selection.others else ""
    others = _read_there(there, read) if there else {}
    series = [{**one, "beside": others.get(one["name"])} for one in own]
    return {"series": series, "run": run_name(source)}


def run_name(source: Source) -> str:
    """Return the name of a run."""
    run = cast(RunSource, source)  # panels show runs and records, and both have a title
    return str(run.snapshot().attrs.get("title") or "this run")


def _read_there(place: str, read: Callable[[Source], Sequence[Told]]) -> dict[str, Told]:
    try:
        record = _record(place)
        name = run_name(record)
        return {one["name"]: {**one, "run": name} for one in read(record)}
    except (ProbeError, OSError, ValueError):
        # Its lines show the error; this run is still drawn.
        _opened.pop(place, None)
        return {}


def _record(place: str) -> OpenedRecord:
    found = _opened.pop(place, None) or OpenedRecord(place)
    _ = found.revision  # looks for a newer commit
    _opened[place] = found
    while len(_opened) > MOST_OPENED:
        _opened.popitem(last=False)
    return found
