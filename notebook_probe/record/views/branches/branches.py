"""Names of streams' groups, and which of their rows form one history.

A stream is named after its schedule, ``every_1``; no schedule's name has a dot. With a dot:

* ``every_1.r2``: the same schedule on branch 2 of the record, which starts at the step in
  ``branches[1]`` of the root's attributes. The history of a branch is its own rows, and of
  every branch before it the rows of steps before any later one started, and of the state that it
  started with.
* ``late.3`` and ``early.1``: rows that were written out of order, of any schedule. Where two
  streams of one history measured the same cell, ``late`` is above all others and ``early`` below;
  of two late ones (or two early ones) the one with the greater number is above. Rows are ``late``
  if the training had passed their step, and ``early`` if it had not.
* ``eval_late.4``: the same, of states. The rows of streams whose names start with ``eval_`` are
  about states: the one of step k is the model after k updates, with which step k starts.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any, Literal, TypeAlias, cast

import numpy as np

from notebook_probe.errors import RecordFormatError, UnknownNameError
from notebook_probe.record.format.schema import EVALUATION, LOGGED_OF_STATES, PHASE
from notebook_probe.record.format.source import StreamView
from notebook_probe.record.views.branches.history import (
    ArrayHistory,
    BranchPiece,
    Cut,
    History,
    VectorHistory,
)

__all__ = [
    "IN_ORDER",
    "Branches",
    "Order",
    "StreamName",
    "is_evaluation",
    "is_of_states",
    "read_name",
    "rows_before",
]

Order: TypeAlias = Literal["early", "late"]

_NAME = re.compile(
    rf"(?P<base>(?:(?:{EVALUATION})?(?P<order>early|late)\.(?P<number>\d+)|[^.]+))"
    r"(?:\.r(?P<branch>\d+))?"
)
_ABOVE: dict[Order | None, int] = {"early": -1, None: 0, "late": 1}

MOST_BRANCHES = 10_000
"""Maximum branches of a valid record, as each is looked up in every stream."""

IN_ORDER = (0, 0)
"""Rank of a stream whose rows were written as the training went."""


@dataclass(frozen=True, slots=True)
class StreamName:
    """The name of a stream's group, read."""

    base: str
    branch: int = 1
    rank: tuple[int, int] = IN_ORDER
    """Rank of a stream: of two streams of one history the greater one is above."""
    order: Order | None = None
    """Order of rows that were written out of order."""

    def __str__(self) -> str:
        return self.base if self.branch == 1 else f"{self.base}.r{self.branch}"


@lru_cache(maxsize=1024)
def is_evaluation(name: str, branch: int) -> bool:
    """Return whether a stream has evaluations that a branch makes as it trains."""
    read = read_name(name)
    is_measured = read.base.startswith(EVALUATION) and read.base != LOGGED_OF_STATES
    return read.branch == branch and read.rank == IN_ORDER and is_measured


def is_of_states(stream: StreamView) -> bool:
    """Return whether a row's step is that of the state it describes.

    Streams of arrays are named after modules; the attributes of their quantity decide.
    """
    if hasattr(stream, "cell"):
        return all(PHASE in variable.attrs for variable in stream.variables)
    return stream.name.startswith(EVALUATION)


def rows_before(step: int, stream: StreamView) -> int:
    """Return how many rows of a stream belong to a training that continues at a step.

    An evaluation of the state after ``step`` updates belongs to what it continues from.
    """
    return int(np.searchsorted(stream.steps(), step + is_of_states(stream)))


@lru_cache(maxsize=1024)
def read_name(text: str) -> StreamName:
    """Parse the name of a group; an unknown form counts as a schedule's name.

    Examples
    --------
    >>> read_name("late.3.r2")
    StreamName(base='late.3', branch=2, rank=(1, 3), order='late')
    """
    found = _NAME.fullmatch(text)
    if found is None:
        return StreamName(text)
    order = cast("Order | None", found["order"])
    rank = _ABOVE[order], int(found["number"] or 0)
    return StreamName(found["base"], int(found["branch"] or 1), rank, order)


def _are_starts(starts: object) -> bool:
    if not isinstance(starts, list) or not 1 <= len(starts) <= MOST_BRANCHES:
        return False
    # A damaged record must not overflow int64 later.
    return all(type(step) is int and 0 <= step < 2**62 for step in starts)


class Branches:
    """Branches of a record up to one of them.

    Parameters
    ----------
    starts : sequence of int
        First step of each branch; the history is that of the last one.
    """

    def __init__(self, starts: Sequence[int] = (0,)) -> None:
        self.starts = tuple(starts)
        self._cuts: dict[tuple[object, ...], Cut] = {}

    @classmethod
    def of(cls, attrs: Mapping[str, Any], branch: int | None = None) -> Branches:
        """Read the branches in a record's attributes, up to ``branch`` (1, 2, ...) or the newest.

        Raises
        ------
        RecordFormatError
            The attributes are invalid.
        UnknownNameError
            There is no such branch.
        """
        starts = attrs.get("branches", [0])
        if not _are_starts(starts):
            raise RecordFormatError(
                f"branches={str(starts)[:80]} of the record; first steps are expected, from 0 on, "
                f"{MOST_BRANCHES} at most"
            )
        if branch is not None and not 1 <= branch <= len(starts):
            raise UnknownNameError(
                f"no branch {branch!r} in the record; there are 1 to {len(starts)}"
            )
        return cls(starts[:branch])

    def history(self, streams: Iterable[Any]) -> list[Any]:
        """Return one view per schedule, of the rows that belong to the newest branch."""
        schedules: dict[tuple[object, str], list[tuple[int, StreamView]]] = {}
        for stream in streams:
            # Streams of one schedule with different axes are different series.
            name, group = read_name(stream.name), getattr(stream, "axis", None)
            if name.branch <= len(self.starts):
                schedules.setdefault((group, name.base), []).append((name.branch, stream))
        return [self._joined(key[1], key[0], views) for key, views in schedules.items()]

    def _joined(self, name: str, axis: Any, views: list[tuple[int, StreamView]]) -> StreamView:
        newest = len(self.starts)
        pieces = [
            BranchPiece(
                view,
                None if branch == newest else partial(self._cut, branch, axis, view),
            )
            for branch, view in sorted(views, key=lambda pair: pair[0])
        ]
        only = pieces[0]
        # The usual record has one branch: no wrapping, no cost.
        if len(pieces) == 1 and only.cut is None and only.view.name == name:
            return only.view
        if axis is not None:
            return VectorHistory(name, pieces, axis)
        cell = getattr(only.view, "cell", None)
        return History(name, pieces) if cell is None else ArrayHistory(name, pieces, cell)

    def _cut(self, branch: int, axis: object, view: StreamView) -> Cut:
        """Return the end of an older branch, which no longer grows: the start of a later one."""
        # Streams of one name may hold numbers, vectors and arrays.
        key = axis, view.name, tuple(variable.name for variable in view.variables)
        if key not in self._cuts:
            # A later branch may go back further than the next one.
            step = min(self.starts[branch:])
            n_rows = rows_before(step, view)
            has_state = n_rows > 0 and view.steps(n_rows - 1, n_rows)[0] == step
            self._cuts[key] = Cut(n_rows, step if has_state else -1)
        return self._cuts[key]
