"""The side of a stream that the training thread writes: a row is copied, nothing else."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from notebook_probe.record.format.axes import Axes
from notebook_probe.record.format.kinds import NUMBERS, Kind
from notebook_probe.record.format.missing import NOT_MEASURED
from notebook_probe.record.format.source import Floats, Steps, Variable
from notebook_probe.record.write.lost_rows import Losses
from notebook_probe.record.write.names import Names
from notebook_probe.record.write.streams.rows import (
    BufferedRows,
    RowBlock,
    row_bytes,
    rows_per_block,
)

__all__ = ["StreamWriter"]

RECENT_BYTES = 16 << 20
"""Published rows kept in memory for readers that follow the run."""


class StreamWriter:
    """Rows of one schedule; made by `Flusher.begin`.

    Attributes
    ----------
    name : str
    long_name : str
        The schedule as the user wrote it.
    kind : Kind
        Contents, and their layout on disk.
    axis : Axis or None
        Axis of vectors that share one; None for others.
    published : int
        Rows that a reader of the store can see.
    last_step : int
        Greatest step recorded, -1 when there is none.
    """

    def __init__(
        self,
        name: str,
        long_name: str,
        why_no_room: Callable[[int], str],
        losses: Losses,
        names: Names,
        *,
        kind: Kind = NUMBERS,
        n_rows: int = 0,
        last_step: int = -1,
        modules: Sequence[str] = (),
        variables: Sequence[Variable] = (),
    ) -> None:
        self.name = name
        self.long_name = long_name
        self.kind = kind
        self.axis = axis = kind.axis
        self.published = n_rows
        self.last_step = last_step
        self._why_no_room, self._losses = why_no_room, losses
        # The training thread adds blocks while the flusher drops written ones.
        self._blocks_changed = threading.Lock()
        self._names = names
        if axis is not None:
            names.claim_axis(axis)
        names.claim_coordinates(kind.group, kind.coords)
        self._axes = Axes(cell=kind.cell)
        # A block without room: the first row makes a real one, of the width known by then.
        self._block = RowBlock(n_rows, self._axes.shape, 0)
        self._blocks: tuple[RowBlock, ...] = (self._block,)
        self.extend(modules, variables)

    @property
    def path(self) -> str:
        """Path of the stream's group in the record."""
        return f"{self.kind.group}/{self.name}"

    @property
    def modules(self) -> tuple[str, ...]:
        return self._axes.modules

    @property
    def variables(self) -> tuple[Variable, ...]:
        return self._axes.variables

    @property
    def module_index(self) -> Mapping[str, int]:
        """Column of each module."""
        return self._axes.module_index

    @property
    def variable_index(self) -> Mapping[str, int]:
        """Place of each quantity in a row."""
        return self._axes.variable_index

    @property
    def shape(self) -> tuple[int, ...]:
        """(n_variables, n_modules), and the size of the axis of vectors: what `record` takes."""
        return self._axes.shape

    @property
    def n_rows(self) -> int:
        """Rows recorded, published or not."""
        return self._blocks[-1].end

    def extend(self, modules: Sequence[str] = (), variables: Sequence[Variable] = ()) -> None:
        """Append columns and quantities, in the order they are first named; no I/O.

        Rows recorded before read NaN there. Existing values do not change.

        Raises
        ------
        QuantityError
            A quantity's name is no valid variable name, or a text is not text.
        """
        self._names.check(modules, variables)
        variables = [self._names.rounded(variable) for variable in variables]
        axes = self._axes.extended(modules, variables)
        if axes is not self._axes:
            for quantity in self.kind.quantities(modules, variables):
                self._names.claim(quantity, self.kind.meaning)
            self._axes = axes
            self.seal()  # the next row begins a wider block

    def record(self, step: int, time_ms: int, values: Floats) -> bool:
        """Copy one row.

        Parameters
        ----------
        step : int
            Greater than the step of the row before.
        time_ms : int
            Wall time, milliseconds since 1970.
        values : float32 array, (n_variables, n_modules), vectors (n_variables, n_modules, size)
            NaN where nothing was measured. A row made before the axes grew may be narrower.

        Returns
        -------
        bool
            False when the row was dropped (and counted): the memory for waiting rows is full, or
            there is none.

        Raises
        ------
        ValueError
            For a step that does not grow, or values wider than ``shape``.
        """
        block = self._block
        row = block.n
        # The usual row costs these comparisons; errors, and a new block, are handled below.
        if row == block.capacity or step <= self.last_step or values.shape != block.shape:
            self._check_row(step, values.shape)
            room = self._block_of_shape()
            if room is None:
                return False
            block, row, values = room, room.n, _widened(values, room.shape)
        block.values[row] = values
        block.steps[row] = step
        block.times[row] = time_ms
        # Last: readers without the lock take the row as complete once it is counted.
        block.n = row + 1
        self.last_step = step
        return True

    def record_all(self, steps: Steps, times_ms: Steps, values: Floats) -> None:
        """Record many rows at once, of growing steps; ``values[i]`` is one row; see `record`."""
        start, n = 0, len(steps)
        while start < n:
            self.record(int(steps[start]), int(times_ms[start]), values[start])  # makes room
            start, block = start + 1, self._block
            stop = min(n, start + block.capacity - block.n)
            if stop == start or values.shape[1:] != block.shape:
                continue
            rows = slice(block.n, block.n + stop - start)
            block.values[rows], block.steps[rows] = values[start:stop], steps[start:stop]
            block.times[rows] = times_ms[start:stop]
            # The count last, as in `record`.
            block.n, self.last_step, start = rows.stop, int(steps[stop - 1]), stop

    def rows(self) -> BufferedRows:
        """Return the rows that are in memory."""
        blocks = self._blocks
        stop = blocks[-1].end  # before the axes: these may only be wider than the rows
        return BufferedRows(blocks, blocks[0].base, stop, self._axes)

    def publish(self, stop: int) -> None:
        """Note that rows below ``stop`` are on disk, and drop the oldest of them."""
        self.published = stop
        with self._blocks_changed:
            blocks = self._blocks
            excess = sum(block.nbytes for block in blocks) - RECENT_BYTES
            first = 0
            # The last block stays: the training thread writes into it.
            while excess > 0 and first < len(blocks) - 1 and blocks[first].end <= stop:
                excess -= blocks[first].nbytes
                first += 1
            self._blocks = blocks[first:]

    def seal(self) -> None:
        """Take no further row into the current block; a closed writer gives no other."""
        # No room: the next `record` finds it full, and asks for a block, which a closed writer
        # refuses.
        self._block = RowBlock(self.n_rows, self.shape, 0)

    @property
    def waiting_bytes(self) -> int:
        """Memory of the blocks with rows that are not on disk yet."""
        return sum(block.nbytes for block in self._blocks if block.end > self.published)

    def _block_of_shape(self) -> RowBlock | None:
        """Return a block of the present width with room for a row, or None if memory is full."""
        shape = self.shape
        if self._block.shape == shape and self._block.n < self._block.capacity:
            return self._block
        capacity = rows_per_block(shape)
        why = self._why_no_room(capacity * row_bytes(shape))
        try:
            block = None if why else RowBlock(self.n_rows, shape, capacity)
        except MemoryError as error:
            block, why = None, f"MemoryError: {error}"
        if block is None:
            self._losses.count(1, why)
            return None
        with self._blocks_changed:
            # A new tuple: readers hold on to the one that they have begun with.
            self._blocks = (*(full for full in self._blocks if full.n), block)
        self._block = block
        return block

    def _check_row(self, step: int, shape: tuple[int, ...]) -> None:
        if step <= self.last_step:
            raise ValueError(
                f"step {step} in stream {self.name!r} after step {self.last_step}; steps must grow"
            )
        n_variables, n_modules, *cell = self.shape
        if (
            len(shape) < 2
            or shape[0] > n_variables
            or shape[1] > n_modules
            or list(shape[2:]) != cell
        ):
            dims = "(n_variables, n_modules)" if not cell else "(n_variables, n_modules, size)"
            raise ValueError(
                f"a row of shape {shape} in stream {self.name!r}; {dims} is {self.shape}"
            )


def _widened(values: Floats, shape: tuple[int, ...]) -> Floats:
    if values.shape == shape:
        return values
    wide = np.full(shape, NOT_MEASURED, np.float32)
    wide[: values.shape[0], : values.shape[1]] = values
    return wide
