"""The end of the process, from which on nothing is sent to a front end.

zmq ends before the threads of a kernel do. A long message that is sent later fails in a thread of
ipykernel, where nobody can catch the error.
"""

from __future__ import annotations

import atexit
import sys
import threading
from contextlib import suppress

__all__ = ["leaving", "widget_lock"]

widget_lock = threading.RLock()
"""Lock around every widget write of the process: two threads in ipywidgets lose updates."""

leaving = threading.Event()
"""Set, with the lock held, when the process ends."""


@atexit.register  # zmq was loaded before, so this comes first
def _leave() -> None:
    with widget_lock:
        leaving.set()
    with suppress(Exception):
        sys.stdout.flush()  # waits until a kernel has sent what it was given
