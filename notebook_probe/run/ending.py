"""How a run ends: by its owner, with its model, or with the interpreter."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable
from typing import Any

from notebook_probe.probes.observer import Observer
from notebook_probe.record.write.writer import RecordWriter
from notebook_probe.run.alerting import Alarm
from notebook_probe.run.gate import Gate
from notebook_probe.run.rows import RowKeeper

__all__ = ["end", "ending_on_a_thread"]


def end(
    gate: Gate,
    observer: Observer,
    rows: RowKeeper,
    alarm: Alarm,
    writer: RecordWriter,
    fresh: bool,
) -> None:
    """Record the last step, take every hook off, and finish the record."""
    gate.close()
    observer.close()
    unfinished = rows.unfinished(observer.frame)
    if unfinished is not None:
        rows.keep(unfinished)
    rows.drain()
    alarm.look(whole=True)
    writer.close()
    if fresh:  # a folder of our own choosing that nothing was recorded in
        writer.discard_if_empty()


def ending_on_a_thread(ends: weakref.finalize[Any, Any]) -> Callable[[object], None]:
    """For a garbage collector's callback, which must not write files in the midst of anything."""

    def begin(_: object) -> None:
        if ends.alive:  # not after close(), and not while the interpreter exits
            threading.Thread(target=ends, name="notebook-probe-end").start()

    return begin
