"""numpy's linear algebra on the thread that asks for it, and on no other.

numpy brings a BLAS with threads of its own, one for each core, which go on turning for a while
after a call in case there is another. torch has threads, too: where both work in turn, each waits
for cores that the idle threads of the other hold, and a covariance amid a training step takes ten
times as long as on one thread.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache

from threadpoolctl import ThreadpoolController

__all__ = ["one_thread"]

_turn = threading.Lock()


@contextmanager
def one_thread() -> Iterator[None]:
    """Let BLAS have one thread inside, and then as many as before.

    It is so for the whole process. Of several threads that are inside the first sees to it: what
    another still computes once that has left may have more.

    Examples
    --------
    >>> import numpy as np
    >>> with one_thread():
    ...     np.ones((2, 3)) @ np.ones((3, 2))
    array([[3., 3.],
           [3., 3.]])
    """
    if not _turn.acquire(blocking=False):
        yield
        return
    try:
        with _own_of_numpy().limit(limits=1):
            yield
    finally:
        _turn.release()


@cache
def _own_of_numpy() -> ThreadpoolController:
    """Libraries that torch does not use as well: its own threads are what a training runs on."""
    return ThreadpoolController().select(internal_api="openblas")
