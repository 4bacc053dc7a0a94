"""Lines that a program printed while it trained, in the events of its record."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from notebook_probe.record.format.notes import OUTPUT
from notebook_probe.record.format.source import Event

__all__ = ["PrintedLine", "printed_detail", "printed_lines"]


class PrintedLine(NamedTuple):
    """Printed line, with the number of updates completed at that time."""

    step: int
    text: str


def printed_detail(lines: Sequence[PrintedLine], left_out: int) -> str:
    """Return the detail of an event with these lines, before which others were left out."""
    return json.dumps({"steps": [one.step for one in lines], "left_out": left_out})


def printed_lines(events: Iterable[Event], most: int) -> list[PrintedLine]:
    """Return the last lines that the events have, in their order.

    Examples
    --------
    >>> events = [Event(3, 0, "output", "epoch 1", "{}"), Event(9, 0, "set", "lr=1")]
    >>> printed_lines(events, 10)
    [PrintedLine(step=3, text='epoch 1')]
    """
    found: list[list[PrintedLine]] = []
    n = 0
    for event in reversed([*events]):
        if event.kind == OUTPUT and n < most:
            lines = event.text.split("\n")
            found.append([*map(PrintedLine, _steps(event, len(lines)), lines)])
            n += len(lines)
    every = [line for lines in reversed(found) for line in lines]
    return every[max(0, len(every) - most) :]


def _steps(event: Event, n: int) -> Sequence[int]:
    """Return the step of each line; that of the event where the detail is damaged."""
    try:
        steps = json.loads(event.detail)["steps"]
        if len(steps) == n:
            return [int(step) for step in steps]
    except (ValueError, TypeError, KeyError, OverflowError):
        pass
    return [event.step] * n
