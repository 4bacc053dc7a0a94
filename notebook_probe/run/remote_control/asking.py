"""Ask a training in another process for one thing, and wait for its ticket."""

from __future__ import annotations

import time
from dataclasses import dataclass

from notebook_probe.record.store.location import Location
from notebook_probe.run.attach.requests import Request
from notebook_probe.run.remote_control.letters import Answer, PutRequest, new_id
from notebook_probe.run.remote_control.lines import Way, open_line

__all__ = ["Asked", "ask_run"]


LOOK_S = 1.0
"""Seconds between two checks whether the training is still there."""


@dataclass(frozen=True, slots=True)
class Asked:
    """Answer of a training, and how it came."""

    answer: Answer | None
    """None if there was none in time."""
    way: Way
    seconds: float
    taken_back: bool = False
    """True if the request was taken back unread."""


def ask_run(location: Location, request: Request, who: str, timeout_s: float) -> Asked:
    """Put a request into the queue of a run that another process trains.

    Waits until the request was applied or refused, or for ``timeout_s`` seconds.

    Raises
    ------
    LineError
        The run is not trained, allows no control, or has ended.
    StoreSilentError
        The store of the record does not answer.
    """
    begun_s = time.monotonic()
    line = open_line(location, who)
    try:
        letter_id = new_id()
        line.send(PutRequest(request), letter_id)
        found: Answer | None = None
        while (left_s := begun_s + timeout_s - time.monotonic()) > 0:
            for found in line.answers_or_end([letter_id], min(left_s, LOOK_S)):
                if found.state != "queued":
                    return Asked(found, line.way, time.monotonic() - begun_s)
        taken_back = line.take_back(letter_id)
        return Asked(found, line.way, time.monotonic() - begun_s, taken_back)
    finally:
        line.close()
