"""What the groups of streams are called, and which of their rows are one history.

A stream is called after its schedule, ``every_1``; no schedule's name has a dot. With a dot are

* ``every_1.r2``: the same schedule on branch 2 of the record, which begins at the step that
  ``branches[1]`` of the root's attributes tells. The history of a branch is its own rows, and of
  every branch before it those of steps before any later one began, and of the state that it began
  with.
* ``late.3`` and ``early.1``: rows that were written out of order, of whatever schedule. Where two
  streams of one history measured the same cell, ``late`` is above all others and ``early`` below;
  of two late ones (or two early ones) the one with the greater number is above. Rows are ``late``
  when the training had passed their step, and ``early`` when it had not.
* ``eval_late.4``: the same, of states. The rows of streams that begin with ``eval_`` are of states:
  that of step k is of the model after k updates, with which step k begins.
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

IN_ORDER = (0, 0)
"""Rank of a stream whose rows were written as the training went."""


@dataclass(frozen=True, slots=True)
class StreamName:
    """The name of a stream's group, read."""

    base: str
    branch: int = 1
    rank: tuple[int, int] = IN_ORDER
    """Of two streams of one history the one of greater rank is above the other."""
    order: Order | None = None
    """Of rows that were written out of order."""

    def __str__(self) -> str:
        return self.base if self.branch == 1 else f"{self.base}.r{self.branch}"


@lru_cache(maxsize=1024)
def is_evaluation(name: str, branch: int) -> bool:
    """Tell whether a branch measures in a stream, as it trains, what is evaluated."""
    read = read_name(name)
    is_measured = read.base.startswith(EVALUATION) and read.base != LOGGED_OF_STATES
    return read.branch == branch and read.rank == IN_ORDER and is_measured


def is_of_states(stream: StreamView) -> bool:
    """Tell whether the step of a row is that of the state which it is of.

    Arrays lie in streams that are called after modules; their quantity tells it.
    """
    if hasattr(stream, "cell"):
        return all(PHASE in variable.attrs for variable in stream.variables)
    return stream.name.startswith(EVALUATION)


def rows_before(step: int, stream: StreamView) -> int:
    """How many rows a training has that goes on at a step.

    An evaluation of the state after ``step`` updates is one of what it goes on from.
    """
    return int(np.searchsorted(stream.steps(), step + is_of_states(stream)))


@lru_cache(maxsize=1024)
def read_name(text: str) -> StreamName:
    """The parts of a group's name; one that nobody here has given is a schedule's.

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


class Branches:
    """The branches of a record up to one of them.

    Parameters
    ----------
    starts : sequence of int
        First step of each; the last one's history is told.
    """

    def __init__(self, starts: Sequence[int] = (0,)) -> None:
        self.starts = tuple(starts)
        self._cuts: dict[tuple[object, ...], Cut] = {}

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
                None if branch == newest else partial(self._cut, branch, axis, view),
            )
            for branch, view in sorted(views, key=lambda pair: pair[0])
        ]
        only = pieces[0]
        if len(pieces) == 1 and only.cut is None and only.view.name == name:
            return only.view
        if axis is not None:
            return VectorHistory(name, pieces, axis)
        cell = getattr(only.view, "cell", None)
        return History(name, pieces) if cell is None else ArrayHistory(name, pieces, cell)

    def _cut(self, branch: int, axis: object, view: StreamView) -> Cut:
        """How far an older branch, which no longer grows, counts: to where a later one began."""
        # Streams of one name may hold numbers, vectors and arrays.
        key = axis, view.name, tuple(variable.name for variable in view.variables)
        if key not in self._cuts:
            step = min(self.starts[branch:])
            n_rows = rows_before(step, view)
            has_state = n_rows > 0 and view.steps(n_rows - 1, n_rows)[0] == step
            self._cuts[key] = Cut(n_rows, step if has_state else -1)
        return self._cuts[key]
