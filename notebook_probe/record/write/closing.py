"""Closing a record, and reporting rows that could not be written."""

from __future__ import annotations

import threading
import warnings
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from notebook_probe.errors import RecordWarning, RecordWriteError
from notebook_probe.record.format.schema import DROPPED_ROWS
from notebook_probe.record.format.source import ModuleRow
from notebook_probe.record.store.place import RecordFolder
from notebook_probe.record.write.flusher import Flusher
from notebook_probe.record.write.recorded_source import RecordedSource
from notebook_probe.record.write.unwritten import keep
from notebook_probe.uninterrupted import whole

__all__ = ["close_by_itself", "close_record", "end_once", "flush_record", "losses_as_warnings"]


def end_once(ends: weakref.finalize[..., Any], act: Callable[[], object]) -> None:
    """End everything that a finalizer would end; after an interrupt this, or it, does the rest."""
    if ends.alive:
        try:
            act()
        except Exception:
            ends.detach()
            raise
        ends.detach()


def close_record(flusher: Flusher, place: RecordFolder, source: RecordedSource) -> None:
    """Write the rest, mark the record closed, and close it.

    Raises
    ------
    RecordWriteError
        The record is incomplete.

    Warns
    -----
    RecordWarning
        Rows were lost on the way, and all else was written.
    """
    flusher.close()
    place.close()
    if not flusher.is_ours:
        return
    if flusher.last_error:
        flusher.last_error = _kept(flusher, place, source.modules)
        raise RecordWriteError(f"{place.name}: {flusher.last_error}")
    if place.problem:
        raise RecordWriteError(f"{place.name}: {place.problem}")
    lost = flusher.losses
    if lost.n_rows and not flusher.stopped:
        text = f"{place.name}: {_lost(lost.n_rows)}: {lost.why}"
        warnings.warn(text, RecordWarning, stacklevel=2)


def flush_record(flusher: Flusher, place: RecordFolder, timeout_s: float) -> None:
    """Write what waits.

    Raises
    ------
    RecordWriteError
        The rows cannot be written; they continue to wait.

    Warns
    -----
    RecordWarning
        Writing takes longer than allowed, or the rows are written here and could not be shipped
        yet.
    """
    if (flusher.flush(timeout_s) and place.flush(timeout_s)) or not flusher.is_ours:
        return
    waiting, lost = f"{place.name}: {_rows(flusher.unwritten_rows)} in memory", flusher.losses
    if flusher.last_error:
        before = f" ({_lost(lost.n_rows)} before: {lost.why})" if lost.n_rows else ""
        raise RecordWriteError(f"{waiting} cannot be written: {flusher.last_error}{before}")
    slow = f"{waiting}; writing takes longer than {timeout_s:g} s, and continues"
    text = f"{place.name}: {place.problem}" if place.problem else slow
    warnings.warn(text, RecordWarning, stacklevel=4)


def close_by_itself(flusher: Flusher, place: RecordFolder, source: RecordedSource) -> None:
    """Close without a call of the user: from the garbage collector, or at the program's exit."""
    if flusher.is_its_thread:  # the collector may run in any, and this one is waited for
        thread = threading.Thread(target=close_by_itself, args=(flusher, place, source))
        thread.start()
        return
    with losses_as_warnings():
        close_record(flusher, place, source)


@contextmanager
def losses_as_warnings() -> Iterator[None]:
    """Convert write errors to warnings where an error would hit unrelated code."""
    try:
        yield
    except RecordWriteError as error:
        warnings.warn(str(error), RecordWarning, stacklevel=3)


@whole
def _kept(flusher: Flusher, place: RecordFolder, modules: tuple[ModuleRow, ...]) -> str:
    """Save what waits; what could not be written, why, and where it is."""
    why = flusher.last_error
    if flusher.is_whole:
        return f"all rows were written, but not all went well: {why}"
    n_rows, lost = flusher.unwritten_rows, flusher.losses
    said = f"{_rows(n_rows) if n_rows else 'events'} could not be written: {why}"
    if lost.n_rows:
        said += f" ({_lost(lost.n_rows)} before: {lost.why})"
    attrs = {**flusher.attrs, DROPPED_ROWS: flusher.all_losses}
    streams, events = [*flusher.streams.values()], tuple(flusher.events)
    kept = keep(place.folder, attrs, modules, streams, events)
    if kept is None:
        return f"{said}. They are lost, as no other place could be written either"
    return (
        f"{said}. They are kept in {kept}, a separate record that notebook_probe.open_run reads; "
        f"the next run that continues the record takes them in"
    )


def _rows(n: int) -> str:
    return "1 row" if n == 1 else f"{n} rows"


def _lost(n: int) -> str:
    return f"{_rows(n)} {'was' if n == 1 else 'were'} lost"
