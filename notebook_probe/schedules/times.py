"""Schedule that is due a number of times in a run, evenly."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass, field

from notebook_probe.errors import ScheduleError
from notebook_probe.schedules.numbers import integer, stream_name
from notebook_probe.schedules.operators import Operators
from notebook_probe.schedules.span import UNBOUND, UNKNOWN, Span

__all__ = ["Times"]

FIRST = 128
"""Due steps while the end is unknown: after this number of steps, after twice as many, and so on.
"""


@dataclass(frozen=True, slots=True)
class Times(Operators):
    """Schedule due ``n`` times in a run, evenly, including the last step.

    With T steps from ``start`` on they are start + ⌈i·T/n⌉ - 1 for i = 1 ... n; all, if n ≥ T.
    As long as T is unknown, it is due when 128, 256, 512, ... steps are done; from then on at those
    that remain of the even split, so that none is made up for. One is reserved for the last step,
    even if that is earlier or later than assumed; if it was unknown, `is_owed` tells.

    Parameters
    ----------
    n : int
        0 is never.
    span : Span
        The run; one from step 0 on, of which the end is unknown, until it is bound.

    Examples
    --------
    >>> one = Times(4).bound(Span().until(1000))
    >>> [step for step in range(1000) if one(step)]
    [249, 499, 749, 999]
    >>> [step for step in range(1000) if Times(4)(step)]
    [127, 255, 511]
    """

    n: int
    span: Span = UNBOUND
    _pieces: tuple[_Piece, ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "n", integer(self.n, f"Times({self.n!r})"))
        if self.n < 0:
            raise ScheduleError(f"Times({self.n}): a number from 0 is expected")
        object.__setattr__(self, "_pieces", _pieces(self.n, self.span))

    def bound(self, span: Span) -> Times:
        return Times(self.n, span)

    def __call__(self, step: int) -> bool:
        place = bisect_right(self._pieces, step, key=lambda piece: piece.first)
        return place > 0 and self._pieces[place - 1].next_due(step) == step

    @property
    def stream(self) -> str:
        return stream_name(str(self))

    def next_due(self, step: int) -> int | None:
        dues = (piece.next_due(step) for piece in self._pieces)
        return next((due for due in dues if due is not None), None)

    def __str__(self) -> str:
        return f"times({self.n})"


@dataclass(frozen=True, slots=True)
class _Grid:
    """Points 1, 2, ... of a run with an assumed end."""

    n: int
    start: int
    total: int | None

    def point(self, i: int) -> int:
        done = FIRST << (i - 1) if self.total is None else -(-i * self.total // self.n)
        return self.start + done - 1

    def count(self, step: int) -> int:
        """Count the points up to and including ``step``."""
        done = max(step + 1 - self.start, 0)
        # The inverse of `point`, in integers: floats would be off by one in long runs.
        return (done // FIRST).bit_length() if self.total is None else done * self.n // self.total


@dataclass(frozen=True, slots=True)
class _Piece:
    """Steps with the same assumed end, and the points due there."""

    grid: _Grid
    first: int
    stop: int | None
    least: int
    most: int
    """Points from ``least`` to ``most``; none where that is less."""

    def next_due(self, step: int) -> int | None:
        i = max(self.least, self.grid.count(max(step, self.first) - 1) + 1)
        due = self.grid.point(i) if i <= self.most else None
        return due if due is not None and (self.stop is None or due < self.stop) else None

    @property
    def n_due(self) -> int:
        if self.stop is None:
            return 0
        return max(0, min(self.grid.count(self.stop - 1), self.most) - self.least + 1)


def _pieces(n: int, span: Span) -> tuple[_Piece, ...]:
    pieces: list[_Piece] = []
    n_done = 0
    for first, stop, end in span.pieces():
        total = None if end == UNKNOWN else end - span.start
        piece = _piece(_Grid(n, span.start, total), first, stop, n_done)
        pieces.append(piece)
        n_done += piece.n_due
    return tuple(pieces)


def _piece(grid: _Grid, first: int, stop: int | None, n_done: int) -> _Piece:
    """Return what is due over some steps, after so many times before."""
    if grid.n == 0 or (grid.total is not None and grid.total <= 0):
        return _Piece(_Grid(1, grid.start, None), first, stop, 1, 0)
    passed = grid.count(first - 1)
    if grid.total is None:  # one is kept for the last step
        return _Piece(grid, first, stop, passed + 1, passed + grid.n - 1 - n_done)
    grid = _Grid(min(grid.n, grid.total), grid.start, grid.total)
    least = max(min(n_done + 1, grid.n), grid.count(first - 1) + 1)
    return _Piece(grid, first, stop, least, grid.n)
