"""What happened at a step, checked before it waits: no text would fail every later flush."""

from __future__ import annotations

import time
from operator import index

from notebook_probe.record.format.source import Event

__all__ = ["checked_event"]


def checked_event(step: int, kind: str, text: str, detail: str) -> Event:
    """An event of now.

    Raises
    ------
    TypeError
        For a step that is no whole number, and text that is none.
    """
    for name, given in {"kind": kind, "text": text, "detail": detail}.items():
        if not isinstance(given, str):
            raise TypeError(f"event: {name}={given!r}; text is expected")
    return Event(index(step), time.time_ns() // 1_000_000, kind, text, detail)
