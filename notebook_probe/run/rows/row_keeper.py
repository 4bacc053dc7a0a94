"""From a closed step to the record: one float32 row per stream that was due.

Rows are made and handed over a few together: code that just ran costs a fifth of code that a
training step has driven out of the caches. Values that live on an accelerator wait there; they are
copied together, once in a while, so that no step waits for the device.
"""

from __future__ import annotations

import copy
import threading
import time
import weakref
from collections import deque
from collections.abc import Callable, Iterable

from notebook_probe.axis import Axis, PerChannel
from notebook_probe.errors import QuantityError
from notebook_probe.model.selectors import standard_place
from notebook_probe.probes.due.readings import Readings
from notebook_probe.probes.reading.results import Result
from notebook_probe.probes.step.frame import StepFrame
from notebook_probe.probes.step.probe import Probe
from notebook_probe.quantities import quantities
from notebook_probe.quantities.reduce.stat import Number
from notebook_probe.record.format.source import ROOT, Variable
from notebook_probe.record.write.stream import StreamWriter
from notebook_probe.record.write.writer import RecordWriter
from notebook_probe.run.rows.columns import COUNTS, columns_of
from notebook_probe.run.rows.host_copy import HostCopy
from notebook_probe.run.rows.layout import ChannelsRow, Layout, Row

__all__ = ["RowKeeper"]

COPY_S = 0.5
"""At most this long values wait on a device before they are copied."""

KEEP_S = 0.1
"""At most about this long, while steps go on, closed steps wait here."""

MOST_KEPT = 64
"""Steps, and rows, that may wait here."""

LOG_STREAM = "every_1"


class RowKeeper:
    """Turns `StepFrame`s into rows of the record.

    Parameters
    ----------
    writer : RecordWriter
    spent : callable
        ``spent(step, seconds, cost)`` is told how long each step took, and our share of it.
    """

    def __init__(self, writer: RecordWriter, spent: Callable[[int, float, float], None]) -> None:
        self._writer, self._spent = writer, spent
        self._waiting: deque[StepFrame] = deque()
        self._kept: list[StepFrame] = []
        self._ready: list[Row | ChannelsRow] = []
        self._at_once = self._has_failures = False
        self._handed = time.monotonic()
        self._coming: HostCopy | None = None
        self._copied = time.monotonic()
        self._lock = threading.Lock()  # a reader may drain while the training thread keeps
        self._making = threading.Lock()  # two threads may ask for the same new stream
        self._named: set[tuple[str, str]] = set()
        self._early: StepFrame | None = None
        self._layouts: weakref.WeakKeyDictionary[Readings, Layout] = weakref.WeakKeyDictionary()
        self.scalars: dict[str, Number] = {}
        """Last value of everything the user logged."""
        self.problem = ""
        self.when_full: Callable[[], None] | None = None
        """Called once, when the record takes no further row."""

    # ---------------------------------------------------------------- columns

    def declare(self, probes: Iterable[Probe]) -> None:
        """Give every probe its column; from any thread."""
        for (name, axis), columns in columns_of(probes).items():
            stream = self._stream(name, columns.long_name, axis)
            stream.extend([*columns.modules], [*columns.variables.values()])

    def declare_scalars(self, names: Iterable[str]) -> None:
        """Give every logged scalar its place.

        Raises
        ------
        QuantityError
            For a name that cannot be a variable's.
        """
        for name in names:
            self._name(ROOT, Variable(name, "1", "logged by the training loop"))

    def declare_collected(self, place: str, name: str) -> None:
        """Give what the model collects its place.

        Raises
        ------
        QuantityError
            For a name that cannot be a variable's, or is a quantity's.
        """
        if (place, name) not in self._named and (name in quantities or name in COUNTS):
            raise QuantityError(f"collect({name!r}, ...): a quantity is called so")
        self._name(standard_place(place), Variable(name, "1", "collected by the model"))

    def _name(self, place: str, variable: Variable) -> None:
        if (place, variable.name) not in self._named:
            self._stream(LOG_STREAM, "every(1)").extend([place], [variable])
            self._named.add((place, variable.name))

    def _stream(
        self, name: str, long_name: str = "", axis: Axis | PerChannel | None = None
    ) -> StreamWriter:
        with self._making:
            return self._writer.stream(name, long_name, axis)

    # ---------------------------------------------------------------- steps

    def between_steps(self, step: int) -> StepFrame:
        """Where scalars are kept that come before ``step`` is open; they join it when it closes.

        Opening the step for them would ask its schedules, and pass its gate, too early.
        """
        if self._early is None:
            self._early = StepFrame(step)
        return self._early

    def unfinished(self, frame: StepFrame | None) -> StepFrame | None:
        """What a step that was not trained has to show: what was logged in it."""
        if frame is None:
            return self._early
        logged = StepFrame(frame.step)
        logged.time_ms = frame.time_ms
        logged.scalars.update(frame.scalars)
        return logged

    def publish(self, frame: StepFrame) -> None:
        """Record a closed step."""
        begun = time.perf_counter()
        frame, self._early = self._with_early(frame), None
        self.scalars.update(frame.scalars)
        self.keep(frame)
        now = time.perf_counter()
        self._spent(frame.step, now - frame.begun, frame.seconds + now - begun)

    def keep(self, frame: StepFrame) -> None:
        """Record a frame; whatever goes wrong here stays here."""
        try:
            with self._lock:
                if frame.on_device or self._waiting or self._coming:  # steps stay in order
                    self._waiting.append(frame)
                else:
                    self._keep(frame)
            self._hand_over_when_due()
            self._copy_when_due()
            frame.has_failures |= self._has_failures  # of a step before, told with this one
            self._has_failures = False
        except Exception as error:  # training must not end because a row could not be kept
            self._failed(frame.step, error)

    def _keep(self, frame: StepFrame) -> None:
        self._kept.append(frame)
        self._at_once |= frame.has_failures  # its successes are counted before it fails again
        if self._at_once or (frame.readings is not None and not frame.readings.are_light):
            self._make_kept()

    def provisional(self, frame: StepFrame | None, has_stepped: bool) -> StepFrame | None:
        """The open step as far as it counts: all of it once its update has happened."""
        if frame is None or not has_stepped:
            return self.unfinished(frame)
        return self._with_early(frame)

    def _with_early(self, frame: StepFrame) -> StepFrame:
        if self._early is None:
            return frame
        joined = copy.copy(frame)
        joined.scalars = {**self._early.scalars, **frame.scalars}
        joined.on_device |= self._early.on_device
        return joined

    def preview(self, frame: StepFrame) -> list[Row | ChannelsRow]:
        """The rows that it had if it ended now."""
        return self.rows_of(frame, lambda result: None)

    def rows_of(self, frame: StepFrame, tally: Callable[[Result], None]) -> list[Row | ChannelsRow]:
        """The rows that a frame had if it ended now; ``tally`` is told of results."""
        here = HostCopy([frame]).frames()[0] if frame.on_device else copy.copy(frame)
        here.states = [*here.states]
        for window in here.windows if not here.closed else ():
            window.look(here)
        return self._rows(here, tally)

    def drain(self) -> None:
        """Record all that waits, here or on a device; from any thread."""
        with self._lock:
            self._finish()
            self._begin()
            self._finish()
            self._hand_over()

    def hand_over(self) -> None:
        """Record what waits here; from any thread."""
        with self._lock:
            self._hand_over()

    def _hand_over_when_due(self) -> None:
        late = time.monotonic() - self._handed > KEEP_S
        if late or len(self._kept) + len(self._ready) >= MOST_KEPT:
            self.hand_over()

    def _hand_over(self) -> None:
        self._make_kept()
        ready, self._ready = self._ready, []
        self._handed = time.monotonic()
        for row in ready:
            try:
                row.record()
            except Exception as error:  # the rows behind it are recorded
                self._failed(row.step, error)
        if self._writer.stopped and self.when_full is not None:
            when_full, self.when_full = self.when_full, None
            when_full()

    def _copy_when_due(self) -> None:
        """Begin a copy, or record what has come of the last one; never wait."""
        if not self._waiting and self._coming is None:
            return
        with self._lock:
            if self._coming is not None and self._coming.has_come:
                self._finish()
            if self._coming is None and time.monotonic() - self._copied > COPY_S:
                self._begin()

    def _begin(self) -> None:
        if self._waiting:
            self._coming = HostCopy(self._waiting)
            self._waiting.clear()
            self._copied = time.monotonic()

    def _finish(self) -> None:
        self._make_kept()
        coming, self._coming = self._coming, None
        for frame in coming.frames() if coming is not None else ():
            self._make_rows(frame)

    def _make_kept(self) -> None:
        kept, self._kept = self._kept, []
        for frame in kept:
            self._make_rows(frame)

    def _make_rows(self, frame: StepFrame) -> None:
        """Make the rows of a step; one that fails does not keep the others from being made."""
        try:
            for window in frame.windows:
                if window.needs_numbers:
                    window.end(frame)
            self._ready += self._rows(frame, lambda result: result.probe.succeeded(frame.step))
        except Exception as error:
            self._failed(frame.step, error)
        self._has_failures |= frame.has_failures

    def _failed(self, step: int, error: Exception) -> None:
        self.problem = f"step {step}: {type(error).__name__}: {error}"

    def _rows(self, frame: StepFrame, tally: Callable[[Result], None]) -> list[Row | ChannelsRow]:
        """The rows of a step, one per due stream."""
        rows, channels = {}, []
        if frame.readings:
            layout = self._layout(frame.readings)
            rows, channels = layout.rows(frame, tally), layout.channels(frame, tally)
        if frame.scalars or frame.collected:
            stream = self._stream(LOG_STREAM)
            row = rows.setdefault((LOG_STREAM, None), Row(stream, frame.step, frame.time_ms))
            named = {
                (standard_place(place), name): pooled.value
                for (place, name), pooled in frame.collected.items()
            }
            named |= {(ROOT, name): float(value) for name, value in frame.scalars.items()}
            row.variables = [*row.variables, *(stream.variable_index[name] for _, name in named)]
            row.modules = [*row.modules, *(stream.module_index[place] for place, _ in named)]
            row.numbers += named.values()
        return [*rows.values(), *channels]

    def _layout(self, readings: Readings) -> Layout:
        layout = self._layouts.get(readings)
        if layout is None:
            layout = self._layouts[readings] = Layout(
                readings, lambda name, axis: self._stream(name, axis=axis)
            )
        return layout
