"""The thread that redraws a panel: as often as is useful, never for more than a few per cent."""

from __future__ import annotations

import os
import threading
import time
import weakref
from collections.abc import Callable
from typing import Protocol

from notebook_probe.uninterrupted import join, uninterrupted

__all__ = ["Refresher", "n_cores", "pause_s"]

SHARE = 0.02
"""Share of one core, unless that makes refreshes too rare; sending takes half as much again."""
SHORTEST_S = {1: 1.0, 2: 0.66, 3: 0.4}
"""Shortest pause by number of cores: a browser may share them, and needs more than we do."""
WATCHED_S = {1: 2.0, 2: 1.5, 3: 0.8}
"""The same while nobody clicks. Where a training shares two cores with a browser, it loses about
three times the CPU time of a refresh, since the interpreter's lock passes between threads."""
USED_S = 5.0
"""Seconds after a click, or an answer to one, in which refreshes come as often as they may."""
LONGEST_S = 2.0
"""A view takes a kernel that is silent for 3 s to be gone."""


class Refreshable(Protocol):
    """Object that can be redrawn."""

    def refresh(self) -> None: ...


class Refresher:
    """Call ``refresh`` of its owner until it is closed or the owner has been collected.

    Parameters
    ----------
    owner : object with ``refresh()``
        Referenced weakly, so that an unreferenced panel ends, and its run with it.
    ended : callable
        Called in the thread after the last refresh; must not refer to the owner.
    """

    def __init__(self, owner: Refreshable, ended: Callable[[], None]) -> None:
        self._woken = threading.Event()
        woken = self._woken  # self in the callback would be a cycle
        self._owner = weakref.ref(owner, lambda _: woken.set())
        self._ended = ended
        self._closing = False
        self._used_until = time.monotonic() + USED_S
        # A daemon: a forgotten panel must not keep the interpreter from exiting.
        self._thread = threading.Thread(target=self._run, name="notebook_probe panel", daemon=True)
        self._thread.start()

    def wake(self, *, is_used: bool = True) -> None:
        """Refresh now rather than at the next turn, and often for a while if it is used."""
        if is_used:
            self._used_until = time.monotonic() + USED_S
        with uninterrupted:  # on the thread that trains
            self._woken.set()

    def close(self) -> None:
        """End the thread; waits for a refresh under way, unless called from it."""
        self._closing = True
        self.wake()
        if self._thread.is_alive() and self._thread is not threading.current_thread():
            join(self._thread)

    def _run(self) -> None:
        cores = n_cores()
        while (cost_s := self._turn()) is not None:
            is_used = time.monotonic() < self._used_until
            self._woken.wait(pause_s(cost_s, cores, is_used=is_used))
            # After the wait: a wake during the refresh leads to another one at once.
            self._woken.clear()
        self._ended()

    def _turn(self) -> float | None:
        """Refresh once and return the CPU seconds; None if there is nothing to refresh any more."""
        # A strong reference for one turn only: otherwise a forgotten panel would never be
        # collected.
        owner = self._owner()
        if owner is None or self._closing:
            return None
        # CPU time of this thread: waiting for the GIL of a training is no cost.
        start_s = time.thread_time()
        owner.refresh()
        return time.thread_time() - start_s


def pause_s(cost_s: float, cores: int, *, is_used: bool = True) -> float:
    """Seconds until the next refresh: the longer, the more expensive the last one was.

    Examples
    --------
    >>> [pause_s(0.0001, cores) for cores in (1, 2, 4, 8, 64)]
    [1.0, 0.66, 0.2, 0.125, 0.125]
    >>> [pause_s(0.0001, cores, is_used=False) for cores in (1, 2, 4, 8, 64)]
    [2.0, 1.5, 0.2, 0.125, 0.125]
    >>> round(pause_s(0.03, 64), 3)
    1.5
    """
    shortest = (SHORTEST_S if is_used else WATCHED_S).get(cores, 0.2 if cores < 8 else 0.125)
    return min(max(shortest, cost_s / SHARE), LONGEST_S)


def n_cores() -> int:
    """Cores this process may use."""
    allowed = getattr(os, "sched_getaffinity", None)  # Linux
    return len(allowed(0)) if allowed is not None else os.cpu_count() or 1
