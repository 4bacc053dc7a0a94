"""Writing into steps that have passed: old checkpoints evaluated, series computed afterwards."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import numpy.typing as npt

from notebook_probe.probes.observer import Observer
from notebook_probe.probes.reading.closed_steps import ClosedSteps
from notebook_probe.probes.step.frame import StepFrame
from notebook_probe.record.format.missing import measured
from notebook_probe.record.write.backfill import Backfill
from notebook_probe.record.write.writer import RecordWriter
from notebook_probe.run.gate import Gate
from notebook_probe.run.rows.layout import ChannelsRow, Row
from notebook_probe.run.rows.row_keeper import RowKeeper

__all__ = ["Past"]


class Past(ABC):
    """The part of a run that writes out of order."""

    _writer: RecordWriter
    _rows: RowKeeper
    _steps: ClosedSteps
    _observer: Observer
    _gate: Gate

    @abstractmethod
    def _check_open(self) -> None: ...

    def backfill(
        self,
        module: str,
        quantity: str,
        steps: npt.ArrayLike,
        values: npt.ArrayLike,
        units: str = "1",
        long_name: str = "",
    ) -> None:
        """Write a series into any steps, passed ones as well; from any thread.

        Of each module, quantity and step the value written last is read.

        Parameters
        ----------
        module : str
            Path of a module or a parameter, ``""`` for the whole model.
        quantity : str
            Of the record, or a new one of your own.
        steps, values
            A step and its value, or as many of both, in any order; a vector per step where the
            quantity is one.
        units, long_name : str
            Of a quantity that is new.

        Raises
        ------
        UnknownNameError, ValueError, QuantityError, ClosedRunError
            Before anything is written.
        RecordWriteError
            When it cannot be written.

        Examples
        --------
        >>> run.backfill("fc1", "rank", [0, 1000], [64, 17])  # doctest: +SKIP
        """
        self._check_open()
        self._steps.drain()
        self._writer.backfill(module, quantity, steps, values, units, long_name)

    @contextmanager
    def at_step(self, step: int) -> Iterator[None]:
        """Record what happens inside as of ``step``: an old checkpoint evaluated.

        Calls of the model inside count as evaluations of the state after ``step`` updates,
        whatever mode it is in, and `log` writes there too. Every probe of phase ``"eval"``
        measures, due or not; but none of several steps, of which the others are not there. The
        step of the training stays as it is, and nothing inside is part of it. What was recorded
        at this step before is read no more.

        The model's state is yours: load the checkpoint inside, and before you train on load the
        newest one again.

        Raises
        ------
        ValueError
            For anything but a whole number from 0.
        RuntimeError
            While another thread trains the model, or within itself.
        ClosedRunError
            After the run was closed.

        Examples
        --------
        >>> run.attach("*", "zero_fraction", phase="eval")  # doctest: +SKIP
        >>> with run.at_step(1000), torch.no_grad():  # doctest: +SKIP
        ...     model.load_state_dict(torch.load("step1000.pt", weights_only=True))
        ...     run.log(test_loss=loss_fn(model.eval()(images), labels))
        """
        self._check_open()
        if not isinstance(step, int) or isinstance(step, bool) or step < 0:
            raise ValueError(f"at_step({step!r}): a whole number from 0 is expected")
        if self._gate.is_elsewhere:
            raise RuntimeError("another thread trains this model now; evaluate a copy, or wait")
        if self._observer.phase.is_past:
            raise RuntimeError(f"at_step({step}) inside another at_step; leave that first")
        self._steps.drain()
        with self._observer.at_step(step, self._keep_past):
            yield

    def _keep_past(self, frame: StepFrame) -> None:
        for row in self._rows.rows(self._steps.measured(frame, is_final=True)):
            _write(self._writer.out_of_order, row)


def _write(out_of_order: Backfill, row: Row | ChannelsRow) -> None:
    """Write the cells of a row that were measured; the others leave what is there."""
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
        )
