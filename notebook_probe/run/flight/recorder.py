"""The flight recorder: the last steps of a dense preset, written when something happens."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Mapping, Sequence

from notebook_probe.probes.reading.closed_losses import LossRows
from notebook_probe.probes.reading.closed_steps import Recorder
from notebook_probe.probes.step.measured import MeasuredStep
from notebook_probe.record.format.source import Variable
from notebook_probe.record.views.own_names import OwnNames
from notebook_probe.record.write.writer import RecordWriter
from notebook_probe.run.breakpoints.step_numbers import StepNumbers
from notebook_probe.run.flight.ring import FlightTable, Ring
from notebook_probe.uninterrupted import whole

__all__ = ["EVENT", "FlightRecorder"]

EVENT = "flight"
"""The kind of its events."""

AFTER = 4
"""Number of steps in memory per step that is also written after an event."""


class FlightRecorder:
    """Keep the last steps in memory; an event writes them into the record, at their steps.

    It is a `Recorder` that passes on what it receives.

    Parameters
    ----------
    recorder : Recorder
    writer : RecordWriter
    n_steps : int
        0 keeps nothing.
    variables : callable
        Declared variables of the stream in memory, by name.
    own_names : callable
        Gives the names of logged series whose stored name another series has.

    Attributes
    ----------
    bring : callable
        Records everything that waits; set by the parts that it waits in.
    """

    def __init__(
        self,
        recorder: Recorder,
        writer: RecordWriter,
        n_steps: int,
        variables: Callable[[], Mapping[str, Variable]],
        own_names: Callable[[], OwnNames],
    ) -> None:
        self._recorder, self._writer, self.n_steps = recorder, writer, n_steps
        self._variables = variables
        self.bring: Callable[[], None] = lambda: None
        self._ring = Ring(max(1, n_steps))
        self._numbers = StepNumbers(own_names)
        self._was_bad = False
        self._due = ""
        self._until, self._cause = -1, ""
        self._last_written = -1
        # Rows come on one thread, and any other may write them or read their size.
        self._lock = threading.Lock()

    # ---------------------------------------------------------------- as rows go by

    def record(self, steps: Sequence[MeasuredStep]) -> None:
        self._recorder.record(steps)
        if self.n_steps:
            for step in steps:
                self._see(step)

    def record_losses(self, rows: LossRows) -> None:
        self._recorder.record_losses(rows)

    @property
    def is_followed(self) -> bool:
        return self.n_steps > 0 or self._recorder.is_followed

    def failed(self, step: int, n_rows: int, error: Exception) -> None:
        self._recorder.failed(step, n_rows, error)

    def announce(self, place: str, name: str) -> None:
        self._recorder.announce(place, name)

    def _see(self, step: MeasuredStep) -> None:
        with self._lock:
            self._ring.keep(step)
        bad = next(self._numbers.not_finite(step), None)
        # Once per stretch of bad rows: the first is the one to look at.
        if bad is not None and not self._was_bad:
            self.happened(f"{bad.name} at {bad.module} is {bad.value:.3g} at step {step.step}")
        self._was_bad = bad is not None
        if 0 <= self._until <= step.step:
            self._due, self._until = self._due or f"after: {self._cause}", -1

    # ---------------------------------------------------------------- writing

    def happened(self, what: str) -> None:
        """Request a write at the next boundary, and of some later steps; from any thread."""
        if self.n_steps:
            self._due = self._cause = what
            self._until = -1

    def write_due(self) -> None:
        """Write if something has happened; on the thread that trains, or ends."""
        if self._due:
            self._write_due()

    @whole
    def _write_due(self) -> None:
        # Taken before writing, or an error would write again at every boundary.
        why, self._due = self._due, ""
        try:
            self.write(why)
        except Exception as error:  # training continues without it
            text = f"the flight recorder could not write: {type(error).__name__}: {error}"
            self._writer.event(self._last_written + 1, "error", text)
        if why == self._cause:
            self._until = self._last_written + self.n_steps // AFTER

    @whole
    def write(self, why: str = "asked for") -> int:
        """Write the kept steps into the record now; return their number.

        Cells that the record has at a step are not written again.

        Raises
        ------
        RecordWriteError
            It cannot be written.

        Examples
        --------
        >>> run.flight.write("before the new data")  # doctest: +SKIP
        200
        """
        self.bring()
        with self._lock:
            rows = self._ring.take()
        if not rows:
            return 0
        table, known = FlightTable.of(rows), self._variables()
        variables = [known.get(name, Variable(name)) for name in table.variables]
        try:
            self._writer.out_of_order.write(table.steps, table.modules, variables, table.values)
        # Also for an interrupt: taken rows would be lost otherwise.
        except BaseException:
            with self._lock:  # they may be written later
                self._ring.put_back(rows)
            raise
        first, last = int(table.steps[0]), int(table.steps[-1])
        self._last_written = last
        n_series = len({cell for row in rows for cell in row.cells})
        text = f"wrote steps {first} to {last} of {n_series} series: {why}"
        detail = {"why": why, "first_step": first, "last_step": last, "n_steps": len(rows)}
        self._writer.event(last, EVENT, text, json.dumps({**detail, "n_series": n_series}))
        return len(rows)

    # ---------------------------------------------------------------- present state

    @property
    def nbytes(self) -> int:
        """Bytes of the steps in memory."""
        with self._lock:
            return self._ring.nbytes

    @property
    def text(self) -> str:
        """Contents in words; empty if it keeps nothing."""
        if not self.n_steps:
            return ""
        with self._lock:
            n, n_series, size = len(self._ring), self._ring.n_series, self._ring.nbytes
        kept = f"flight recorder: {n} of {self.n_steps} steps of {n_series} series in memory"
        written = f", written up to step {self._last_written}" if self._last_written >= 0 else ""
        return f"{kept}, {size / 1e3:.3g} kB{written}"

    def __repr__(self) -> str:
        return f"<{self.text or 'no flight recorder'}>"
