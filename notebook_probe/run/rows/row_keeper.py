"""From a measured step to the record: one float32 row per stream that was due."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Iterable, Sequence

from notebook_probe.axis import Axis, PerChannel
from notebook_probe.errors import QuantityError
from notebook_probe.model.selectors import standard_place
from notebook_probe.probes.step.measured import Columns, MeasuredStep
from notebook_probe.probes.step.probe import Probe
from notebook_probe.quantities import quantities
from notebook_probe.record.format.schema import LOGGED_OF_STATES
from notebook_probe.record.format.source import ROOT, Variable
from notebook_probe.record.write.stream import StreamWriter
from notebook_probe.record.write.writer import RecordWriter
from notebook_probe.run.rows.columns import COUNTS, columns_of
from notebook_probe.run.rows.layout import ChannelsLayout, ChannelsRow, Layout, Row

__all__ = ["RowKeeper"]

LOG_STREAM = "every_1"


class RowKeeper:
    """Gives every value its column in the record, and turns `MeasuredStep`s into its rows.

    Parameters
    ----------
    writer : RecordWriter

    Attributes
    ----------
    problem : str
        What went wrong last.
    """

    def __init__(self, writer: RecordWriter) -> None:
        self._writer = writer
        self._making = threading.Lock()  # two threads may ask for the same new stream
        self._named: set[tuple[str, str, bool]] = set()
        self._layouts: weakref.WeakKeyDictionary[Columns, Layout | ChannelsLayout] = (
            weakref.WeakKeyDictionary()
        )
        self.problem = ""

    @property
    def is_full(self) -> bool:
        """The record takes no further row."""
        return bool(self._writer.stopped)

    # ---------------------------------------------------------------- columns

    def declare(self, probes: Iterable[Probe]) -> None:
        """Give every probe its column; from any thread."""
        for (name, axis), columns in columns_of(probes).items():
            stream = self._stream(name, columns.long_name, axis)
            stream.extend([*columns.modules], [*columns.variables.values()])

    def declare_scalars(self, names: Iterable[str], of_state: bool = False) -> None:
        """Give every logged scalar its place, among those of steps or of states.

        Raises
        ------
        QuantityError
            For a name that cannot be a variable's.
        """
        for name in names:
            self._name(ROOT, Variable(name, "1", "logged by the training loop"), of_state)

    def announce(self, place: str, name: str) -> None:
        """Give what the model collects its place.

        Raises
        ------
        QuantityError
            For a name that cannot be a variable's, or is a quantity's.
        """
        if (place, name, False) not in self._named and (name in quantities or name in COUNTS):
            raise QuantityError(f"collect({name!r}, ...): a quantity is called so")
        self._name(standard_place(place), Variable(name, "1", "collected by the model"))

    @property
    def last_state(self) -> int:
        """Step of the last state of which the record has something logged; -1 without any."""
        return self._stream(LOGGED_OF_STATES).last_step

    def _name(self, place: str, variable: Variable, of_state: bool = False) -> None:
        if (place, variable.name, of_state) not in self._named:
            self._named_stream(of_state).extend([place], [variable])
            self._named.add((place, variable.name, of_state))

    def _named_stream(self, of_state: bool) -> StreamWriter:
        if of_state:
            return self._stream(LOGGED_OF_STATES, "logged of a state")
        return self._stream(LOG_STREAM, "every(1)")

    def _stream(
        self, name: str, long_name: str = "", axis: Axis | PerChannel | None = None
    ) -> StreamWriter:
        with self._making:
            return self._writer.stream(name, long_name, axis)

    # ---------------------------------------------------------------- steps

    def record(self, steps: Sequence[MeasuredStep]) -> None:
        """The Recorder's part: hand the rows of some steps to the writer."""
        for step in steps:
            try:
                rows = self.rows(step)
            except Exception as error:  # the steps behind it are recorded
                self._lose(step.step, max(1, len(step.streams)), error)
                continue
            for row in rows:
                try:
                    row.record()
                except Exception as error:  # as above
                    self._lose(step.step, 1, error)

    def failed(self, step: int, error: Exception) -> None:
        """The Recorder's part: say what went wrong, and that the step is lost."""
        self._lose(step, 1, error)

    def _lose(self, step: int, n_rows: int, error: Exception) -> None:
        self.problem = f"step {step}: {type(error).__name__}: {error}"
        self._writer.lose(n_rows, self.problem)

    def rows(self, step: MeasuredStep) -> list[Row | ChannelsRow]:
        """The rows of a step, one per due stream."""
        rows = [self._layout(values.columns).row(step, values) for values in step.streams]
        return self._with_named(rows, step) if step.named else rows

    def _with_named(
        self, rows: list[Row | ChannelsRow], step: MeasuredStep
    ) -> list[Row | ChannelsRow]:
        """With what was logged or collected, in the stream of every step or of states."""
        stream = self._named_stream(step.of_state)
        beside = (row for row in rows if isinstance(row, Row) and row.stream is stream)
        row = next(beside, None)
        if row is None:
            row = Row(stream, step.step, step.time_ms)
            rows = [*rows, row]
        variables, modules = stream.variable_index, stream.module_index
        row.variables = [*row.variables, *(variables[name] for _, name in step.named)]
        row.modules = [*row.modules, *(modules[standard_place(place)] for place, _ in step.named)]
        row.numbers = [*row.numbers, *step.named.values()]
        return rows

    def _layout(self, columns: Columns) -> Layout | ChannelsLayout:
        layout = self._layouts.get(columns)
        if layout is None:
            kind = ChannelsLayout if isinstance(columns.axis, PerChannel) else Layout
            layout = kind(columns, self._stream(columns.stream, axis=columns.axis))
            self._layouts[columns] = layout
        return layout
