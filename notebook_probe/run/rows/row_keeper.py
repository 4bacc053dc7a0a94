"""Recording of a measured step: one float32 row per stream that was due."""

from __future__ import annotations

import threading
import weakref
from collections import deque
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from notebook_probe.axis import Axis, Image, PerChannel
from notebook_probe.errors import QuantityError
from notebook_probe.model.selectors import standard_place
from notebook_probe.probes.reading.closed_losses import LossRows
from notebook_probe.probes.step.measured import Columns, MeasuredStep
from notebook_probe.probes.step.probe import Probe
from notebook_probe.quantities import quantities
from notebook_probe.record.format.loss_names import BACKWARD_LOSS
from notebook_probe.record.format.missing import as_measured
from notebook_probe.record.format.schema import FROM_BACKWARD, LOGGED_BY, LOGGED_OF_STATES
from notebook_probe.record.format.source import ROOT, Variable
from notebook_probe.record.views.own_names import MEASURED_OF_MODEL, OwnNames, measured_of_model
from notebook_probe.record.write.checked_series import check_module
from notebook_probe.record.write.streams.shaped import ArrayWriter
from notebook_probe.record.write.streams.stream import StreamWriter
from notebook_probe.record.write.writer import RecordWriter
from notebook_probe.run.flight.schedule import IN_MEMORY
from notebook_probe.run.rows.columns import COUNTS, columns_of
from notebook_probe.run.rows.layout import AnyRow, ArrayRow, ChannelsLayout, Layout, Row, label_of
from notebook_probe.run.rows.logged import LoggedScalars
from notebook_probe.run.rows.shared_names import SharedNames

__all__ = ["RowKeeper"]

LOG_STREAM = "every_1"
OF_BACKWARD = "of_backward"
"""Stream of losses that the loop does not log."""


class RowKeeper:
    """Choose the column of every value, and turn `MeasuredStep`s into rows of the record.

    Parameters
    ----------
    writer : RecordWriter

    Attributes
    ----------
    shared : SharedNames
        Reports names that two series share.
    problem : str
        Text of the last error.
    in_memory : dict
        Quantities measured on the stream that is kept in memory, by name.
    """

    def __init__(self, writer: RecordWriter) -> None:
        self._writer = writer
        self._making = threading.Lock()  # two threads may ask for the same new stream
        self._collected: set[str] = set()
        self._of_root: set[str] = set()
        """Those that the model itself collects."""
        self._arrays: dict[tuple[str, str], ArrayWriter] = {}
        self._images: dict[str, Variable] = {}
        self._layouts: weakref.WeakKeyDictionary[Columns, Layout | ChannelsLayout] = (
            weakref.WeakKeyDictionary()
        )
        self._of_steps = LoggedScalars(writer, partial(self._stream, LOG_STREAM, "every(1)"))
        self._of_states = LoggedScalars(
            writer,
            partial(self._stream, LOGGED_OF_STATES, "logged of a state"),
            LOGGED_OF_STATES,
        )
        self.shared = SharedNames()
        self.problem = ""
        self.in_memory: dict[str, Variable] = {}

    @property
    def is_full(self) -> bool:
        """The record takes no further row."""
        return bool(self._writer.stopped)

    # ---------------------------------------------------------------- columns

    def declare(self, probes: Iterable[Probe]) -> None:
        """Give every probe its column; from any thread.

        Raises
        ------
        QuantityError
            For an own function that is called as a scalar which the loop logs at every step.
        """
        probes = [*probes]
        of_model = [one for one in probes if standard_place(one.place) == ROOT]
        for probe in of_model:
            self._check_free(probe.variable, probe.stream)
        for (name, axis), columns in columns_of(probes).items():
            if name == IN_MEMORY:
                self.in_memory |= columns.variables
                continue
            if isinstance(axis, Image):  # each has a separate stream, once its size is known
                self._images |= columns.variables
                continue
            stream = self._stream(name, columns.long_name, axis)
            stream.extend([*columns.modules], [*columns.variables.values()])
        found = columns_of(of_model).values()
        self._measure([name for columns in found for name in columns.variables])

    def _check_free(self, name: str, stream: str) -> None:
        if stream == LOG_STREAM and self._of_steps.has_array(name):
            raise QuantityError(
                f"the loop logs a number called {name!r}; give what is measured another name"
            )

    def _measure(self, names: Iterable[str]) -> None:
        """Note series of the whole model, whose names what is logged does not have any more."""
        known = measured_of_model(self._writer.attrs)
        new = {*names}.difference(known)
        if new:
            self._writer.annotate(**{MEASURED_OF_MODEL: sorted({*known, *new})})
            self.shared.tell(new, self._writer.source.snapshot().own_names)

    def declare_scalars(self, names: Collection[str], of_state: bool = False) -> list[str]:
        """Give every logged scalar its place, among those of steps or of states.

        Returns those that are new.

        Raises
        ------
        QuantityError
            For a name that cannot be a scalar's.
        """
        new = self._logged(of_state).declare(names)
        if new:
            self.shared.tell(new, self._writer.source.snapshot().own_names)
        return new

    def declare_losses(self) -> None:
        """Give the measured loss its place, before something else is logged under its name."""
        self._losses()

    def own_names(self) -> OwnNames:
        """Return the names of logged series whose stored name another series has."""
        return self.shared.own_names

    def are_of_steps(self, names: Iterable[str]) -> set[str]:
        """Return those of some names that the record has of steps."""
        return self._writer.source.snapshot().logged_of_steps.intersection(names)

    def announce(self, place: str, name: str) -> None:
        """Give what the model collects its place.

        Raises
        ------
        QuantityError
            For a name that cannot be a variable's, or is a quantity's.
        """
        if name in self._collected and (place or name in self._of_root):
            return  # its place is made with those of the same step
        if name in quantities or name in COUNTS:
            raise QuantityError(f"collect({name!r}, ...): a quantity has this name")
        if not place:
            self._check_free(name, LOG_STREAM)
            self._measure([name])
            self._of_root.add(name)
        collected = Variable(name, "1", "collected by the model")
        self._of_steps.variables.extend([standard_place(place)], [collected])
        self._collected.add(name)

    def declare_array(self, name: str, module: str, shape: tuple[int, ...]) -> None:
        """Give what the loop logs as arrays its place.

        Raises
        ------
        QuantityError
            For a name that cannot be a variable's, or means something else, and for another
            shape than it has.
        UnknownNameError
            For a module that the model has not.
        """
        if name in quantities or name in COUNTS:
            raise QuantityError(f"log_array({name!r}, ...): a quantity has this name")
        check_module(self._writer.source, module)
        self._begin_arrays(Variable(name, "1", LOGGED_BY), module, shape)

    @property
    def last_state(self) -> int:
        """Step of the last state of which the record has something logged; -1 without any."""
        return self._of_states.last_step

    def _logged(self, of_state: bool) -> LoggedScalars:
        return self._of_states if of_state else self._of_steps

    def _stream(
        self, name: str, long_name: str = "", axis: Axis | PerChannel | None = None
    ) -> StreamWriter:
        with self._making:
            return self._writer.stream(name, long_name, axis)

    # ---------------------------------------------------------------- steps

    def record(self, steps: Sequence[MeasuredStep]) -> None:
        """Pass the rows of some steps to the writer; see `Recorder`."""
        waiting = deque(steps)
        try:
            while waiting:
                self._record(waiting[0])
                waiting.popleft()
        except BaseException as error:  # an interrupt that could not be held back
            n_rows = sum(max(1, len(step.streams)) for step in waiting)
            self._lose(waiting[0].step, n_rows, error)
            raise

    def _record(self, step: MeasuredStep) -> None:
        try:
            rows = self.rows(step)
        except Exception as error:  # the steps behind it are recorded
            self._lose(step.step, max(1, len(step.streams)), error)
            return
        for row in rows:
            try:
                row.record()
            except Exception as error:  # as above
                self._lose(step.step, 1, error)

    def record_losses(self, rows: LossRows) -> None:
        """Pass the losses of some steps to the writer; see `Recorder`."""
        values = as_measured([float(loss) for loss in rows.losses]).reshape(-1, 1, 1)
        try:
            self._losses().record_all(np.array(rows.steps), np.array(rows.times_ms), values)
        except Exception as error:
            self._lose(rows.steps[0], len(rows), error)

    def loss_row(self, step: MeasuredStep) -> list[Row]:
        """Return the row of a step's loss that the step itself does not record."""
        if step.loss is None:
            return []
        return [Row(self._losses(), step.step, step.time_ms, [0], [0], [step.loss])]

    def _losses(self) -> StreamWriter:
        stream = self._stream(OF_BACKWARD, "every(1)")
        if not stream.variables:
            stream.extend([ROOT], [Variable(BACKWARD_LOSS, "1", FROM_BACKWARD)])
            self._measure([BACKWARD_LOSS])
        return stream

    @property
    def is_followed(self) -> bool:
        """The Recorder's part: of a step that has nothing but its loss, that is enough."""
        return False

    def failed(self, step: int, n_rows: int, error: Exception) -> None:
        """Report an error, by which the step is lost; see `Recorder`."""
        self._lose(step, n_rows, error)

    def _lose(self, step: int, n_rows: int, error: BaseException) -> None:
        self.problem = f"step {step}: {type(error).__name__}: {error}"
        self._writer.lose(n_rows, self.problem)

    def rows(self, step: MeasuredStep) -> list[AnyRow]:
        """Return the rows of a step, one per due stream."""
        rows: list[AnyRow] = [
            self._layout(values.columns).row(step, values)
            for values in step.streams
            if not isinstance(values.columns.axis, Image) and values.columns.stream != IN_MEMORY
        ]
        for writer, array in self._of_arrays(step).values():
            rows.append(ArrayRow(writer, step.step, step.time_ms, array))
        if not (step.named or step.logged):
            return rows
        logged, others = self._logged(step.of_state).split(step)
        named = {**step.named, **{("", name): number for name, number in logged.items()}}
        if named:
            rows = self._with_named(rows, step, named)
        return rows if others is None else [*rows, others]

    def _of_arrays(self, step: MeasuredStep) -> dict[tuple[str, str], tuple[ArrayWriter, Any]]:
        """Arrays and who writes them, by module and name: one, whatever schedules it is due on."""
        images = {}
        for values in step.streams:
            axis, cells = values.columns.axis, values.columns.cells
            if not isinstance(axis, Image):
                continue
            for (column, call), image in zip(values.places, values.numbers, strict=True):
                if not np.ndim(image):  # a device that could not be read
                    continue
                name, place = cells[column]
                module, stored = label_of(place, call), axis.stored(name, np.shape(image))
                images[module, stored] = image
                if (module, stored) not in self._arrays:
                    variable = replace(self._images[name], name=stored)
                    self._begin_arrays(variable, module, np.shape(image))
        given = {**step.arrays, **images}
        return {key: (self._arrays[key], array) for key, array in given.items()}

    def _begin_arrays(self, variable: Variable, module: str, shape: tuple[int, ...]) -> None:
        with self._making:
            arrays = self._writer.arrays(variable, module, shape)
        self._arrays[module, variable.name] = arrays

    def _with_named(
        self, rows: list[AnyRow], step: MeasuredStep, named: Mapping[tuple[str, str], float]
    ) -> list[AnyRow]:
        """Return the rows with logged or collected values in the stream of every step."""
        stream = self._logged(step.of_state).variables
        beside = (row for row in rows if isinstance(row, Row) and row.stream is stream)
        row = next(beside, None)
        if row is None:
            row = Row(stream, step.step, step.time_ms)
            rows = [*rows, row]
        labels = [standard_place(place) for place, _ in named]
        stream.extend([label for label in labels if label not in stream.module_index])
        variables, modules = stream.variable_index, stream.module_index
        row.variables = [*row.variables, *(variables[name] for _, name in named)]
        row.modules = [*row.modules, *(modules[label] for label in labels)]
        row.numbers = [*row.numbers, *named.values()]
        return rows

    def _layout(self, columns: Columns) -> Layout | ChannelsLayout:
        layout = self._layouts.get(columns)
        if layout is None:
            axis = columns.axis
            assert not isinstance(axis, Image)
            kind = ChannelsLayout if isinstance(axis, PerChannel) else Layout
            layout = kind(columns, self._stream(columns.stream, axis=axis))
            self._layouts[columns] = layout
        return layout
