"""How a run ends: by its owner, with its model, or with the interpreter."""

from __future__ import annotations

import threading
import weakref
from typing import Any

from notebook_probe.probes.observer import Observer
from notebook_probe.probes.reading.closed_steps import ClosedSteps
from notebook_probe.record.write.writer import RecordWriter
from notebook_probe.run.alerting import Alarm
from notebook_probe.run.gate import Gate

__all__ = ["EndOnThread", "end"]


def end(
    gate: Gate,
    observer: Observer,
    steps: ClosedSteps,
    alarm: Alarm,
    writer: RecordWriter,
    fresh: bool,
) -> None:
    """Record the last step, take every hook off, and finish the record."""
    gate.close()
    observer.close()
    unfinished = steps.unfinished(observer.frame)
    if unfinished is not None:
        steps.keep(unfinished)
    steps.drain()
    alarm.look(whole=True)
    writer.close()
    if fresh:  # a folder of our own choosing that nothing was recorded in
        writer.discard_if_empty()


class EndOnThread:
    """A garbage collector's callback, which must not write files in the midst of anything.

    Parameters
    ----------
    ends : weakref.finalize
        What is to be done, once.
    """

    def __init__(self, ends: weakref.finalize[Any, Any]) -> None:
        self._ends = ends
        self._thread: threading.Thread | None = None

    def __call__(self, _: object) -> None:
        if self._ends.alive:  # not after close(), and not while the interpreter exits
            self._thread = threading.Thread(target=self._ends, name="notebook-probe-end")
            self._thread.start()

    def wait(self) -> None:
        """Return when an end that has begun here is over."""
        thread = self._thread
        if thread is not None and thread.is_alive() and thread is not threading.current_thread():
            thread.join()
