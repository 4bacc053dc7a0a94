"""Progress of a run: steps, times, its loss, whether it has ended."""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import datetime
from typing import Any, NamedTuple

from notebook_probe.errors import ProbeError
from notebook_probe.record.format.loss_names import loss_name
from notebook_probe.record.format.schema import EVALUATION, is_of_loop
from notebook_probe.record.format.source import ROOT, Source

__all__ = [
    "RecordedLoss",
    "begun_ms",
    "duration_s",
    "is_of_states",
    "loss_of",
    "n_steps",
    "scalar_of",
    "state_of",
]

FEW_POINTS = 8


class RecordedLoss(NamedTuple):
    """Loss over the recorded steps; NaN if there is none."""

    first: float
    last: float
    best: float
    """The least that is finite."""


def loss_of(source: Source) -> RecordedLoss:
    """First, last and least loss; of a long record its pyramid is read."""
    name = scalar_of(source, only_loss=True)
    try:
        if not name:
            raise ProbeError
        found = source.thinned("", name, n_points=FEW_POINTS)
    except ProbeError:  # it has a column, and no value in it
        return RecordedLoss(math.nan, math.nan, math.nan)
    if not len(found.y):
        return RecordedLoss(math.nan, math.nan, math.nan)
    # Points that are thinned are finite: a loss that has ended in NaN would look well.
    lost = found.nonfinite
    first = math.nan if len(lost) and lost[0] < found.x[0] else float(found.y[0])
    last = math.nan if len(lost) and lost[-1] > found.x[-1] else float(found.y[-1])
    return RecordedLoss(first, last, float(found.y.min()))


def scalar_of(source: Source, *, only_loss: bool = False) -> str:
    """Return the name of the loss, else of the first logged scalar; empty without any.

    A loss that is logged only in evaluations is not a loss of the training.
    """
    of_steps, of_states = _logged_names(source, False), _logged_names(source, True)
    loss = loss_name(of_steps)
    return loss if loss in of_steps else "" if only_loss else next(iter(of_steps + of_states), "")


def _logged_names(source: Source, of_states: bool) -> list[str]:
    return [
        one.name
        for path, stream in source.streams.items()
        for one in stream.variables
        if is_of_states(path) == of_states and is_of_loop(one) and ROOT in stream.modules
    ]


def n_steps(source: Source) -> int:
    """Completed steps, as a run counts them; the step of an evaluation is their number itself."""
    ends = [
        int(stream.steps(stream.n_rows - 1, stream.n_rows)[0]) + (not is_of_states(path))
        for path, stream in source.streams.items()
        if stream.n_rows
    ]
    return max(ends, default=0)


def is_of_states(path: str) -> bool:
    """Return whether a stream's rows are evaluations of states."""
    return path.rpartition("/")[2].startswith(EVALUATION)


def begun_ms(attrs: Mapping[str, Any]) -> int:
    """Return the creation time of a record, in milliseconds since 1970; 0 if unknown."""
    try:
        return round(datetime.fromisoformat(str(attrs["created"])).timestamp() * 1000)
    except (KeyError, ValueError):
        return 0


def duration_s(source: Source, attrs: Mapping[str, Any]) -> float:
    """Return the seconds from the record's creation to its last row; NaN if unknown."""
    begun, last = begun_ms(attrs), _last_ms(source)
    return (last - begun) / 1000.0 if begun and last else math.nan


def state_of(finished: bool, is_written: bool) -> str:
    """Return ``"finished"``, ``"running"``, or ``"killed"`` for an unfinished unwritten record.

    Examples
    --------
    >>> state_of(True, False), state_of(False, True), state_of(False, False)
    ('finished', 'running', 'killed')
    """
    if finished:
        return "finished"
    return "running" if is_written else "killed"


def _last_ms(source: Source) -> int:
    held = [stream for stream in source.streams.values() if stream.n_rows]
    return max((int(one.times(one.n_rows - 1, one.n_rows)[0]) for one in held), default=0)
