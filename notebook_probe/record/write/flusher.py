"""The writer's thread: it alone touches the disk, and nothing that goes wrong there gets out."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from notebook_probe.record.format.rounding import check_keep_bits
from notebook_probe.record.format.schema import STOPPED
from notebook_probe.record.format.source import Event
from notebook_probe.record.store.lock import Lock
from notebook_probe.record.write.commit import Commits
from notebook_probe.record.write.names import Names
from notebook_probe.record.write.rows import row_bytes
from notebook_probe.record.write.stream import StreamWriter

__all__ = ["Flusher", "Options"]

REST = 200
"""A flush that took t seconds of processor time is followed by REST * t seconds of rest: half a
per cent of one core, which is what a watched training may feel of the writer. What counts is the
cheaper one of the last two: a flush that made files is dear, and the next one is not."""
LONGEST_REST_S = 15.0
CLOSE_TIMEOUT_S = 60.0


@dataclass(frozen=True, slots=True)
class Options:
    """How a record is written; what each means says `RecordWriter`.

    Raises
    ------
    ValueError
        For a size that is none, and bits that cannot be kept.
    """

    flush_s: float
    flush_rows: int
    ring_bytes: int
    max_bytes: int | None
    keep_bits: Mapping[str, int]

    def __post_init__(self) -> None:
        if self.max_bytes is not None and self.max_bytes <= 0:
            raise ValueError(f"max_bytes={self.max_bytes}; a positive number of bytes, or None")
        check_keep_bits(self.keep_bits)


class Flusher:
    """Flushes every ``flush_s`` seconds, after ``flush_rows`` rows, and when the memory fills.

    It holds what waits to be written and the lock, never the writer, so that a forgotten writer
    is collected, and closed by that.
    """

    def __init__(
        self,
        commits: Commits,
        lock: Lock,
        attrs: Mapping[str, Any],
        options: Options,
    ) -> None:
        self.streams: dict[str, StreamWriter] = {}
        """By path: ``scalars/every_1``."""
        self.names = Names()
        self.names.round_off(options.keep_bits)
        self.events: list[Event] = []
        self.last_error = ""
        self.stopped = ""
        """Why no further row is taken, in words; empty as long as they are."""
        self.flushed_at: float | None = None
        self.finished = False
        self.bring: Callable[[], Callable[[], None] | None] = lambda: None
        """Gives what is called before each flush."""
        self._commits = commits
        self._lock = lock
        self.attrs = attrs
        self._options = options
        self._cpu_s = self._last_cpu_s = 0.0
        self._requested = self._served = 0
        self._many_rows = self._half_full = self._closing = False
        self._changed = threading.Condition()
        self._pid = os.getpid()
        self._thread = threading.Thread(target=self._run, name="notebook_probe record", daemon=True)

    @property
    def dropped_rows(self) -> int:
        """Rows refused so far, all streams together."""
        return sum(stream.dropped for stream in tuple(self.streams.values()))

    def start(self, published: Callable[[], None] | None = None) -> None:
        """Make the first commit here, where its errors are the caller's; then start the thread.

        ``published`` is called in between.
        """
        self._commit()
        if published is not None:
            published()
        self._thread.start()

    def has_room(self, n_bytes: int) -> bool:
        """Whether ``n_bytes`` more may wait; asked by a stream whose block of rows is full."""
        if self._closing or self.stopped or not self._is_ours():
            return False
        streams = tuple(self.streams.values())
        waiting = sum(stream.waiting_bytes for stream in streams)
        self._half_full = 2 * (waiting + n_bytes) > self._options.ring_bytes
        self._many_rows = any(s.n_rows - s.published >= self._options.flush_rows for s in streams)
        if self._half_full or self._many_rows:
            with self._changed:
                self._changed.notify_all()
        return waiting == 0 or waiting + n_bytes <= self._options.ring_bytes

    def flush(self, timeout_s: float) -> bool:
        """Have everything recorded so far written; False when it was not, or not in time."""
        if not self._is_ours():
            return False
        with self._changed:
            self._requested += 1
            ticket = self._requested
            self._changed.notify_all()
            self._changed.wait_for(lambda: self._served >= ticket or self.finished, timeout_s)
            return self._served >= ticket and not self.last_error

    def close(self) -> None:
        """Write the rest, mark the record closed, release the lock. Safe to call twice."""
        if not self._is_ours():
            return
        for stream in tuple(self.streams.values()):
            stream.seal()
        with self._changed:
            self._closing = True
            self._changed.notify_all()
        if threading.current_thread() is not self._thread:  # the collector may run in any thread
            self._thread.join(CLOSE_TIMEOUT_S)

    def _is_ours(self) -> bool:
        """False in a forked child: the thread, the lock and the rows are its parent's."""
        return os.getpid() == self._pid

    def _run(self) -> None:
        last = False
        while not last:
            self._wait()
            last = self._closing
            self._serve(last=last)
        for stream in tuple(self.streams.values()):
            stream.dropped += stream.n_rows - stream.published
        self._commits.close()
        self._lock.release()
        with self._changed:
            self.finished = True
            self._changed.notify_all()

    def _wait(self) -> None:
        """Until a flush is due: asked for, or memory fills, or, after the rest, by rows or time."""
        rest_s = min(REST * min(self._cpu_s, self._last_cpu_s), LONGEST_REST_S)
        with self._changed:
            self._changed.wait_for(self._is_urgent, rest_s)
            self._changed.wait_for(
                lambda: self._is_urgent() or self._many_rows,
                max(0.0, self._options.flush_s - rest_s),
            )
            self._many_rows = self._half_full = False

    def _is_urgent(self) -> bool:
        # After an error the memory stays full: only the clock brings the next attempt.
        filling = self._half_full and not self.last_error
        return self._closing or filling or self._requested > self._served

    def _serve(self, *, last: bool) -> None:
        requested = self._requested
        started = time.thread_time()
        wanted = last or requested > self._served
        try:
            if wanted or not self.stopped:
                self._flush(whole=wanted, last=last)
            self.last_error = ""
        except Exception as error:  # whatever it is: a dead thread would lose rows in silence
            self.last_error = f"{type(error).__name__}: {error}"
        self._last_cpu_s, self._cpu_s = self._cpu_s, time.thread_time() - started
        with self._changed:
            self._served = requested
            self._changed.notify_all()

    def _flush(self, *, whole: bool, last: bool) -> None:
        bring = self.bring()
        if bring is not None:
            bring()
        self._stop_when_large()
        if self._commit(whole=whole):
            self.flushed_at = time.monotonic()
        self._commits.seal(tails=last)
        if last:
            self._commit(last=True)

    def _stop_when_large(self) -> None:
        """Take no further row when those that wait bring the record to its size."""
        most = self._options.max_bytes
        if most is None or self.stopped:
            return
        streams = tuple(self.streams.values())
        waiting = sum((one.n_rows - one.published) * row_bytes(one.shape) for one in streams)
        if self._commits.nbytes + waiting < most:
            return
        step = max((one.last_step for one in streams), default=-1)
        after = f" after step {step}" if step >= 0 else ""
        self.stopped = f"nothing is recorded{after}: the record has its max_bytes={most}"
        for stream in streams:
            stream.seal()
        self.events.append(Event(step, time.time_ns() // 1_000_000, "full", self.stopped))

    def _commit(self, *, whole: bool = False, last: bool = False) -> bool:
        state = "closed" if last else "open"
        attrs = {**self.attrs, "dropped_rows": self.dropped_rows, "state": state}
        if self.stopped:
            attrs[STOPPED] = self.stopped
        streams = tuple(self.streams.values())
        return self._commits.commit(attrs, streams, tuple(self.events), whole=whole, last=last)
