"""Background thread that mirrors recorded rows; training never waits for it."""

from __future__ import annotations

import atexit
import contextvars
import threading
import time
import warnings
from collections.abc import Callable
from typing import Protocol

from notebook_probe.errors import RecordWarning
from notebook_probe.record.write.writer import RecordWriter
from notebook_probe.run.mirror.loggers import read_logger
from notebook_probe.run.mirror.new_rows import NewRows
from notebook_probe.uninterrupted import join, uninterrupted

__all__ = ["Mirror", "Mirrors", "RunReader"]

EVERY_S = 1.0
SLICE_S = 0.005
REST = 9
"""Rest after work, as a multiple of its time.

A training that shares the interpreter keeps nine tenths of it. Rows that wait are in the record.
"""
PATIENCE_S = 60.0
"""Seconds that closing waits for a logger that does not respond."""


class Mirror:
    """Copy recorded numbers to a logger, from `Run.mirror` on until it or the run is closed.

    As a context manager it closes at the end.

    Parameters
    ----------
    logger : object
    writer : RecordWriter
    bring : callable
        Records everything that waits.

    Attributes
    ----------
    step : int
        Last step that was sent, -1 before the first.
    left_out : int
        Steps that the logger cannot take because they came after greater ones.
    problem : str
        Reason why it ended before it was closed, as text.
    """

    def __init__(self, logger: object, writer: RecordWriter, bring: Callable[[], None]) -> None:
        self._taker, self._bring = read_logger(logger), bring
        self.logger = logger
        self.step, self.left_out, self.problem = -1, 0, ""
        self._writer = writer
        self._rows = NewRows(writer.source, writer.first_step)
        self._closing = threading.Event()
        self._n_handed = 0
        # In the caller's context, where some loggers keep which run is theirs.
        run = contextvars.copy_context().run
        self._thread = threading.Thread(
            target=run, args=(self._run,), name="notebook_probe mirror", daemon=True
        )
        self._thread.start()

    @property
    def closed(self) -> bool:
        return self._closing.is_set() or bool(self.problem)

    def close(self) -> None:
        """Hand on everything that was recorded so far, and end; twice is fine."""
        if not self.closed:
            self._bring()
        with uninterrupted:
            self._closing.set()
        while self._thread.is_alive() and self._thread is not threading.current_thread():
            before = self._n_handed
            join(self._thread, PATIENCE_S)
            if self._thread.is_alive() and before == self._n_handed:
                self._end(f"the logger has taken nothing for {PATIENCE_S:g} s")
                return

    def __enter__(self) -> Mirror:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        state = self.problem or ("closed" if self.closed else "open")
        left = f", {self.left_out} steps left out" if self.left_out else ""
        return f"<Mirror to {_name(self.logger)}: {state}, up to step {self.step}{left}>"

    def _run(self) -> None:
        try:
            while not self._closing.wait(EVERY_S):
                self._hand_on(whole=False)
            self._hand_on(whole=True)
        except Exception as error:  # an error of the logger, or of reading: training must continue
            self._end(f"{type(error).__name__}: {error}")

    def _hand_on(self, *, whole: bool) -> None:
        begun_s = time.thread_time()
        for step, values in self._rows.take(whole):
            if self.problem:  # closing has given it up
                return
            self._hand(step, values)
            worked_s = time.thread_time() - begun_s
            if worked_s > SLICE_S:
                self._closing.wait(REST * worked_s)
                begun_s = time.thread_time()

    def _hand(self, step: int, values: dict[str, float]) -> None:
        if not values:
            return
        if self._taker.grows and step < self.step:
            self.left_out += 1
            return
        self._taker.put(step, values)
        self.step = max(step, self.step)
        self._n_handed += 1

    def _end(self, why: str) -> None:
        """Report once why nothing more is mirrored."""
        if self.problem:
            return
        self.problem = f"the mirror to {_name(self.logger)} is off: {why}"
        self._writer.event(self._writer.last_step + 1, "error", self.problem)
        warnings.warn(f"{self.problem}. The record has everything", RecordWarning, stacklevel=2)


class RunReader(Protocol):
    """Reader of a run on a separate thread, which ends with the run."""

    @property
    def closed(self) -> bool: ...
    @property
    def problem(self) -> str:
        """Reason why it does not read or report, as text; empty if it does."""
        ...

    def close(self) -> None:
        """Copy the remaining rows, and end."""


class Mirrors:
    """The mirrors of a run, and its other readers.

    Parameters
    ----------
    writer : RecordWriter
    bring : callable
        Records everything that waits.

    Attributes
    ----------
    at_exit : callable
        Called at the program's exit.
    """

    def __init__(self, writer: RecordWriter, bring: Callable[[], None]) -> None:
        self._writer, self._bring = writer, bring
        self.at_exit: Callable[[], object] = self.close
        self._all: tuple[RunReader, ...] = ()

    def add(self, logger: object) -> Mirror:
        """Add a mirror to ``logger``, or return the open one, so that a cell can run again."""
        for mirror in self._all:
            if isinstance(mirror, Mirror) and mirror.logger is logger and not mirror.closed:
                return mirror
        mirror = Mirror(logger, self._writer, self._bring)
        self.keep(mirror)
        return mirror

    def keep(self, reader: RunReader) -> None:
        """Close a reader when the run is over, and show its problem until then."""
        self._all = (*(one for one in self._all if not one.closed), reader)
        atexit.register(self.at_exit)  # the last comes first: before the logger ends itself

    @property
    def problem(self) -> str:
        """Problem of a reader, such as why a mirror has ended, as text; empty if none has one."""
        return next((reader.problem for reader in self._all if reader.problem), "")

    def close(self) -> None:
        """Close every reader, which reads the remaining rows."""
        atexit.unregister(self.at_exit)
        for reader in self._all:
            reader.close()


def _name(logger: object) -> str:
    """Return the name of a module, else of the class."""
    return getattr(logger, "__name__", "") or type(logger).__name__
