"""The summary of a record, kept as its rows are published."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from notebook_probe.record.format.kinds import NAMED, NUMBERS
from notebook_probe.record.format.schema import EVALUATION, is_of_loop
from notebook_probe.record.format.source import ROOT, Event, Floats
from notebook_probe.record.format.summary import MOST_SCALARS, Summary, scalars_of
from notebook_probe.record.views.branches.line import events_of_line
from notebook_probe.record.write.streams.rows import BufferedRows
from notebook_probe.record.write.streams.stream import StreamWriter

__all__ = ["KeptSummary"]


class KeptSummary:
    """Summary of the run for the next commit; a failed commit changes nothing.

    Parameters
    ----------
    published : Summary
        Summary of the existing rows.
    """

    def __init__(self, published: Summary) -> None:
        self._published = replace(published, alerts={}, n_checkpoints=0)
        self._next = self._published
        self._n_events = self._n_next_events = 0

    def after(
        self,
        snapshot: Sequence[tuple[StreamWriter, BufferedRows]],
        events: Sequence[Event],
        size_bytes: int,
    ) -> Summary:
        """Return the summary with the rows and events that are published next."""
        new = events[self._n_events :] if self._n_events else events_of_line(events)
        summary = self._published.with_events(new).with_ends(_ends(snapshot))
        for stream, rows in snapshot:
            if stream.published < rows.stop:
                of_states = stream.name.startswith(EVALUATION)
                steps = rows.steps(stream.published, rows.stop)
                for names, values in _of_loop(stream, rows):
                    found = scalars_of(names, steps, values)
                    summary = summary.with_scalars(found, of_states=of_states)
        n_rows = sum(rows.stop for _, rows in snapshot)
        self._n_next_events = len(events)
        self._next = replace(summary, n_rows=n_rows, size_bytes=size_bytes)
        return self._next

    def commit(self) -> None:
        """Note that the last summary is published."""
        self._published, self._n_events = self._next, self._n_next_events


def _ends(snapshot: Sequence[tuple[StreamWriter, BufferedRows]]) -> Iterator[tuple[int, int]]:
    for stream, rows in snapshot:
        if stream.published < rows.stop and not stream.kind.is_blob:
            last = int(rows.steps(rows.stop - 1, rows.stop)[0])
            time_ms = int(rows.times(rows.stop - 1, rows.stop)[0])
            yield last + (not stream.name.startswith(EVALUATION)), time_ms


def _of_loop(stream: StreamWriter, rows: BufferedRows) -> Iterator[tuple[Sequence[str], Floats]]:
    """Yield names and values (row, name) that the loop logged in rows published next."""
    start, stop, axes = stream.published, rows.stop, rows.axes
    if stream.kind is NAMED:
        names = axes.modules[:MOST_SCALARS]
        yield names, rows.values(0, start, stop, range(len(names)))
    elif stream.kind is NUMBERS and ROOT in axes.module_index:
        column = [axes.module_index[ROOT]]
        places = [i for i, one in enumerate(axes.variables) if is_of_loop(one)]
        if places:
            values = [rows.values(place, start, stop, column) for place in places]
            yield [axes.variables[i].name for i in places], np.concatenate(values, axis=1)
