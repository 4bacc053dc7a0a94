"""The thread that ships: nothing that goes wrong there reaches training, and nothing is lost by it.

Files on disk wait to be shipped, never a queue in memory: however long the network is down, the
next shipment brings the newest state of each file once.
"""

from __future__ import annotations

import math
import os
import threading
import time
from collections.abc import Callable

from notebook_probe.errors import RecordLockedError
from notebook_probe.record.store.remote.lease import RENEW_S
from notebook_probe.record.store.remote.reached import failure
from notebook_probe.uninterrupted import InterruptibleCondition, join

__all__ = ["Shipper"]

FIRST_PAUSE_S, LONGEST_PAUSE_S = 1.0, 60.0
"""Pauses after an error; they double each time."""
CLOSE_S = 60.0
"""Seconds that closing tries to reach the store, and waits for its answer."""
SLACK_S = 1.0
"""Extra seconds for an attempt that ends just in time."""
QUIET_S = 20.0
"""Seconds without an answer after which the status reports the store."""


class Shipper:
    """Thread that calls ``ship`` every ``every_s`` seconds.

    Parameters
    ----------
    begin, ship, finish, keep : callable
        The first shipment, each one after it, the last, and the renewal of the lease in between.
    end : callable
        Called at the end with True if everything is in the store.
    """

    def __init__(
        self,
        begin: Callable[[], object],
        ship: Callable[[], object],
        finish: Callable[[], object],
        keep: Callable[[], object],
        end: Callable[[bool], object],
        every_s: float,
    ) -> None:
        self._error = ""
        self.done = False
        """Everything is in the store, and the thread has ended."""
        self._next: Callable[[], object] = begin
        self._ship, self._finish, self._keep, self._end = ship, finish, keep, end
        self._asked_at = math.inf
        """When something was asked of the store that it has not answered yet."""
        self._every_s = every_s
        self._shipped_at = -math.inf
        self._pause_s = 0.0
        self._is_lost = self._gave_up = False
        self._until: float | None = None
        """Set by closing: no attempt begins later."""
        self._requested = self._served = 0
        self._changed = InterruptibleCondition()
        self._pid = os.getpid()
        # A daemon: a store that never answers must not keep the interpreter from exiting.
        self._thread = threading.Thread(target=self._run, name="notebook_probe ship", daemon=True)

    @property
    def problem(self) -> str:
        """Known reason why not everything is in the store; empty if it may be."""
        waited_s = time.monotonic() - self._asked_at
        if waited_s > QUIET_S or (self._gave_up and not self.done):
            quiet = f"not shipped yet: no answer for {waited_s:.0f} s"
            return self._error or (quiet if waited_s > 0 else "not shipped yet")
        return self._error

    def answered(self) -> None:
        """Note that the store has answered."""
        self._asked_at = time.monotonic()

    @property
    def is_running(self) -> bool:
        return self._thread.is_alive()

    def start(self, timeout_s: float) -> bool:
        """Start the thread, and wait for the first shipment; whether it succeeded in time."""
        self._requested = 1
        self._thread.start()
        with self._changed:
            self._changed.wait_for(lambda: self._served, timeout_s)
            return bool(self._served) and not self.problem

    def flush(self, timeout_s: float) -> bool:
        """Ship everything in the spool; return False if that failed or took too long."""
        # In a forked child the thread does not exist, and there would be no answer.
        if os.getpid() != self._pid or not self._thread.is_alive():
            return self.done
        with self._changed:
            self._requested += 1
            ticket = self._requested
            self._changed.notify_all()
            over = self._thread.is_alive
            self._changed.wait_for(lambda: self._served >= ticket or not over(), timeout_s)
            return self._served >= ticket and not self.problem

    def close(self, patience_s: float | None = None) -> None:
        """Ship the rest, trying for so long, and end the thread; safe to call twice."""
        if os.getpid() != self._pid:
            return  # a forked child: the thread is its parent's
        with self._changed:
            wanted_s = CLOSE_S if patience_s is None else patience_s
            self._until = self._until or time.monotonic() + wanted_s
            self._changed.notify_all()
        if threading.current_thread() is not self._thread:  # the collector may run in any thread
            # An attempt that began in time may wait for its answer for much longer.
            join(self._thread, max(0.0, self._until - time.monotonic()) + SLACK_S)
            self._gave_up = self._thread.is_alive()

    def _run(self) -> None:
        while not self._is_over():
            self._wait()
            is_last = self._until is not None
            self._serve()
            self.done = is_last and not self._error
        self._end(self.done)

    def _is_over(self) -> bool:
        late = self._until is not None and time.monotonic() > self._until
        return self.done or late or (self._is_lost and self._until is not None)

    def _wait(self) -> None:
        """Wait for a shipment: by time, on request, or the last; after an error for its pause."""
        with self._changed:
            if self._until is not None:
                self._changed.wait(self._pause_s)
            elif self._pause_s:
                self._changed.wait_for(lambda: self._until is not None, self._pause_s)
            else:
                rest_s = max(0.0, self._shipped_at + self._every_s - time.monotonic())
                # Not longer than RENEW_S: the lease needs renewal between two shipments, too.
                self._changed.wait_for(self._is_requested, min(rest_s, RENEW_S))

    def _is_requested(self) -> bool:
        return self._until is not None or self._requested > self._served

    def _is_due(self) -> bool:
        late = time.monotonic() >= self._shipped_at + self._every_s
        return self._is_requested() or late or bool(self._pause_s)

    def _serve(self) -> None:
        """Ship what is due; after an error the next attempt comes later."""
        requested = self._requested
        if not self._is_lost:
            try:
                self._asked_at = time.monotonic()
                self._keep()
                if self._is_due():
                    self._next()
                    self._next, self._shipped_at = self._ship, time.monotonic()
                if self._until is not None:
                    self._finish()
            except RecordLockedError as error:
                self._is_lost = True
                self._error = f"nothing is shipped any more: {error}"
            except Exception as error:  # whatever it is: it must not end the thread
                self._error = f"not shipped yet: {failure(error)}"
                self._pause_s = min(max(2 * self._pause_s, FIRST_PAUSE_S), LONGEST_PAUSE_S)
            else:
                self._error, self._pause_s = "", 0.0
            finally:
                self._asked_at = math.inf
        with self._changed:
            self._served = requested
            self._changed.notify_all()
