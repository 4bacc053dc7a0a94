"""How a run ends: by its owner, with its model, or with the interpreter."""

from __future__ import annotations

import threading
import weakref
from contextlib import ExitStack
from typing import Any

from torch import nn

from notebook_probe.record.write.closing import losses_as_warnings
from notebook_probe.run.last_state import read_last_state
from notebook_probe.run.parts import RunParts

__all__ = ["Life", "wait_for_ends"]

END_THREAD = "notebook-probe-end"


def wait_for_ends() -> None:
    """Wait for the runs whose models are gone, and which are being closed now."""
    for thread in threading.enumerate():
        if thread.name == END_THREAD and thread is not threading.current_thread():
            thread.join()


class Life:
    """How long a run goes on: until it is closed or dropped, or its model is.

    Parameters
    ----------
    run : object
        Held weakly.
    model : nn.Module
        Held weakly.
    parts : RunParts
    fresh : bool
        The record lies in a folder of our own choosing, which goes when it stays empty.
    """

    def __init__(self, run: object, model: nn.Module, parts: RunParts, fresh: bool) -> None:
        self._parts, self._fresh = parts, fresh
        self._ends = weakref.finalize(run, _end_by_itself, parts, fresh)
        parts.mirrors.at_exit = self._ends
        # A model that is dropped ends its run; from the garbage collector, so on another thread.
        self._end_with_model = _EndOnThread(self._ends)
        self._model = weakref.ref(model, self._end_with_model)

    @property
    def is_over(self) -> bool:
        return not self._ends.alive

    @property
    def model_is_gone(self) -> bool:
        return self._model() is None

    def end(self) -> None:
        """End it, or wait for an end that has begun; twice is fine.

        Raises
        ------
        RecordWriteError
            When the record is not whole; the run is over all the same.
        """
        if self._ends.detach() is not None:
            _end(self._parts, self._fresh)
        self._end_with_model.wait()


def _end(parts: RunParts, fresh: bool) -> None:
    """Record the last step, take every hook off, and finish the record."""
    with ExitStack() as ends:  # whatever goes wrong before, what was recorded is written
        if fresh:  # a folder of our own choosing that nothing was recorded in
            ends.callback(parts.writer.discard_if_empty)
        ends.callback(parts.mirrors.close)  # once the record is safe
        ends.callback(parts.writer.close)
        parts.gate.close()
        parts.observer.settle()
        parts.looks.finish(parts.observer.clock.step)
        parts.graphs.forget()
        _read_last_state(parts)
        parts.observer.close()
        unfinished = parts.steps.unfinished(parts.observer.frame)
        if unfinished is not None:
            parts.steps.keep(unfinished)
        parts.steps.close()
        parts.alarm.look(whole=True)
        parts.flight.write_due()


def _read_last_state(parts: RunParts) -> None:
    """Nothing that goes wrong in it keeps the run from ending."""
    try:
        read_last_state(parts.observer, parts.probes, parts.past)
    except Exception as error:
        why = f"the last state was not read: {type(error).__name__}: {error}"
        parts.writer.event(parts.observer.clock.step, "error", why)


def _end_by_itself(parts: RunParts, fresh: bool) -> None:
    """End it where nobody has called for it."""
    with losses_as_warnings():
        _end(parts, fresh)


class _EndOnThread:
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
            self._thread = threading.Thread(target=self._ends, name=END_THREAD)
            self._thread.start()

    def wait(self) -> None:
        """Return when an end that has begun here is over."""
        thread = self._thread
        if thread is not None and thread.is_alive() and thread is not threading.current_thread():
            thread.join()
