"""The last lines of output of a run: bounded in memory, and in the record as events."""

from __future__ import annotations

import sys
import threading
import time
from collections import deque
from collections.abc import Callable

from notebook_probe.record.format.notes import OUTPUT
from notebook_probe.record.views.printed_lines import PrintedLine, printed_detail
from notebook_probe.record.write.writer import RecordWriter
from notebook_probe.run.output.cells import each_cell
from notebook_probe.run.output.line_feed import LineFeed
from notebook_probe.run.output.stream_tap import StreamTap

__all__ = ["KeptOutput"]

STREAMS = "stdout", "stderr"
MOST_LINES = 200
MOST_PIECES, MOST_LETTERS = 4_000, 4_000
"""Pieces that wait for the writer's thread, and letters of each: of more the oldest are dropped."""
EVERY_S, SHARE = 2.0, 0.01
"""Seconds between two events, at least; and at least this share of the time since the beginning."""
ROOM, PART = 256_000, 20
"""Letters of all events but the last; each takes at most one of so many parts of what is left."""
LEAST, LAST = 400, 40_000
"""Letters that an event may always have, and those of the last one."""


class KeptOutput:
    """Last lines that this process prints, from `begin` to `end`.

    A print costs an append to a queue; lines are made on the writer's thread, before a flush.

    Parameters
    ----------
    writer : RecordWriter
    step : callable
        Returns the number of updates completed.

    Attributes
    ----------
    problem : str
        Reason why a stream is not copied; empty if both are.
    was_on : bool
        True once it has begun, also after its end.
    """

    def __init__(self, writer: RecordWriter, step: Callable[[], int]) -> None:
        self._writer, self._step = writer, step
        self.problem, self.was_on = "", False
        self._pieces: deque[tuple[str, int, str]] = deque(maxlen=MOST_PIECES)
        self._feeds = {name: LineFeed() for name in STREAMS}
        self._lines: deque[PrintedLine] = deque(maxlen=MOST_LINES)
        self._fresh: deque[PrintedLine] = deque(maxlen=MOST_LINES)
        self._n_fresh, self._room = 0, ROOM
        self._begun_s = self._next_s = 0.0
        self._taps: list[StreamTap] = []
        self._names: list[str] = []
        self._turn = threading.Lock()

    @property
    def is_on(self) -> bool:
        return bool(self._taps)

    def begin(self) -> None:
        """Keep the output from now on; a second call changes nothing."""
        if self._taps:
            return
        self.problem, self.was_on = "", True
        self._begun_s = time.monotonic()
        for name in STREAMS:
            try:
                self._taps.append(StreamTap(getattr(sys, name), self._ear(name)))
                self._names.append(name)
            except (AttributeError, TypeError) as error:
                self.problem = f"sys.{name} is not kept: {type(error).__name__}: {error}"

        each_cell(self.hear_again)

    def hear_again(self) -> None:
        """Tap a stream again whose ``write`` was restored by another program."""
        with self._turn:
            for place, tap in enumerate(self._taps):
                if not tap.is_heard:
                    tap.close()
                    self._taps[place] = StreamTap(tap.stream, self._ear(self._names[place]))

    def _ear(self, name: str) -> Callable[[str], None]:
        pieces, step = self._pieces, self._step  # not this object: a stream outlives a run

        def hear(text: str) -> None:
            if isinstance(text, str):
                pieces.append((name, step(), text[-MOST_LETTERS:]))

        return hear

    def record(self) -> None:
        """Write an event if one is due; called before each flush."""
        self.hear_again()
        if self._taps and time.monotonic() >= self._next_s:
            with self._turn:
                self._drain()
                self._write(max(LEAST, self._room // PART))

    def lines(self) -> list[PrintedLine]:
        """Return the last lines; those that have not ended are the last."""
        with self._turn:
            self._drain()
            rest = [feed.rest for feed in self._feeds.values()]
            every = [*self._lines, *(PrintedLine(self._step(), text) for text in rest if text)]
        return every[-MOST_LINES:]

    def end(self) -> None:
        """Put the streams back, and write the remaining lines."""
        with self._turn:
            if not self._taps:
                return
            for tap in self._taps:
                tap.close()
            self._taps, self._names = [], []
            self._drain()
            for name in [name for name, feed in self._feeds.items() if feed.rest]:
                self._take(name, self._step(), "\n")
            self._write(LAST)

    def _drain(self) -> None:
        while self._pieces:
            self._take(*self._pieces.popleft())

    def _take(self, name: str, step: int, text: str) -> None:
        for line in self._feeds[name].add(text):
            self._lines.append(PrintedLine(step, line))
            self._fresh.append(PrintedLine(step, line))
            self._n_fresh += 1

    def _write(self, room: int) -> None:
        """Write the newest lines that fit."""
        kept: list[PrintedLine] = []
        while self._fresh and (not kept or room >= len(self._fresh[-1].text)):
            room -= len(self._fresh[-1].text) + 1
            kept.insert(0, self._fresh.pop())
        if not kept:
            return
        text = "\n".join(line.text for line in kept)
        detail = printed_detail(kept, self._n_fresh - len(kept))
        self._writer.event(kept[-1].step, OUTPUT, text, detail)
        self._room = max(0, self._room - len(text))
        self._fresh.clear()
        self._n_fresh = 0
        now_s = time.monotonic()
        self._next_s = now_s + max(EVERY_S, SHARE * (now_s - self._begun_s))
