"""numpy's linear algebra on the thread that asks for it, and on no other.

numpy brings a BLAS with threads, one for each core, which spin for a while after a call in case
there is another. torch has threads, too: where both work in turn, each waits for cores that the
idle threads of the other occupy, and a covariance within a training step takes ten times as long as
on one thread.
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
    """Limit BLAS to one thread inside the context, then restore the number.

    It applies to the whole process. If several threads are inside, the first one sets and restores
    it: another may compute with more threads once the first has left.

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
