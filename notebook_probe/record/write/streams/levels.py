"""Writing the pyramid of one stream: ``pyramid/<stream>/by64`` and its coarser siblings.

Blocks wait until there are enough of them to be worth the files they touch; a level begins when its
blocks are so many that a picture is drawn from them sooner than from the rows, which readers take
themselves where a level ends. Waiting blocks are dropped only after a commit has published them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial

from notebook_probe.record.format.array_specs import reduced_spec, step_spec
from notebook_probe.record.format.axes import Axes
from notebook_probe.record.format.chunk_sizes import SMALL
from notebook_probe.record.format.kinds import NUMBERS, Kind
from notebook_probe.record.format.reductions import METHODS, SIZES
from notebook_probe.record.format.schema import PYRAMID, level_name
from notebook_probe.record.format.source import Floats, Steps, StreamView
from notebook_probe.record.write.streams.arrays import ShapedArrayWriter
from notebook_probe.record.write.streams.pyramid import NOTHING, Pyramid, Totals
from notebook_probe.record.write.streams.rows import BufferedRows

__all__ = ["Levels"]

BATCH_BYTES = 2**20
"""Blocks that wait at most; a run that never has as many gets its pyramid when it is closed."""
FEWEST_BLOCKS = (64, 32, 8)
"""Least blocks of each level before it is written.

The coarser levels start earlier than they are needed, because continuing a record reads all rows
again that a level lacks.
"""
COLUMNS_AT_A_TIME = 64

NONE_WAITING = (NOTHING,) * len(SIZES)


@dataclass(frozen=True, slots=True)
class _State:
    """The unfinished blocks, the finished ones that wait, and how many are on disk."""

    pyramid: Pyramid | None
    """None until the rows that are on disk already have been read."""
    waiting: tuple[Totals, ...]
    n_written: tuple[int, ...]
    axes: Axes | None = None
    """Axes of the levels when they were last published."""

    def fed(self, steps: Steps, values: Floats) -> _State:
        pyramid, done = (self.pyramid or Pyramid()).fed(steps, values)
        pairs = zip(self.waiting, done, strict=True)
        waiting = tuple(Totals.after_each_other(pair) for pair in pairs)
        return replace(self, pyramid=pyramid, waiting=waiting)

    def published(self, axes: Axes) -> _State:
        levels = [*zip(self.n_written, self.waiting, self.are_due, strict=True)]
        n_written = tuple(n + len(blocks) * is_due for n, blocks, is_due in levels)
        waiting = tuple(NOTHING if is_due else blocks for _, blocks, is_due in levels)
        return replace(self, waiting=waiting, n_written=n_written, axes=axes)

    @property
    def are_due(self) -> tuple[bool, ...]:
        """Levels that are on disk, or have enough blocks for it."""
        levels = zip(self.n_written, self.waiting, FEWEST_BLOCKS, strict=True)
        return tuple(
            n > 0 or len(blocks) >= fewest or blocks.nbytes > BATCH_BYTES
            for n, blocks, fewest in levels
        )

    @property
    def nbytes(self) -> int:
        return sum(blocks.nbytes for blocks in self.waiting)


class Levels:
    """The pyramid of one stream, as the thread that writes it keeps it.

    Parameters
    ----------
    name : str
        Name of the stream.
    kind : Kind
        Kind of its columns.
    stored : StreamView, optional
        Rows that are on disk already: where the unfinished blocks begin, and maybe the pyramid.
    n_rows : int
        Number of rows that count.
    n_written : sequence of int
        Blocks of each level on disk; those beyond ``n_rows`` do not count.
    """

    def __init__(
        self,
        name: str,
        kind: Kind = NUMBERS,
        stored: StreamView | None = None,
        n_rows: int = 0,
        n_written: Sequence[int] = (0,) * len(SIZES),
    ) -> None:
        self._path = f"{PYRAMID}/{name}"
        self._kind = kind
        self._stored = stored
        self._n_rows = n_rows
        n_left = tuple(min(n, n_rows // size) for n, size in zip(n_written, SIZES, strict=True))
        self._state = self._next = _State(None, NONE_WAITING, n_left)

    def write(
        self, arrays: ShapedArrayWriter, rows: BufferedRows, start: int, width: int, *, whole: bool
    ) -> None:
        """Take in the rows from ``start`` on; write what waits when it is much or to be ``whole``.

        Rows on disk are published in any case.
        """
        state = self._state
        if state.pyramid is None and rows.stop > start and self._stored is not None:
            state = self._caught_up(self._stored, state)
        for steps, values in rows.tables(start, rows.stop):
            state = state.fed(steps, values)
        if whole or state.nbytes > BATCH_BYTES or (state.axes is None and any(state.n_written)):
            self._publish(arrays, rows.axes, width, state)
            state = state.published(rows.axes)
        self._next = state

    def commit(self) -> None:
        """Note that the last write is published."""
        self._state = self._next

    def _caught_up(self, stored: StreamView, state: _State) -> _State:
        """Return the state with the incomplete and unwritten blocks of the rows on disk."""
        covered = min(n * size for n, size in zip(state.n_written, SIZES, strict=True))
        start = covered // SIZES[-1] * SIZES[-1]
        pyramid, done = _of_stored(stored, start, self._n_rows)
        waiting = tuple(
            blocks[n - start // size :]
            for blocks, n, size in zip(done, state.n_written, SIZES, strict=True)
        )
        return replace(state, pyramid=pyramid, waiting=waiting)

    def _publish(self, arrays: ShapedArrayWriter, axes: Axes, width: int, state: _State) -> None:
        levels = zip(SIZES, state.waiting, state.n_written, state.are_due, strict=True)
        for size, blocks, start, is_due in levels:
            if is_due:
                path = f"{self._path}/{level_name(size)}"
                arrays.nodes.group(PYRAMID)
                arrays.nodes.group(self._path)
                arrays.nodes.group(path, {"rows_per_block": size})
                self._write_level(arrays, path, axes, width, start, blocks)
                for name, (spec, labels) in self._kind.columns(axes).items():
                    if f"{path}/{name}" not in arrays.nodes.texts or axes is not state.axes:
                        arrays.write_whole(f"{path}/{name}", spec, labels)

    def _write_level(
        self,
        arrays: ShapedArrayWriter,
        path: str,
        axes: Axes,
        width: int,
        start: int,
        blocks: Totals,
    ) -> None:
        dim = self._kind.reduced_along
        stop, reductions = start + len(blocks), blocks.arrays()
        for place, variable in enumerate(axes.variables):
            for suffix, method in METHODS.items():
                key = f"{path}/{variable.name}_{suffix}"
                spec = partial(reduced_spec, variable, method, width, dim)
                arrays.take_up(key, spec)
                if place < reductions[suffix].shape[1]:
                    arrays.write_rows(key, start, reductions[suffix][:, place])
                arrays.grow(key, (stop, len(axes.modules)))
        arrays.take_up(f"{path}/step", partial(step_spec, SMALL))
        arrays.write_rows(f"{path}/step", start, blocks.steps)
        arrays.grow(f"{path}/step", (stop,))


def _of_stored(stream: StreamView, start: int, stop: int) -> tuple[Pyramid, tuple[Totals, ...]]:
    """Return the pyramid of rows ``start:stop`` and its blocks, reading a few columns at a time."""
    steps = stream.steps(start, stop)
    variables = [
        _side_by_side(
            [
                Pyramid().fed(steps, values[:, None])
                for values in _column_groups(stream, variable.name, start, stop)
            ],
            axis=2,
        )
        for variable in stream.variables
    ]
    return _side_by_side(variables, axis=1)


def _side_by_side(
    parts: Sequence[tuple[Pyramid, tuple[Totals, ...]]], axis: int
) -> tuple[Pyramid, tuple[Totals, ...]]:
    levels = zip(*(done for _, done in parts), strict=True)
    return (
        Pyramid.side_by_side([pyramid for pyramid, _ in parts], axis),
        tuple(Totals.side_by_side(level, axis) for level in levels),
    )


def _column_groups(stream: StreamView, quantity: str, start: int, stop: int) -> Iterator[Floats]:
    for first in range(0, len(stream.modules), COLUMNS_AT_A_TIME):
        modules = stream.modules[first : first + COLUMNS_AT_A_TIME]
        yield stream.values(quantity, start, stop, modules)
