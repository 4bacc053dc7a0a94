"""The writer's thread: it alone touches the disk, and nothing that goes wrong there gets out."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, get_args

from notebook_probe.errors import ProbeError
from notebook_probe.record.format.chunk_sizes import check_sizes
from notebook_probe.record.format.kinds import Kind
from notebook_probe.record.format.rounding import check_keep_bits
from notebook_probe.record.format.schema import DROPPED_ROWS, STOPPED
from notebook_probe.record.format.source import Event, Variable
from notebook_probe.record.store.lock import Lock
from notebook_probe.record.write.commit import Commits
from notebook_probe.record.write.lost_rows import Losses
from notebook_probe.record.write.names import Names
from notebook_probe.record.write.streams.rows import row_bytes
from notebook_probe.record.write.streams.stream import StreamWriter
from notebook_probe.uninterrupted import InterruptibleCondition, join

__all__ = ["Durability", "Flusher", "Options"]

REST = 200
"""A flush that took t seconds of processor time is followed by REST * t seconds of rest: half a per
cent of one core, which is the writer's allowed effect on a watched training. The cheaper one of the
last two counts: a flush that made files is expensive, and the next one is not."""
LONGEST_REST_S = 15.0
CLOSE_TIMEOUT_S = 60.0


Durability: TypeAlias = Literal["kill", "power loss"]
"""Failure that published rows survive: of the process, or of the machine."""


@dataclass(frozen=True, slots=True)
class Options:
    """Settings of a writer, explained at `RecordWriter`.

    Raises
    ------
    ValueError
        For an invalid size, number of bits, durability, or chunks.
    """

    flush_s: float
    flush_rows: int
    ring_bytes: int
    max_bytes: int | None
    keep_bits: Mapping[str, int]
    durability: Durability = "kill"
    chunks: Mapping[str, int] | None = None

    def __post_init__(self) -> None:
        if self.durability not in get_args(Durability):
            raise ValueError(
                f"durability={self.durability!r}; one of {', '.join(get_args(Durability))}"
            )
        if self.max_bytes is not None and self.max_bytes <= 0:
            raise ValueError(f"max_bytes={self.max_bytes}; a positive number of bytes, or None")
        check_keep_bits(self.keep_bits)
        check_sizes(self.chunks)


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
        self.losses = Losses()
        self.events: list[Event] = []
        self.last_error = ""
        self.stopped = ""
        """Reason for which no further row is taken; empty while rows are taken."""
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
        self._many_rows = self._half_full = self._closing = self._gave_up = False
        self._changed = InterruptibleCondition()
        self._pid = os.getpid()
        # A daemon: `close` waits for it, with a limit, as a disk may hang.
        self._thread = threading.Thread(target=self._run, name="notebook_probe record", daemon=True)

    @property
    def unwritten_rows(self) -> int:
        """Rows in memory that are not in the record yet."""
        return sum(one.n_rows - one.published for one in tuple(self.streams.values()))

    @property
    def is_whole(self) -> bool:
        """True if all rows and events are in the record."""
        return not self.unwritten_rows and len(self.events) <= self._commits.n_events

    @property
    def dropped_rows(self) -> int:
        """Rows that did not get into the record: those given up, and at the end those that wait."""
        is_over = self.finished or self._gave_up
        return self.losses.n_rows + (self.unwritten_rows if is_over else 0)

    @property
    def all_losses(self) -> int:
        """Rows given up by this writer, and by those who wrote the record before."""
        return int(self.attrs[DROPPED_ROWS]) + self.losses.n_rows

    def begin(
        self,
        name: str,
        long_name: str,
        kind: Kind,
        n_rows: int = 0,
        last_step: int = -1,
        modules: Sequence[str] = (),
        variables: Sequence[Variable] = (),
    ) -> StreamWriter:
        """Return a new stream to write; see `StreamWriter`."""
        stream = StreamWriter(
            name,
            long_name,
            self.why_no_room,
            self.losses,
            self.names,
            kind=kind,
            n_rows=n_rows,
            last_step=last_step,
            modules=modules,
            variables=variables,
        )
        self.streams[stream.path] = stream
        return stream

    def start(self, published: Callable[[], None] | None = None) -> None:
        """Make the first commit here, where its errors are the caller's; then start the thread.

        ``published`` is called in between.
        """
        # Here, not in the thread: a full disk or a wrong folder is the caller's error.
        self._commit()
        if published is not None:
            published()
        self._thread.start()

    def why_no_room(self, n_bytes: int) -> str:
        """Return the reason why ``n_bytes`` more may not wait; empty if they may.

        Called by a stream whose block of rows is full.
        """
        if self._closing or not self.is_ours:
            return "the record is closed"
        if self.stopped:
            return self.stopped
        # A copy: other threads may begin streams meanwhile.
        streams = tuple(self.streams.values())
        waiting = sum(stream.waiting_bytes for stream in streams)
        self._half_full = 2 * (waiting + n_bytes) > self._options.ring_bytes
        self._many_rows = any(s.n_rows - s.published >= self._options.flush_rows for s in streams)
        if self._half_full or self._many_rows:
            # Only if there is a reason: this is the training thread, and the lock costs time.
            with self._changed:
                self._changed.notify_all()
        # A single row may be larger than the memory for waiting rows: it is let in alone.
        if waiting == 0 or waiting + n_bytes <= self._options.ring_bytes:
            return ""
        return self.last_error or "rows came faster than they were written"

    def flush(self, timeout_s: float) -> bool:
        """Write everything recorded so far; return False if that failed or took too long."""
        if not self.is_ours:
            return False
        with self._changed:
            # A ticket: a flush under way has begun before these rows were there, and does not serve
            # it.
            self._requested += 1
            ticket = self._requested
            self._changed.notify_all()
            self._changed.wait_for(lambda: self._served >= ticket or self.finished, timeout_s)
            return self._served >= ticket and not self.last_error

    def flush_soon(self) -> None:
        """Ask for a flush, without waiting for it."""
        if self.is_ours:
            with self._changed:
                self._requested += 1
                self._changed.notify_all()

    def close(self) -> None:
        """Write the rest, mark the record closed, release the lock. Safe to call twice.

        Rows not written within a minute are left to the thread, and count as lost unless they get
        there after all.
        """
        if not self.is_ours:
            return
        for stream in tuple(self.streams.values()):
            # Before the last flush, so that no row arrives after it and is lost in silence.
            stream.seal()
        with self._changed:
            self._closing = True
            self._changed.notify_all()
        # A network disk that has gone may block a write forever.
        join(self._thread, CLOSE_TIMEOUT_S)
        if not self.finished:
            self._gave_up = True
            self.last_error = f"closing took longer than {CLOSE_TIMEOUT_S:g} s"

    @property
    def is_ours(self) -> bool:
        """False in a forked child: the thread, the lock and the rows are its parent's."""
        return os.getpid() == self._pid

    @property
    def is_its_thread(self) -> bool:
        """True in the flusher's own thread, which cannot wait for itself."""
        return threading.current_thread() is self._thread

    def _run(self) -> None:
        last = False
        while not last:
            self._wait()
            # Read before the flush: rows that arrive during it get another one.
            last = self._closing
            self._serve(last=last)
        # In this thread, which alone uses the files.
        self._commits.close()
        self._lock.release()
        with self._changed:
            self.finished = True
            self._changed.notify_all()

    def _wait(self) -> None:
        """Wait for a flush: on request, for full memory or, after a rest, by rows or time."""
        # The cheaper of two flushes: one that made files is expensive, and the next one is not.
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
        # Processor time: waiting for a slow disk takes nothing from the training.
        started = time.thread_time()
        wanted = last or requested > self._served
        try:
            if wanted or not self.stopped:
                self._flush(whole=wanted, last=last)
            self.last_error = ""
        except Exception as error:  # whatever it is: a dead thread would lose rows in silence
            ours = isinstance(error, ProbeError)
            self.last_error = str(error) if ours else f"{type(error).__name__}: {error}"
        self._last_cpu_s, self._cpu_s = self._cpu_s, time.thread_time() - started
        with self._changed:
            self._served = requested
            self._changed.notify_all()

    def _flush(self, *, whole: bool, last: bool) -> None:
        bring = self.bring()
        try:
            if bring is not None:
                bring()
        finally:  # whatever goes wrong elsewhere, the rows are written
            self._write(whole=whole, last=last)

    def _write(self, *, whole: bool, last: bool) -> None:
        self._stop_when_large()
        if last:
            self._commits.finish()
        if self._commit(whole=whole):
            self.flushed_at = time.monotonic()
        # After the commit: what is published is safe while chunks are compressed.
        self._commits.seal(tails=last)
        if last:
            self._commit(last=True)

    def _stop_when_large(self) -> None:
        """Accept no further row once the waiting ones bring the record to its maximum size."""
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
        attrs = {**self.attrs, DROPPED_ROWS: self.all_losses, "state": state}
        if self.stopped:
            attrs[STOPPED] = self.stopped
        streams = tuple(self.streams.values())
        return self._commits.commit(attrs, streams, tuple(self.events), whole=whole, last=last)
