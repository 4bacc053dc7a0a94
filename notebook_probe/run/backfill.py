"""Values of passed steps: written later, or read from the last state of a run that ends."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import contextmanager
from functools import partial

import numpy as np

from notebook_probe.probes.observer import Observer
from notebook_probe.probes.reading.closed_steps import ClosedSteps
from notebook_probe.probes.step.frame import StepFrame
from notebook_probe.probes.step.probe import Probe
from notebook_probe.quantities.reduce.features import ANYTIME
from notebook_probe.record.format.missing import measured
from notebook_probe.record.write.backfill import Backfill
from notebook_probe.record.write.writer import RecordWriter
from notebook_probe.run.attach.probe_set import ProbeSet
from notebook_probe.run.rows.layout import AnyRow
from notebook_probe.run.rows.row_keeper import RowKeeper

__all__ = ["PastSteps", "read_last_state"]


class PastSteps:
    """Write evaluations into the step that they belong to.

    Parameters
    ----------
    writer : RecordWriter
    rows : RowKeeper
    steps : ClosedSteps
    observer : Observer
    """

    def __init__(
        self, writer: RecordWriter, rows: RowKeeper, steps: ClosedSteps, observer: Observer
    ) -> None:
        self._writer, self._rows, self._steps, self._observer = writer, rows, steps, observer

    @contextmanager
    def at_step(self, step: int, only: Collection[Probe] | None = None) -> Iterator[None]:
        """Record calls on this thread as evaluations of the state after ``step`` updates.

        Everything that is evaluated is read, whatever its schedule, or only what is given.

        Raises
        ------
        RuntimeError
            Within itself.
        """
        observer = self._observer
        if observer.phase.is_past:
            raise RuntimeError(f"at_step({step}) inside another at_step; leave that first")
        self._steps.drain()
        observer.steps.settle()
        observer.taps.arm_evaluation(observer.evaluation.open_whole(step, only).plan)
        observer.phase.is_past = True
        try:
            yield
        finally:
            observer.phase.is_past = False
            observer.evaluation.hand(partial(self._write, of_state=True))

    def keep(self, frame: StepFrame) -> None:
        """Write what a frame has measured, of a step or a state that may have a row already."""
        self._steps.drain()
        self._write(frame, frame.of_state)

    def _write(self, frame: StepFrame, of_state: bool) -> None:
        for row in self._rows.rows(self._steps.measured(frame, is_final=True)):
            if row.stream.kind.is_blob:
                self._writer.lose(1, f"{row.stream.path}: arrays are not written into passed steps")
                continue
            _write(self._writer.out_of_order, row, of_state)


def _write(out_of_order: Backfill, row: AnyRow, of_state: bool) -> None:
    """Write the measured cells of a row; the others do not change the record."""
    table, stream = row.values, row.stream
    cells = measured(table).reshape(*table.shape[:2], -1).nonzero()
    variables, modules = np.unique(cells[0]), np.unique(cells[1])
    if len(variables):
        out_of_order.write(
            np.array([row.step]),
            [stream.modules[place] for place in modules],
            [stream.variables[place] for place in variables],
            table[np.ix_(variables, modules)][None],
            stream.kind,
            of_state,
        )


def read_last_state(observer: Observer, probes: ProbeSet, past: PastSteps) -> None:
    """Read the weights after the last update; report values of the step itself as lost.

    The state after n updates has step n; a training that continues there overwrites it.
    """
    step = observer.clock.step
    if observer.steps.is_silent or observer.training.last_step != step - 1:
        return
    owed = probes.owed(step - 1)
    states = [probe for probe in owed if _is_of_state(probe)]
    if states:
        past.keep(observer.steps.read_state(states))
    lost = [probe for probe in owed if not _is_of_state(probe)]
    if lost:
        probes.missed(lost, step)


def _is_of_state(probe: Probe) -> bool:
    """Return whether it needs nothing that exists only within a step."""
    return set(probe.quantity.needs) <= ANYTIME and not probe.quantity.spans_steps
