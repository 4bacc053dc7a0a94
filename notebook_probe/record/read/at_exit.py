"""Reading a store while the program ends, when zarr can no longer read.

zarr hands files and chunks to a pool of threads, which Python closes before it runs what was
registered for the exit. A record's writer then reads on the calling thread.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, TypeVar

__all__ = ["program_ends", "read_here"]

T = TypeVar("T")


def program_ends() -> bool:
    """Return whether the main thread has ended; other threads may still train."""
    return not threading.main_thread().is_alive()


def read_here(reading: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine of zarr's to its end on this thread, without any other."""
    loop = asyncio.new_event_loop()
    loop.set_default_executor(_SameThread())
    try:
        return loop.run_until_complete(reading)
    finally:
        loop.close()


class _SameThread(ThreadPoolExecutor):
    """A pool, as asyncio demands one, that has no threads."""

    def submit(self, fn: Callable[..., T], /, *args: Any, **kwargs: Any) -> Future[T]:
        future: Future[T] = Future()
        try:
            future.set_result(fn(*args, **kwargs))
        # As a pool does: the future raises it where the result is asked for.
        except BaseException as error:
            future.set_exception(error)
        return future
