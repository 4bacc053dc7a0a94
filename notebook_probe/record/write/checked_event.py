"""Events, checked before they are queued: a value that is not text would fail every flush."""

from __future__ import annotations

import time
from operator import index

from notebook_probe.record.format.source import Event

__all__ = ["checked_event"]


def checked_event(step: int, kind: str, text: str, detail: str) -> Event:
    """Return a checked event with the present time.

    Raises
    ------
    TypeError
        For a step that is no whole number, and text that is none.
    """
    for name, given in {"kind": kind, "text": text, "detail": detail}.items():
        if not isinstance(given, str):
            raise TypeError(f"event: {name}={given!r}; text is expected")
    return Event(index(step), time.time_ns() // 1_000_000, kind, text, detail)
