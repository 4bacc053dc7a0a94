"""Continuing an existing record: at which step, and with how many of its rows."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from notebook_probe.errors import RecordFormatError
from notebook_probe.record.format.chunks import Extent
from notebook_probe.record.format.notes import BRANCH, TRUNCATE
from notebook_probe.record.format.resume import Resume
from notebook_probe.record.format.schema import PYRAMID, level_name
from notebook_probe.record.format.source import Event, StreamView
from notebook_probe.record.format.summary import Summary
from notebook_probe.record.read.reader import OpenedRecord
from notebook_probe.record.read.stored import StoredStream
from notebook_probe.record.read.stored_level import StoredLevel
from notebook_probe.record.read.summarised import current_summary, summarised
from notebook_probe.record.store.location import ROOT_KEY, is_unused
from notebook_probe.record.views.branches.branches import (
    IN_ORDER,
    Branches,
    is_of_states,
    read_name,
    rows_before,
)
from notebook_probe.record.write.flusher import Flusher

__all__ = ["Beginning", "begin", "extents", "old_record", "remaining_summary", "take_over"]


@dataclass(frozen=True, slots=True)
class Beginning:
    """Starting point of a writer."""

    first_step: int = 0
    starts: tuple[int, ...] = (0,)
    """First step of every branch; the last one is written."""
    n_rows: Mapping[str, int] = field(default_factory=dict)
    """Rows that stay of each stream, by path."""
    events: tuple[Event, ...] = ()
    removed: str = ""
    """Sentence with the steps that are removed; empty if none is."""

    @property
    def branch(self) -> int:
        return len(self.starts)


def old_record(folder: Path) -> OpenedRecord | None:
    """Return the existing record, or None for an unused place.

    Raises RecordFormatError for anything else.
    """
    if folder.is_dir() and is_unused(folder):
        return None
    if not (folder / ROOT_KEY).is_file():
        what = "a folder with other files" if folder.is_dir() else "a file"
        raise RecordFormatError(f"{folder} is {what}, not a record; nothing was changed")
    old = OpenedRecord(folder)
    if old.problems:  # unreadable parts would be lost by continuing
        raise old.problems[0]
    return old


def begin(old: OpenedRecord | None, resume: Resume) -> Beginning:
    """Return the starting point: after the last step, at an earlier one, on a new branch."""
    if old is None:
        return Beginning(resume.step or 0)
    starts, n_rows = Branches.of(old.attrs).starts, _all_rows(old)
    own = [path for path in n_rows if read_name(old.paths[path].name).branch == len(starts)]
    first = resume.step
    if first is None:
        first = max(starts[-1], _next_step(old.paths[path] for path in own))
    events: tuple[Event, ...] = ()
    removed = ""
    if resume.branches:
        text = f"branch {len(starts) + 1} begins; branch {len(starts)} is kept unchanged"
        starts, events = (*starts, first), (_event(first, BRANCH, text),)
    elif resume.step is not None:
        remaining = {path: rows_before(first, old.paths[path]) for path in own}
        starts = (*starts[:-1], min(starts[-1], first))
        events = _removal(first, {path: n_rows[path] - n for path, n in remaining.items()})
        removed = _removed_steps(old, {path: (n, n_rows[path]) for path, n in remaining.items()})
        n_rows |= remaining
    return Beginning(first, starts, n_rows, events, removed)


def remaining_summary(old: OpenedRecord | None, beginning: Beginning) -> Summary:
    """Return the summary of what remains of ``old``."""
    if old is None:
        return Summary()
    n_old, n_starts = _all_rows(old), len(Branches.of(old.attrs).starts)
    if dict(beginning.n_rows) == n_old and beginning.branch == n_starts:
        return current_summary(old)
    return summarised(old, beginning.first_step)


def _all_rows(old: OpenedRecord) -> dict[str, int]:
    return {path: stream.n_rows for path, stream in old.paths.items()}


def _next_step(streams: Iterable[StreamView]) -> int:
    """Return the step after the last trained one; an evaluation is about the state before."""
    in_order = [one for one in streams if read_name(one.name).rank == IN_ORDER and one.n_rows]
    ends = (_last_step(one) + (not is_of_states(one)) for one in in_order)
    return max(ends, default=0)


def _last_step(stream: StreamView) -> int:
    return int(stream.steps(stream.n_rows - 1, stream.n_rows)[0])


def _removed_steps(old: OpenedRecord, rows: Mapping[str, tuple[int, int]]) -> str:
    """Return which steps have these rows, of each stream by its path; empty without a row."""
    steps = {
        int(step)
        for path, (start, stop) in rows.items()
        if start < stop
        for step in old.paths[path].steps(start, stop)
    }
    if not steps:
        return ""
    first, last, n = min(steps), max(steps), len(steps)
    which = f"step {first}" if n == 1 else f"{n} steps from step {first} to {last}"
    return f"removed {which}, which the record had"


def _removal(step: int, removed: Mapping[str, int]) -> tuple[Event, ...]:
    parts = [f"{n} of {path}" for path, n in removed.items() if n]
    if not parts:
        return ()
    text = f"rows of step {step} and later were removed: {', '.join(parts)}"
    return (_event(step, TRUNCATE, text),)


def _event(step: int, kind: str, text: str) -> Event:
    return Event(step, time.time_ns() // 1_000_000, kind, text)


def extents(old: OpenedRecord | None, n_rows: Mapping[str, int] | None = None) -> dict[str, Extent]:
    """Shape and chunks of the arrays of ``old`` by path, as published or cut to ``n_rows``."""
    if old is None:
        return {}
    lengths = _all_rows(old) if n_rows is None else n_rows
    return {
        f"{path}/{name}": extent if name in unstepped else _of_length(extent, n)
        for stream_path, stream in old.paths.items()
        for unstepped in [{"module", *stream.column_arrays}]
        for path, group, n in _groups(stream_path, stream, lengths[stream_path])
        for name, extent in group.extents().items()
    }


def _of_length(extent: Extent, n: int) -> Extent:
    return replace(extent, shape=(min(n, extent.shape[0]), *extent.shape[1:]))


def _groups(
    path: str, stream: StoredStream, n_rows: int
) -> Iterator[tuple[str, StoredStream | StoredLevel, int]]:
    """Yield a stream and its pyramid, each with its path and its length at ``n_rows``."""
    yield path, stream, n_rows
    for size, level in stream.levels.items():
        yield f"{PYRAMID}/{stream.name}/{level_name(size)}", level, n_rows // size


def take_over(old: OpenedRecord | None, flusher: Flusher, beginning: Beginning) -> None:
    """Continue with what remains of ``old``."""
    if old is None:
        return
    flusher.events.extend([*old.all_events, *beginning.events])
    for path, stored in old.paths.items():
        n = beginning.n_rows[path]
        flusher.begin(
            stored.name,
            stored.long_name,
            stored.kind,
            n_rows=n,
            last_step=int(stored.steps(n - 1, n)[0]) if n else -1,
            modules=stored.modules,
            variables=stored.variables,
        )
