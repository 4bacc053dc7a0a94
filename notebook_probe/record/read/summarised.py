"""The summary of a record whose writer kept none, or of the rows with which one goes on."""

from __future__ import annotations

from collections.abc import Iterable

from notebook_probe.record.format.schema import EVALUATION, is_of_loop
from notebook_probe.record.format.source import ROOT, StreamView
from notebook_probe.record.format.summary import Summary, scalars_of
from notebook_probe.record.read.reader import OpenedRecord
from notebook_probe.record.views.branches.branches import read_name, rows_before

__all__ = ["current_summary", "summarised"]

PIECE = 1 << 16
"""Rows that are read at once."""


def current_summary(record: OpenedRecord) -> Summary:
    """As its writer kept it, if it is of the rows that are there; else from these."""
    kept = Summary.read(record.attrs)
    n_rows = sum(stream.n_rows for stream in record.paths.values())
    return kept if kept is not None and kept.n_rows == n_rows else summarised(record)


def summarised(record: OpenedRecord, step: int | None = None) -> Summary:
    """From the rows of the newest branch.

    Parameters
    ----------
    step : int, optional
        As it was when a training went on with this step; by default as it is.
    """
    summary = Summary(sum(stream.n_rows for stream in record.paths.values()))
    ends: list[tuple[int, int]] = []
    numbers = sorted(record.streams.values(), key=lambda one: read_name(one.name).rank)
    for stream in numbers:
        n = _length(stream, step)
        ends += _end(stream, n)
        of_states = stream.name.startswith(EVALUATION)
        for start in range(0, n, PIECE):
            summary = _with_rows(summary, stream, start, min(n, start + PIECE), of_states)
    for stream in record.elements.values():
        ends += _end(stream, _length(stream, step))
    return summary.with_events(record.events).with_ends(ends)


def _with_rows(
    summary: Summary, stream: StreamView, start: int, stop: int, of_states: bool
) -> Summary:
    names = [one.name for one in stream.variables if is_of_loop(one)]
    if ROOT not in stream.modules or not names:
        return summary
    steps = stream.steps(start, stop)
    for name in names:
        values = stream.values(name, start, stop, modules=[ROOT])
        summary = summary.with_scalars(scalars_of([name], steps, values), of_states=of_states)
    return summary


def _length(stream: StreamView, step: int | None) -> int:
    return stream.n_rows if step is None else rows_before(step, stream)


def _end(stream: StreamView, n: int) -> Iterable[tuple[int, int]]:
    """Updates completed with the last row, and when that came."""
    if n:
        updates = int(stream.steps(n - 1, n)[0]) + (not stream.name.startswith(EVALUATION))
        yield updates, int(stream.times(n - 1, n)[0])
