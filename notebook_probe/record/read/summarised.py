"""Summary of a record whose writer kept none, or of the rows that a writer continues."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from notebook_probe.record.format.schema import EVALUATION, is_of_loop
from notebook_probe.record.format.source import ROOT, StreamView
from notebook_probe.record.format.summary import Summary, scalars_of
from notebook_probe.record.read.reader import OpenedRecord
from notebook_probe.record.views.branches.branches import read_name, rows_before

__all__ = ["current_summary", "summarised"]

PIECE = 1 << 16
"""Rows that are read at once."""


def current_summary(record: OpenedRecord) -> Summary:
    """Return the writer's summary if it matches the rows; else compute it from the rows."""
    kept = Summary.read(record.attrs)
    n_rows = sum(stream.n_rows for stream in record.paths.values())
    return kept if kept is not None and kept.n_rows == n_rows else summarised(record)


def summarised(record: OpenedRecord, step: int | None = None) -> Summary:
    """Summarize the rows of the newest branch.

    Parameters
    ----------
    step : int, optional
        State when a training continued at this step; by default the present one.
    """
    summary = Summary(sum(stream.n_rows for stream in record.paths.values()))
    ends: list[tuple[int, int]] = []
    numbers = sorted(record.streams.values(), key=lambda one: read_name(one.name).rank)
    for stream in numbers:
        n = _length(stream, step)
        ends += _end(stream, n)
        names = _logged_names(stream)
        for start in range(0, n, PIECE) if names else ():
            summary = _with_rows(summary, stream, names, start, min(n, start + PIECE))
    for stream in record.elements.values():
        ends += _end(stream, _length(stream, step))
    return summary.with_events(record.events).with_ends(ends)


def _logged_names(stream: StreamView) -> list[str]:
    """Return the names of scalars that the loop logged in a stream."""
    has_root = ROOT in stream.modules
    return [one.name for one in stream.variables if has_root and is_of_loop(one)]


def _with_rows(
    summary: Summary, stream: StreamView, names: Sequence[str], start: int, stop: int
) -> Summary:
    of_states = stream.name.startswith(EVALUATION)
    steps = stream.steps(start, stop)
    for name in names:
        values = stream.values(name, start, stop, modules=[ROOT])
        summary = summary.with_scalars(scalars_of([name], steps, values), of_states=of_states)
    return summary


def _length(stream: StreamView, step: int | None) -> int:
    return stream.n_rows if step is None else rows_before(step, stream)


def _end(stream: StreamView, n: int) -> Iterable[tuple[int, int]]:
    """Yield the updates completed with the last row, and its time."""
    if n:
        updates = int(stream.steps(n - 1, n)[0]) + (not stream.name.startswith(EVALUATION))
        yield updates, int(stream.times(n - 1, n)[0])
