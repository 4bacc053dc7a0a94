"""Rows that are written out of order: into steps that have passed, or that are still to come.

They go to separate streams, which readers lay over the others (``late.3``) or below them
(``early.1``), so that for each cell the value written last is read; see `branches`. A row joins the
newest of these streams if its step is greater than any there; else another stream is started.
Evaluations of states have separate streams among them (``eval_late.4``), as they are cut
differently.

To keep them few, two adjacent ones are merged into a new stream as soon as the older one is not
twice as long as the younger. Each row is therefore written again a logarithmic number of times, and
none is changed in place: a merged stream is left out of the next root, and its files are removed by
the next writer.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from notebook_probe.errors import RecordWriteError
from notebook_probe.record.format.kinds import NUMBERS, Kind
from notebook_probe.record.format.missing import NOT_MEASURED, measured
from notebook_probe.record.format.schema import EVALUATION
from notebook_probe.record.format.source import Floats, Steps, StreamView, Variable
from notebook_probe.record.views.branches.branches import IN_ORDER, Order, StreamName, read_name
from notebook_probe.record.write.flusher import Flusher
from notebook_probe.record.write.recorded_source import RecordedSource
from notebook_probe.record.write.streams.rows import row_bytes, rows_per_block
from notebook_probe.record.write.streams.stream import StreamWriter
from notebook_probe.uninterrupted import whole

__all__ = ["Backfill", "leftovers"]

ROWS_AT_A_TIME = 1024
GROWTH = 2
"""Least ratio of the lengths of two adjacent streams, the older to the younger."""


@dataclass(frozen=True, slots=True)
class MergedStreams:
    """Streams that rows may join, and that are merged."""

    order: Order
    kind: Kind
    of_states: bool

    @property
    def prefix(self) -> str:
        return EVALUATION if self.of_states else ""


class Backfill:
    """Writes rows of any steps into a record; from any thread.

    Parameters
    ----------
    flusher : Flusher
    source : RecordedSource
    branch : int
        The branch that is written.
    first_step : int
        The step at which it continues.
    """

    def __init__(
        self, flusher: Flusher, source: RecordedSource, branch: int, first_step: int
    ) -> None:
        self._flusher, self._source = flusher, source
        self._branch, self._first_step = branch, first_step
        # Whether a row is late depends on the rows before it, and any thread may write.
        self._lock = threading.Lock()
        numbers = [read_name(one.name).rank[1] for one in tuple(flusher.streams.values())]
        self._last_number = max(numbers, default=0)

    @whole
    def write(
        self,
        steps: Steps,
        modules: Sequence[str],
        variables: Sequence[Variable],
        values: Floats,
        kind: Kind = NUMBERS,
        of_states: bool = False,
    ) -> None:
        """Write a table of values; cells that were not measured do not change the record.

        Parameters
        ----------
        steps : int64 array, (row,)
            Increasing.
        values : float32 array, (row, variable, module), of vectors (..., size)
        kind : Kind
            Kind of the values; for per-module vectors, modules are elements.
        of_states : bool
            True for the states before these steps, rather than for the trained steps.

        Raises
        ------
        QuantityError
            A name has another meaning in the record.
        RecordWriteError
            The memory for waiting rows is full and they cannot be written.
        """
        with self._lock:
            passed = int(np.searchsorted(steps, self._last_in_order(of_states), "right"))
            late, early = slice(passed), slice(passed, None)
            lines = MergedStreams("late", kind, of_states), MergedStreams("early", kind, of_states)
            for line, part in zip(lines, (late, early), strict=True):
                if len(steps[part]):
                    self._write(line, steps[part], modules, variables, values[part])

    def _last_in_order(self, of_states: bool) -> int:
        """Return the last step, or state, of the training or of an evaluation."""
        own = (one for one in self._streams() if read_name(one.name).branch == self._branch)
        ends = [one.last_step for one in own if read_name(one.name).rank == IN_ORDER]
        # The state that a branch begins with may have been evaluated on the one before.
        is_known = of_states and self._branch > 1
        return max([self._first_step - (not is_known), *ends])

    def _streams(self) -> tuple[StreamWriter, ...]:
        return tuple(self._flusher.streams.values())

    def _write(
        self,
        line: MergedStreams,
        steps: Steps,
        modules: Sequence[str],
        variables: Sequence[Variable],
        values: Floats,
    ) -> None:
        stream = self._newest(line, line.kind.quantities(modules, variables))
        if stream is None or stream.last_step >= steps[0]:
            stream = self._begin(line)
        stream.extend(modules, variables)
        cells = np.ix_(
            [stream.variable_index[variable.name] for variable in variables],
            [stream.module_index[module] for module in modules],
        )
        self._append(stream, steps, cells, values)
        self._merge_neighbours(line)

    def _append(self, stream: StreamWriter, steps: Steps, cells: Any, values: Floats) -> None:
        now_ms = time.time_ns() // 1_000_000
        for first in range(0, len(steps), ROWS_AT_A_TIME):
            part = slice(first, first + ROWS_AT_A_TIME)
            tables = np.full((len(steps[part]), *stream.shape), NOT_MEASURED, np.float32)
            for table, row in zip(tables, values[part], strict=True):
                table[cells] = row
            # The stream may begin one block more than the rows fill.
            n_rows = len(tables) + rows_per_block(stream.shape)
            self._make_room(n_rows * row_bytes(stream.shape))
            for step, table in zip(steps[part].tolist(), tables, strict=True):
                if not stream.record(step, now_ms, table):
                    why = self._flusher.last_error or self._flusher.losses.why
                    raise RecordWriteError(f"step {step} was not written: {why}")

    def _make_room(self, n_bytes: int) -> None:
        if self._flusher.why_no_room(n_bytes):
            # Unlike a training, the caller can wait.
            self._flusher.flush(timeout_s=60.0)

    # ---------------------------------------------------------------- streams

    def _own(self, order: Order, kind: Kind) -> list[StreamWriter]:
        """Return the streams of one order, the oldest first."""
        own = [
            one
            for one in self._streams()
            if read_name(one.name).branch == self._branch
            and read_name(one.name).order == order
            and one.kind.group == kind.group
        ]
        return sorted(own, key=_rank)

    def _line(self, line: MergedStreams) -> list[StreamWriter]:
        own = self._own(line.order, line.kind)
        return [one for one in own if one.name.startswith(EVALUATION) == line.of_states]

    def _newest(self, line: MergedStreams, quantities: Collection[str]) -> StreamWriter | None:
        """Return the newest stream of a line, unless older streams would be above it."""
        own = self._line(line)
        return own[-1] if own and not self._is_above(own[-1], line, quantities) else None

    def _is_above(
        self, stream: StreamWriter, line: MergedStreams, quantities: Collection[str]
    ) -> bool:
        """Return whether a younger stream, of the other line, has one of these quantities."""
        younger = (one for one in self._own(line.order, line.kind) if _rank(one) > _rank(stream))
        others = (one for one in younger if one.name.startswith(EVALUATION) != line.of_states)
        return any(not set(quantities).isdisjoint(_quantities(one)) for one in others)

    def _begin(self, line: MergedStreams) -> StreamWriter:
        self._last_number += 1
        base = f"{line.prefix}{line.order}.{self._last_number}"
        name = str(StreamName(base, self._branch))
        return self._flusher.begin(name, f"written {line.order}", line.kind)

    def _merge_neighbours(self, line: MergedStreams) -> None:
        own = self._line(line)
        while len(own) > 1 and own[-2].n_rows < GROWTH * own[-1].n_rows:
            # Merging would lift the older stream above one whose values were written later.
            if any(self._is_above(one, line, _quantities(one)) for one in own[-2:]):
                return
            self._merge(line, own[-2], own[-1])
            own = self._line(line)

    def _merge(self, line: MergedStreams, older: StreamWriter, younger: StreamWriter) -> None:
        """Write two streams as one, which replaces them in the next root."""
        views = self._source.views([older, younger])
        merged = self._begin(line)
        merged.extend([*older.modules, *younger.modules], [*older.variables, *younger.variables])
        whole = np.ix_(*map(range, merged.shape[:2]))
        steps = np.union1d(*(view.steps() for view in views))
        for first in range(0, len(steps), ROWS_AT_A_TIME):
            part = steps[first : first + ROWS_AT_A_TIME]
            self._append(merged, part, whole, _overlaid(merged, part, views))
        for stream in (older, younger):
            self._source.keep(stream)
            del self._flusher.streams[stream.path]


def _rank(stream: StreamWriter) -> tuple[int, int]:
    return read_name(stream.name).rank


def _quantities(stream: StreamWriter) -> list[str]:
    return stream.kind.quantities(stream.modules, stream.variables)


def _overlaid(merged: StreamWriter, steps: Steps, views: Sequence[StreamView]) -> Floats:
    """Tables of ``merged`` at ``steps``: of each cell what the last of the views has."""
    tables = np.full((len(steps), *merged.shape), NOT_MEASURED, np.float32)
    for view in views:
        own = view.steps()
        start, stop = np.searchsorted(own, [steps[0], steps[-1] + 1])
        rows = np.searchsorted(steps, own[start:stop])
        columns = [merged.module_index[module] for module in view.modules]
        for variable in view.variables:
            cells = rows[:, None], merged.variable_index[variable.name], np.array(columns)[None]
            new = view.values(variable.name, int(start), int(stop))
            tables[cells] = np.where(measured(new), new, tables[cells])
    return tables


def leftovers(folder: Path, published: Collection[str]) -> list[str]:
    """Return paths of streams that were merged or never published, and still exist."""
    patterns = [f"*/{of}{order}.*" for of in ("", EVALUATION) for order in ("early", "late")]
    found = (path for pattern in patterns for path in folder.glob(pattern))
    paths = (path.relative_to(folder).as_posix() for path in found)
    return [path for path in paths if path not in published]
