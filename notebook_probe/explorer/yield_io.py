"""Sending of a message before the next one is computed."""

from __future__ import annotations

import time

__all__ = ["yield_io"]

REST_S = 0.003


def yield_io() -> None:
    """Leave the lock of Python to the thread that brings the last message out.

    A notebook's kernel sends in a separate thread. The thread gets the lock from a computing one
    after 5 ms at the earliest, and later if a training wants it, too.
    """
    # Sleeping releases the GIL at once, instead of after the switch interval of 5 ms.
    time.sleep(REST_S)
