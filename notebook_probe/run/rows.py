"""From a closed step to the record: one float32 row per stream that was due.

Values that live on an accelerator wait there; they are copied together, once in a while, so that
no step waits for the device.
"""

from __future__ import annotations

import math
import threading
import time
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
        self.scalars: dict[str, Number] = {}
        """Last value of everything the user logged."""
        self.problem = ""

    def declare(self, probes: Iterable[Probe]) -> None:
        """Give every probe its column."""
        for probe in probes:
            stream = self._writer.stream(probe.schedule.stream, long_name=str(probe.schedule))
            stream.extend([standard_place(probe.place)], [_variable(probe.quantity)])

    def publish(self, frame: StepFrame) -> None:
        """Record a closed step; whatever goes wrong here stays here."""
        begun = time.perf_counter()
        try:
            for row in self._rows_of(frame, _succeeded):
                self._keep(row)
            self._copy_when_due()
        except Exception as error:  # training must not end because a row could not be kept
            self.problem = f"step {frame.step}: {type(error).__name__}: {error}"
        now = time.perf_counter()
        self._meter.add(now - frame.begun, frame.seconds + now - begun)

    def preview(self, frame: StepFrame) -> list[Row]:
        """The rows that a step would have if it ended now."""
        rows = self._rows_of(frame, lambda probe, step: None)
        _copy(rows)
        return rows

    def _rows_of(self, frame: StepFrame, tally: Callable[[Probe, int], None]) -> list[Row]:
        """The rows of a step, one per due stream."""
        rows: dict[str, Row] = {}
        for probe in frame.due:
            if probe.schedule.stream not in rows:
                rows[probe.schedule.stream] = self._empty(probe.schedule.stream, frame)
        for probe, value in frame.values():
            tally(probe, frame.step)
            row = rows[probe.schedule.stream]
            _put(row, probe.quantity.name, standard_place(probe.place), value)
        if frame.scalars:
            self._add_scalars(rows, frame)
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

    def _add_scalars(self, rows: dict[str, Row], frame: StepFrame) -> None:
        variables = [Variable(name, "1", "logged by the training loop") for name in frame.scalars]
        stream = self._writer.stream(LOG_STREAM, long_name="every(1)")
        before = stream.shape
        stream.extend([ROOT], variables)
        row = rows.get(LOG_STREAM)
        if row is None or stream.shape != before:
            wide = self._empty(LOG_STREAM, frame)
            if row is not None:
                wide = _widened(row, wide, before)
            row = rows[LOG_STREAM] = wide
        for name, value in frame.scalars.items():
            _put(row, name, ROOT, value)
        self.scalars.update(frame.scalars)


def _variable(quantity: Quantity) -> Variable:
    attrs = {"needs": ", ".join(quantity.needs), "source": quantity.source}
    return Variable(quantity.name, quantity.units, quantity.summary, attrs)


def _put(row: Row, quantity: str, module: str, value: Number) -> None:
    q, m = row.stream.variable_index[quantity], row.stream.module_index[module]
    if isinstance(value, Tensor):
        row.waiting.append(q * row.values.shape[1] + m)
        row.tensors.append(value)
    else:
        row.values[q, m] = _cell(value)


def _cell(value: float) -> float | np.float32:
    """The value as stored: a NaN that was measured differs from a cell nobody wrote."""
    return value if value == value else MEASURED_NAN


def _widened(row: Row, wide: Row, shape: tuple[int, int]) -> Row:
    wide.values[: shape[0], : shape[1]] = row.values
    wide.waiting = [
        place // shape[1] * wide.values.shape[1] + place % shape[1] for place in row.waiting
    ]
    wide.tensors = row.tensors
    return wide


def _succeeded(probe: Probe, step: int) -> None:
    probe.succeeded(step)


def _copy(rows: list[Row]) -> None:
    """Fill in what still waits on a device."""
    copied = iter(_to_host([tensor for row in rows for tensor in row.tensors]))
    for row in rows:
        for place in row.waiting:
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
