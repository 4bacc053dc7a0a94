"""The rows of several branches of one stream as one history."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from notebook_probe.axis import Axis
from notebook_probe.record.format.lookup import columns, quantity_place
from notebook_probe.record.format.missing import NOT_MEASURED, measured
from notebook_probe.record.format.source import (
    ChunkGrid,
    Floats,
    LevelView,
    Steps,
    StreamView,
    Variable,
)

__all__ = ["ArrayHistory", "BranchPiece", "Cut", "History", "VectorHistory"]


@dataclass(frozen=True, slots=True)
class Cut:
    """End of an older branch in one of its streams."""

    n_rows: int
    """Number of rows that count."""
    state: int = -1
    """State with which the next branch starts, if the last of these rows is about it."""


@dataclass(frozen=True, slots=True)
class BranchPiece:
    """The rows of one branch."""

    view: StreamView
    cut: Callable[[], Cut] | None
    """Function that returns the cut; None for all rows, as they grow."""

    def __len__(self) -> int:
        return self.view.n_rows if self.cut is None else self.cut().n_rows

    def is_under(self, later: BranchPiece) -> bool:
        """Return whether its last row is about the same state as the first of a later branch."""
        state = -1 if self.cut is None else self.cut().state
        return state >= 0 and state == int(later.view.steps(0, 1)[0])


class History:
    """A StreamView of the rows of several branches, one after the other.

    The state at which a branch starts may have been evaluated on the branch before and on its own:
    such rows are one row, in which cells of the later branch are above.
    """

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
        """Empty: the blocks of a piece may extend beyond the rows that count."""
        return {}

    @property
    def version(self) -> tuple[object, ...]:
        # The newest piece grows: its length changes without a new version.
        return (*(piece.view.version for piece in self._pieces), *self._lengths()[:-1])

    @property
    def n_rows(self) -> int:
        return sum(self._lengths())

    def steps(self, start: int = 0, stop: int | None = None) -> Steps:
        parts = [
            self._pieces[place].view.steps(first, last)
            for place, first, last in self._parts(start, stop)
        ]
        return np.concatenate([np.empty(0, np.int64), *parts])

    def times(self, start: int = 0, stop: int | None = None) -> Steps:
        parts = [
            self._pieces[place].view.times(first, last)
            for place, first, last in self._parts(start, stop)
        ]
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
            self._values(place, quantity, first, last, known)
            for place, first, last in self._parts(start, stop)
        ]
        return np.concatenate([np.empty((0, len(known), *self._cell), np.float32), *parts])

    def chunk_grid(self, quantity: str) -> ChunkGrid:
        rows, widths, base = [0], [1], 0
        for piece, length in zip(self._pieces, self._lengths(), strict=True):
            rows.append(base)
            if any(variable.name == quantity for variable in piece.view.variables):
                grid = piece.view.chunk_grid(quantity)
                rows += [base + row for row in grid.rows if row < length]
                widths.append(grid.width)
            base += length
        return ChunkGrid(tuple(dict.fromkeys(rows)), max(widths))

    @property
    def _cell(self) -> tuple[int, ...]:
        return ()

    def _lengths(self) -> list[int]:
        """Rows of each piece, without those that are under the first row of a later piece."""
        lengths = [len(piece) for piece in self._pieces]
        return [
            length - (length > 0 and self._above(place) is not None)
            for place, length in enumerate(lengths)
        ]

    def _above(self, place: int) -> int | None:
        """Return the piece whose first row hides the last row of the piece at ``place``."""
        begun = (later for later in range(place + 1, len(self._pieces)) if self._pieces[later])
        later = next(begun, None)
        is_under = later is not None and self._pieces[place].is_under(self._pieces[later])
        return later if is_under else None

    def _values(
        self, place: int, quantity: str, start: int, stop: int, modules: Sequence[str]
    ) -> Floats:
        """Values of one piece; where its first row is above one of an earlier piece, of both."""
        found = _values(self._pieces[place].view, quantity, start, stop, modules, self._cell)
        if start == 0 < stop:
            for under in self._under(place):
                # What the later branch measured counts; the rest of that state is known from the
                # earlier one.
                row = len(under) - 1
                below = _values(under.view, quantity, row, row + 1, modules, self._cell)
                found[:1] = np.where(measured(found[:1]), found[:1], below)
        return found

    def _under(self, place: int) -> list[BranchPiece]:
        """Return the earlier pieces whose last row is hidden by this first row, latest first."""
        found = []
        for earlier in reversed(range(place)):
            piece = self._pieces[earlier]
            if piece and self._above(earlier) != place:
                break
            if piece:
                found.append(piece)
                place = earlier
            if len(piece) > 1:
                break
        return found

    def _parts(self, start: int, stop: int | None) -> list[tuple[int, int, int]]:
        """Return the rows ``start:stop`` as rows of the pieces, by index of the piece."""
        lengths = self._lengths()
        start, stop, _ = slice(start, stop).indices(sum(lengths))
        parts, base = [], 0
        for place, length in enumerate(lengths):
            first, last = max(0, start - base), min(length, stop - base)
            if first < last:
                parts.append((place, first, last))
            base += length
        return parts


class VectorHistory(History):
    """A VectorView of the rows of several."""

    def __init__(self, name: str, pieces: Sequence[BranchPiece], axis: Axis) -> None:
        super().__init__(name, pieces)
        self.axis = axis

    @property
    def _cell(self) -> tuple[int, ...]:
        return (self.axis.size,)


class ArrayHistory(History):
    """ArrayView that joins the rows of several branches."""

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
    known = set(view.modules)
    present = [place for place, name in enumerate(modules) if name in known]
    # Read before room is made: a damaged record may claim any number of rows.
    if present and any(variable.name == quantity for variable in view.variables):
        found = view.values(quantity, start, stop, [modules[place] for place in present])
    else:
        present, found = [], np.empty((len(view.steps(start, stop)), 0, *cell), np.float32)
    out = np.full((stop - start, len(modules), *cell), NOT_MEASURED, np.float32)
    out[:, present] = found
    return out
