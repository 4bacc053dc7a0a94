"""End of a run: by its owner, with its model, or with the interpreter."""

from __future__ import annotations

import threading
import weakref
from collections import deque
from collections.abc import Callable
from functools import partial
from typing import Any

from torch import nn

from notebook_probe.record.write.closing import end_once, losses_as_warnings
from notebook_probe.run.backfill import read_last_state
from notebook_probe.run.parts import RunParts
from notebook_probe.uninterrupted import join, whole

__all__ = ["Life", "wait_for_ends"]

END_THREAD = "notebook-probe-end"

LOOK_AGAIN_S = 0.02
"""Seconds between two checks whether an awaited end was interrupted."""


def wait_for_ends() -> None:
    """Wait for runs that are being closed because their models were collected."""
    for thread in threading.enumerate():
        if thread.name == END_THREAD and thread is not threading.current_thread():
            # Found by name, as the runs themselves are gone.
            join(thread)


class Life:
    """Lifetime of a run: until it is closed or dropped, or its model is collected.

    Parameters
    ----------
    run : object
        Held weakly.
    model : nn.Module
        Held weakly.
    parts : RunParts
    fresh : bool
        The record is in a generated folder, which is removed if it stays empty.
    """

    def __init__(self, run: object, model: nn.Module, parts: RunParts, fresh: bool) -> None:
        self._ending = _Ending(parts, fresh)
        self._ends = weakref.finalize(run, _end_by_itself, self._ending)
        parts.mirrors.at_exit = self._ends
        # A model that is dropped ends its run; from the garbage collector, so on another thread.
        self._end_with_model = _EndOnThread(self._ends)
        # Weakly: `ends` keeps the parts, which must not keep this object. Otherwise a run that is
        # collected together with its model would be ended here and on another thread.
        await_last_step = weakref.WeakMethod(self.await_last_step)
        parts.source.await_end = lambda: _call(await_last_step)
        self._model = weakref.ref(model, self._end_with_model)

    @property
    def is_over(self) -> bool:
        return self._ending.has_begun or not self._ends.alive

    @property
    def model_is_gone(self) -> bool:
        return self._model() is None

    def await_last_step(self) -> None:
        """Return when an end that is under way elsewhere has recorded the last step."""
        while self._ending.is_about_to_record or self._end_with_model.is_running:
            if self._ending.has_recorded.wait(LOOK_AGAIN_S):
                return

    def await_end(self) -> None:
        """Return when an end that has begun with its model is over."""
        self._end_with_model.wait()

    def end(self) -> None:
        """End the run, or wait for an end that has started; may be called twice.

        An interrupt leaves the rest to the next call, or to the program's exit.

        Raises
        ------
        RecordWriteError
            The record is incomplete; the run is over anyway.
        """
        end_once(self._ends, self._ending)
        self._end_with_model.wait()


def _call(method: weakref.WeakMethod[Callable[[], None]]) -> None:
    """Call a method if its object still exists."""
    act = method()
    if act is not None:
        act()


class _Ending:
    """Actions that end a run: each runs once, and is then forgotten.

    An error does not prevent the later actions; it is raised at the end.
    """

    def __init__(self, parts: RunParts, fresh: bool) -> None:
        self.has_begun = False
        """Every hook is off, or will be in a moment."""
        acts: list[Callable[[], object]] = [
            partial(_take_off, parts),
            lambda: parts.writer.close(),
            lambda: parts.mirrors.close(),  # once the record is safe
        ]
        if fresh:  # a folder that we chose, in which nothing was recorded
            acts.append(lambda: parts.writer.discard_if_empty())
        self._first, self._acts = acts[0], deque(acts)
        self._failure: Exception | None = None
        # Reentrant: what is ended below may ask for the same end on this thread.
        self._turn = threading.RLock()
        self._is_running = False
        self._thread = 0
        self.has_recorded = threading.Event()
        """Nothing of the training will be recorded any more."""

    @property
    def is_about_to_record(self) -> bool:
        """Another thread than this one takes the last step in now."""
        is_elsewhere = self._thread != threading.get_ident()
        return self._is_running and is_elsewhere and not self.has_recorded.is_set()

    def __call__(self) -> None:
        with self._turn:
            if self._is_running:  # something that it ends asks for the same end
                return
            try:
                self._thread = threading.get_ident()
                self._is_running = self.has_begun = True
                self._act()
            finally:
                self._is_running = False
                self.has_begun = self._first not in self._acts

    def _act(self) -> None:
        while self._acts:
            try:
                self._acts[0]()
            except Exception as error:
                # All acts are done; the last error is raised, with the earlier ones as its context.
                error.__context__ = error.__context__ or self._failure
                self._failure = error
            self._acts.popleft()  # only now: an interrupted act is done again
            self.has_recorded.set()  # by the first of them
        failure, self._failure = self._failure, None
        if failure is not None:
            raise failure


@whole
def _take_off(parts: RunParts) -> None:
    """Record the last step, and take every hook off."""
    # First: a training that is paused on another thread continues, and passes the hooks below.
    parts.gate.close()
    parts.observer.steps.settle()
    parts.looks.finish_all(parts.observer.clock.step)
    parts.graphs.forget()
    parts.examinations.forget()
    _read_last_state(parts)
    parts.observer.close()
    parts.facts.close()
    unfinished = parts.steps.apart.unfinished(parts.observer.steps.frame)
    if unfinished is not None:
        parts.steps.keep(unfinished)
    parts.steps.close()
    # After all rows are there: rules see the last step, too.
    parts.alarm.look_at_references()
    parts.alarm.look(whole=True)
    parts.flight.write_due()
    parts.output.end()


def _read_last_state(parts: RunParts) -> None:
    """Read the last state; an error in it does not prevent the end."""
    try:
        read_last_state(parts.observer, parts.probes, parts.past)
    except Exception as error:
        why = f"the last state was not read: {type(error).__name__}: {error}"
        parts.writer.event(parts.observer.clock.step, "error", why)


def _end_by_itself(ending: Callable[[], None]) -> None:
    """End a run that was never closed."""
    with losses_as_warnings():
        ending()


class _EndOnThread:
    """A garbage collector's callback, which must not write files at an arbitrary moment.

    Parameters
    ----------
    ends : weakref.finalize
        Work to be done, once.
    """

    def __init__(self, ends: weakref.finalize[Any, Any]) -> None:
        self._ends = ends
        self._thread: threading.Thread | None = None

    def __call__(self, _: object) -> None:
        if self._ends.alive:  # not after close(), and not while the interpreter exits
            # No daemon: the interpreter waits until the record is complete.
            self._thread = threading.Thread(target=self._ends, name=END_THREAD)
            self._thread.start()

    @property
    def is_running(self) -> bool:
        """The model is gone, and another thread than this one ends the run."""
        thread = self._thread
        if thread is None or thread is threading.current_thread():
            return False
        return thread.is_alive()

    def wait(self) -> None:
        """Wait for an end that has started here."""
        if self.is_running and self._thread is not None:
            join(self._thread)
