"""From a closed step to the record: one float32 row per stream that was due.

Values that live on an accelerator wait there; they are copied together, once in a while, so that
no step waits for the device.
"""

from __future__ import annotations

import math
import threading
import time
import weakref
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from notebook_probe.probes.frame import StepFrame
from notebook_probe.probes.probe import Probe
from notebook_probe.probes.selectors import standard_place
from notebook_probe.quantities import Quantity
from notebook_probe.quantities.stat import Number
from notebook_probe.record.missing import MEASURED_NAN, NOT_MEASURED
from notebook_probe.record.source import ROOT, Floats, Variable
from notebook_probe.record.stream import StreamWriter
from notebook_probe.record.writer import RecordWriter
from notebook_probe.run.meter import Meter

__all__ = ["Row", "RowKeeper"]

COPY_S = 0.5
"""At most this long values wait on a device before they are copied."""

LOG_STREAM = "every_1"


@dataclass(slots=True)
class Row:
    """A row whose last values are still on a device."""

    stream: StreamWriter
    step: int
    time_ms: int
    values: Floats
    waiting: list[int]
    tensors: list[Tensor]


class RowKeeper:
    """Turns `StepFrame`s into rows of the record.

    Parameters
    ----------
    writer : RecordWriter
    meter : Meter
        Told how long each step took, and our share of it.
    """

    def __init__(self, writer: RecordWriter, meter: Meter) -> None:
        self._writer = writer
        self._meter = meter
        self._rows: list[Row] = []
        self._copied = time.monotonic()
        self._lock = threading.Lock()  # a reader may drain while the training thread keeps
        self._making = threading.Lock()  # two threads may ask for the same new stream
        self._logged: set[str] = set()
        self._early: StepFrame | None = None
        self._cells: weakref.WeakKeyDictionary[Probe, tuple[int, int]] = weakref.WeakKeyDictionary()
        self.scalars: dict[str, Number] = {}
        """Last value of everything the user logged."""
        self.problem = ""

    def declare(self, probes: Iterable[Probe]) -> None:
        """Give every probe its column; from any thread."""
        for probe in probes:
            stream, place = self._stream(probe.stream, str(probe.schedule)), probe.place
            stream.extend([standard_place(place)], [_variable(probe.quantity)])
            self._cells[probe] = _cell_of(stream, probe.quantity.name, standard_place(place))

    def declare_scalars(self, names: Iterable[str]) -> None:
        """Give every logged scalar its place.

        Raises
        ------
        QuantityError
            For a name that cannot be a variable's.
        """
        new = [name for name in names if name not in self._logged]
        if new:
            variables = [Variable(name, "1", "logged by the training loop") for name in new]
            self._stream(LOG_STREAM, "every(1)").extend([ROOT], variables)
            self._logged.update(new)

    def between_steps(self, step: int) -> StepFrame:
        """Where scalars are kept that come before ``step`` is open; they join it when it closes.

        Opening the step for them would ask its schedules, and pass its gate, too early.
        """
        if self._early is None:
            self._early = StepFrame(step, ())
        return self._early

    def unfinished(self, frame: StepFrame | None) -> StepFrame | None:
        """What a step that was not trained has to show: what was logged in it."""
        if frame is None:
            return self._early
        logged = StepFrame(frame.step, ())
        logged.time_ms = frame.time_ms
        logged.scalars.update(frame.scalars)
        return logged

    def publish(self, frame: StepFrame) -> None:
        """Record a closed step."""
        begun = time.perf_counter()
        self.keep(frame)
        now = time.perf_counter()
        self._meter.add(now - frame.begun, frame.seconds + now - begun)

    def keep(self, frame: StepFrame) -> None:
        """Record a frame; whatever goes wrong here stays here."""
        try:
            for row in self._rows_of(frame, _succeeded):
                self._keep(row)
            self.scalars.update(self._scalars(frame))
            self._early = None
            self._copy_when_due()
        except Exception as error:  # training must not end because a row could not be kept
            self.problem = f"step {frame.step}: {type(error).__name__}: {error}"

    def preview(self, frame: StepFrame) -> list[Row]:
        """The rows that a step would have if it ended now."""
        rows = self._rows_of(frame, lambda probe, step: None)
        _copy(rows)
        return rows

    def _rows_of(self, frame: StepFrame, tally: Callable[[Probe, int], None]) -> list[Row]:
        """The rows of a step, one per due stream."""
        scalars = self._scalars(frame)
        streams = dict.fromkeys(probe.stream for probe in frame.due)
        if scalars:
            streams[LOG_STREAM] = None
        rows = {name: self._empty(name, frame) for name in streams}
        with np.errstate(over="ignore"):  # beyond float32 is infinite, and that is no news
            for probe, value in frame.values():
                tally(probe, frame.step)
                _put(rows[probe.stream], self._cells[probe], value)
            for name, value in scalars.items():
                row = rows[LOG_STREAM]
                _put(row, _cell_of(row.stream, name, ROOT), value)
        return list(rows.values())

    def drain(self) -> None:
        """Copy what still waits on a device, and record it."""
        with self._lock:
            rows, self._rows = self._rows, []
            self._copied = time.monotonic()
            _copy(rows)
            for row in rows:
                row.stream.record(row.step, row.time_ms, row.values)

    def _keep(self, row: Row) -> None:
        with self._lock:
            if row.tensors or self._rows:  # rows stay in order
                self._rows.append(row)
            else:
                row.stream.record(row.step, row.time_ms, row.values)

    def _copy_when_due(self) -> None:
        if self._rows and time.monotonic() - self._copied > COPY_S:
            self.drain()

    def _empty(self, name: str, frame: StepFrame) -> Row:
        stream = self._writer.stream(name)
        values = np.full(stream.shape, NOT_MEASURED, np.float32)
        return Row(stream, frame.step, frame.time_ms, values, [], [])

    def _scalars(self, frame: StepFrame) -> dict[str, Number]:
        early = self._early
        return {**(early.scalars if early is not None else {}), **frame.scalars}

    def _stream(self, name: str, long_name: str) -> StreamWriter:
        with self._making:
            return self._writer.stream(name, long_name)


def _variable(quantity: Quantity) -> Variable:
    attrs = {"needs": ", ".join(quantity.needs), "source": quantity.source}
    return Variable(quantity.name, quantity.units, quantity.summary, attrs)


def _cell_of(stream: StreamWriter, quantity: str, module: str) -> tuple[int, int]:
    """Where a value lies in the stream's rows; axes only grow, so it stays there."""
    return stream.variable_index[quantity], stream.module_index[module]


def _put(row: Row, cell: tuple[int, int], value: Number) -> None:
    q, m = cell
    if isinstance(value, Tensor):
        row.waiting.append(q * row.values.shape[1] + m)
        row.tensors.append(value)
    else:
        row.values[q, m] = _cell(value)


def _cell(value: float) -> float | np.float32:
    """The value as stored: a NaN that was measured differs from a cell nobody wrote."""
    return value if value == value else MEASURED_NAN


def _succeeded(probe: Probe, step: int) -> None:
    probe.succeeded(step)


def _copy(rows: list[Row]) -> None:
    """Fill in what still waits on a device."""
    copied = iter(_to_host([tensor for row in rows for tensor in row.tensors]))
    for row in rows:
        for place in row.waiting:  # float32 already: nothing overflows here
            row.values.flat[place] = _cell(next(copied))
        row.waiting, row.tensors = [], []


def _to_host(tensors: list[Tensor]) -> list[float]:
    """One stacked copy per device, in the given order."""
    by_device: dict[torch.device, list[int]] = {}
    for i, tensor in enumerate(tensors):
        by_device.setdefault(tensor.device, []).append(i)
    values = [math.nan] * len(tensors)
    for places in by_device.values():
        stacked = torch.stack([tensors[i].float() for i in places]).cpu().tolist()
        for i, value in zip(places, stacked, strict=True):
            values[i] = value
    return values
