"""A thread that runs the given tasks one after the other."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from queue import SimpleQueue
from threading import Thread
from typing import TypeAlias

__all__ = ["Worker"]

Tasks: TypeAlias = "SimpleQueue[Callable[[], None] | None]"


class Worker:
    """A thread that starts with its first task and ends when closed or garbage collected.

    It keeps no program from ending. Tasks do not raise.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._tasks: Tasks = SimpleQueue()
        self._end: Callable[[], object] | None = None

    def do(self, task: Callable[[], None]) -> None:
        if self._end is None:
            # The thread gets the queue only: with a reference to self it would keep the worker
            # alive.
            Thread(target=_work, args=(self._tasks,), name=self._name, daemon=True).start()
            self._end = weakref.finalize(self, self._tasks.put, None)
        self._tasks.put(task)

    def close(self) -> None:
        """End after the present task, without waiting for it; calling it twice is fine."""
        if self._end is not None:
            self._end()


def _work(tasks: Tasks) -> None:
    while (task := tasks.get()) is not None:
        task()
        del task  # what it holds must not live until the next one
