"""A message that somebody waits for is on its way before the next one is worked out."""

from __future__ import annotations

import time

__all__ = ["let_out"]

REST_S = 0.003


def let_out() -> None:
    """Leave the lock of Python to the thread that brings the last message out.

    A notebook's kernel sends in a thread of its own. It gets the lock from who goes on computing
    after 5 ms at the earliest, and later where a training wants it, too.
    """
    time.sleep(REST_S)
