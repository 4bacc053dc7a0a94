"""What the groups of streams are called, and which of their rows are one history.

A stream is called after its schedule, ``every_1``; no schedule's name has a dot. With a dot are

* ``every_1.r2``: the same schedule on branch 2 of the record, which begins at the step that
  ``branches[1]`` of the root's attributes tells. The history of a branch is its own rows, and of
  every branch before it those of steps before any later one began.
* ``late.3`` and ``early.1``: rows that were written out of order, of whatever schedule. Where two
  streams of one history measured the same cell, ``late`` is above all others and ``early`` below;
  of two late ones (or two early ones) the one with the greater number is above. Rows are ``late``
  when the training had passed their step, and ``early`` when it had not.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any, Literal, TypeAlias

import numpy as np

from notebook_probe.axis import Axis
from notebook_probe.errors import RecordFormatError, UnknownNameError
from notebook_probe.record.format.lookup import columns, quantity_place
from notebook_probe.record.format.missing import NOT_MEASURED
from notebook_probe.record.format.schema import EVALUATION, LOGGED_OF_STATES
from notebook_probe.record.format.source import (
    ChunkGrid,
    Floats,
    LevelView,
    Steps,
    StreamView,
    Variable,
)

__all__ = ["IN_ORDER", "Branches", "Order", "StreamName", "is_evaluation", "read_name"]

Order: TypeAlias = Literal["early", "late"]

_NAME = re.compile(
    r"(?P<base>(?:(?P<order>early|late)\.(?P<number>\d+)|[^.]+))(?:\.r(?P<branch>\d+))?"
)
_ABOVE = {"early": -1, None: 0, "late": 1}

IN_ORDER = (0, 0)
"""Rank of a stream whose rows were written as the training went."""


@dataclass(frozen=True, slots=True)
class StreamName:
    """The name of a stream's group, read."""

    base: str
    branch: int = 1
    rank: tuple[int, int] = IN_ORDER
    """Of two streams of one history the one of greater rank is above the other."""

    def __str__(self) -> str:
        return self.base if self.branch == 1 else f"{self.base}.r{self.branch}"


@lru_cache(maxsize=1024)
def is_evaluation(name: str, branch: int) -> bool:
    """Tell whether a branch measures in a stream what is evaluated."""
    read = read_name(name)
    is_logged = read.base == LOGGED_OF_STATES
    return read.branch == branch and read.base.startswith(EVALUATION) and not is_logged


def read_name(text: str) -> StreamName:
    """The parts of a group's name; one that nobody here has given is a schedule's.

    Examples
    --------
    >>> read_name("late.3.r2")
    StreamName(base='late.3', branch=2, rank=(1, 3))
    """
    found = _NAME.fullmatch(text)
    if found is None:
        return StreamName(text)
    rank = _ABOVE[found["order"]], int(found["number"] or 0)
    return StreamName(found["base"], int(found["branch"] or 1), rank)


class Branches:
    """The branches of a record up to one of them.

    Parameters
    ----------
    starts : sequence of int
        First step of each; the last one's history is told.
    """

    def __init__(self, starts: Sequence[int] = (0,)) -> None:
        self.starts = tuple(starts)
        self._n_rows: dict[tuple[object, ...], int] = {}

    @classmethod
    def of(cls, attrs: Mapping[str, Any], branch: int | None = None) -> Branches:
        """Those a record's attributes tell of, up to ``branch`` (1, 2, ...) or to the newest.

        Raises
        ------
        RecordFormatError
            When the attributes make no sense.
        UnknownNameError
            When there is no such branch.
        """
        starts = attrs.get("branches", [0])
        if not (isinstance(starts, list) and starts and all(type(step) is int for step in starts)):
            raise RecordFormatError(f"branches={starts!r} of the record; first steps are expected")
        if branch is not None and not 1 <= branch <= len(starts):
            raise UnknownNameError(
                f"no branch {branch!r} in the record; there are 1 to {len(starts)}"
            )
        return cls(starts[:branch])

    def history(self, streams: Iterable[Any]) -> list[Any]:
        """One view per schedule, of the rows that belong to the newest branch."""
        schedules: dict[tuple[object, str], list[tuple[int, StreamView]]] = {}
        for stream in streams:
            name, group = read_name(stream.name), getattr(stream, "axis", None)
            if name.branch <= len(self.starts):
                schedules.setdefault((group, name.base), []).append((name.branch, stream))
        return [self._joined(key[1], key[0], views) for key, views in schedules.items()]

    def _joined(self, name: str, axis: Any, views: list[tuple[int, StreamView]]) -> StreamView:
        newest = len(self.starts)
        pieces = [
            BranchPiece(
                view,
                None if branch == newest else partial(self._rows_before_next, branch, axis, view),
            )
            for branch, view in sorted(views, key=lambda pair: pair[0])
        ]
        only = pieces[0]
        if len(pieces) == 1 and only.count is None and only.view.name == name:
            return only.view
        if axis is not None:
            return _VectorHistory(name, pieces, axis)
        cell = getattr(only.view, "cell", None)
        return _History(name, pieces) if cell is None else _ArrayHistory(name, pieces, cell)

    def _rows_before_next(self, branch: int, axis: object, view: StreamView) -> int:
        """Rows of an older branch, which no longer grows, before a later one began."""
        # Streams of one name may hold numbers, vectors and arrays.
        key = axis, view.name, tuple(variable.name for variable in view.variables)
        if key not in self._n_rows:
            end = min(self.starts[branch:], default=math.inf)
            self._n_rows[key] = int(np.searchsorted(view.steps(), end))
        return self._n_rows[key]


@dataclass(frozen=True, slots=True)
class BranchPiece:
    view: StreamView
    count: Callable[[], int] | None
    """How many of its rows count, asked when they are needed; None for all, as it grows."""

    def __len__(self) -> int:
        return self.view.n_rows if self.count is None else self.count()


class _History:
    """A StreamView of the rows of several, one after the other."""

    def __init__(self, name: str, pieces: Sequence[BranchPiece]) -> None:
        self.name = name
        self._pieces = pieces

    @property
    def modules(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(name for piece in self._pieces for name in piece.view.modules))

    @property
    def variables(self) -> tuple[Variable, ...]:
        every = (variable for piece in self._pieces for variable in piece.view.variables)
        return tuple({variable.name: variable for variable in every}.values())

    @property
    def levels(self) -> Mapping[int, LevelView]:
        """None: the blocks of a piece may reach beyond the rows of it that count."""
        return {}

    @property
    def version(self) -> tuple[object, ...]:
        return tuple(piece.view.version for piece in self._pieces)

    @property
    def n_rows(self) -> int:
        return sum(map(len, self._pieces))

    def steps(self, start: int = 0, stop: int | None = None) -> Steps:
        parts = [view.steps(first, last) for view, first, last in self._parts(start, stop)]
        return np.concatenate([np.empty(0, np.int64), *parts])

    def times(self, start: int = 0, stop: int | None = None) -> Steps:
        parts = [view.times(first, last) for view, first, last in self._parts(start, stop)]
        return np.concatenate([np.empty(0, np.int64), *parts])

    def values(
        self,
        quantity: str,
        start: int = 0,
        stop: int | None = None,
        modules: Sequence[str] | None = None,
    ) -> Floats:
        known = self.modules
        quantity_place(self.name, {variable.name: 0 for variable in self.variables}, quantity)
        if modules is not None:
            places = columns(self.name, {label: i for i, label in enumerate(known)}, modules)
            known = tuple(known[place] for place in places)
        parts = [
            _values(view, quantity, first, last, known, self._cell)
            for view, first, last in self._parts(start, stop)
        ]
        return np.concatenate([np.empty((0, len(known), *self._cell), np.float32), *parts])

    def chunk_grid(self, quantity: str) -> ChunkGrid:
        rows, widths, base = [0], [1], 0
        for piece in self._pieces:
            rows.append(base)
            if any(variable.name == quantity for variable in piece.view.variables):
                grid = piece.view.chunk_grid(quantity)
                rows += [base + row for row in grid.rows if row < len(piece)]
                widths.append(grid.width)
            base += len(piece)
        return ChunkGrid(tuple(dict.fromkeys(rows)), max(widths))

    @property
    def _cell(self) -> tuple[int, ...]:
        return ()

    def _parts(self, start: int, stop: int | None) -> list[tuple[StreamView, int, int]]:
        """The rows ``start:stop`` as rows of the pieces."""
        lengths = [len(piece) for piece in self._pieces]
        start, stop, _ = slice(start, stop).indices(sum(lengths))
        parts, base = [], 0
        for piece, length in zip(self._pieces, lengths, strict=True):
            first, last = max(0, start - base), min(length, stop - base)
            if first < last:
                parts.append((piece.view, first, last))
            base += length
        return parts


class _VectorHistory(_History):
    """A VectorView of the rows of several."""

    def __init__(self, name: str, pieces: Sequence[BranchPiece], axis: Axis) -> None:
        super().__init__(name, pieces)
        self.axis = axis

    @property
    def _cell(self) -> tuple[int, ...]:
        return (self.axis.size,)


class _ArrayHistory(_History):
    """An ArrayView of the rows of several."""

    def __init__(self, name: str, pieces: Sequence[BranchPiece], cell: tuple[int, ...]) -> None:
        super().__init__(name, pieces)
        self.cell = cell

    @property
    def _cell(self) -> tuple[int, ...]:
        return self.cell


def _values(
    view: StreamView,
    quantity: str,
    start: int,
    stop: int,
    modules: Sequence[str],
    cell: tuple[int, ...],
) -> Floats:
    """Values of one piece at columns of which it may lack some."""
    out = np.full((stop - start, len(modules), *cell), NOT_MEASURED, np.float32)
    known = set(view.modules)
    present = [place for place, name in enumerate(modules) if name in known]
    if present and any(variable.name == quantity for variable in view.variables):
        out[:, present] = view.values(quantity, start, stop, [modules[place] for place in present])
    return out
