"""How far a run came: steps, times, its loss, whether it has ended."""

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
    "Loss",
    "begun_ms",
    "duration_s",
    "is_of_states",
    "loss_of",
    "n_steps",
    "scalar_of",
    "state_of",
]

FEW_POINTS = 8


class Loss(NamedTuple):
    """Of the steps that were recorded; NaN where there is none."""

    first: float
    last: float
    best: float
    """The least that is finite."""


def loss_of(source: Source) -> Loss:
    """First, last and least loss; of a long record its pyramid is read."""
    name = scalar_of(source, only_loss=True)
    try:
        if not name:
            raise ProbeError
        found = source.thinned("", name, n_points=FEW_POINTS)
    except ProbeError:  # it has a column, and no value in it
        return Loss(math.nan, math.nan, math.nan)
    if not len(found.y):
        return Loss(math.nan, math.nan, math.nan)
    lost = found.nonfinite
    first = math.nan if len(lost) and lost[0] < found.x[0] else float(found.y[0])
    last = math.nan if len(lost) and lost[-1] > found.x[-1] else float(found.y[-1])
    return Loss(first, last, float(found.y.min()))


def scalar_of(source: Source, *, only_loss: bool = False) -> str:
    """The loss, else the first scalar of the loop; empty without any."""
    logged = [
        one.name
        for stream in source.streams.values()
        for one in stream.variables
        if is_of_loop(one) and ROOT in stream.modules
    ]
    loss = loss_name(logged)
    return loss if loss in logged else "" if only_loss else next(iter(logged), "")


def n_steps(source: Source) -> int:
    """Completed steps, as a run counts them; the step of an evaluation is their number itself."""
    ends = [
        int(stream.steps(stream.n_rows - 1, stream.n_rows)[0]) + (not is_of_states(path))
        for path, stream in source.streams.items()
        if stream.n_rows
    ]
    return max(ends, default=0)


def is_of_states(path: str) -> bool:
    """Whether a stream's rows are evaluations of states."""
    return path.rpartition("/")[2].startswith(EVALUATION)


def begun_ms(attrs: Mapping[str, Any]) -> int:
    """When the record was made, since 1970; 0 where it does not say."""
    try:
        return round(datetime.fromisoformat(str(attrs["created"])).timestamp() * 1000)
    except (KeyError, ValueError):
        return 0


def duration_s(source: Source, attrs: Mapping[str, Any]) -> float:
    """From when the record was made to its last row; NaN where one of the two is not known."""
    begun, last = begun_ms(attrs), _last_ms(source)
    return (last - begun) / 1000.0 if begun and last else math.nan


def state_of(finished: bool, is_written: bool) -> str:
    """``"finished"``, ``"running"``, or ``"killed"`` where nobody writes what nobody ended.

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
