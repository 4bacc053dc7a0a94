"""Measurements of a step, as numbers on the host: everything of it that leaves the probes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from notebook_probe.axis import AxisLike

__all__ = ["POOLED", "Columns", "MeasuredStep", "StreamValues"]

POOLED = -1
"""Call number of a value for a whole step."""


@dataclass(frozen=True, eq=False)
class Columns:
    """Columns of a set of due probes in one stream; one object as long as the set is the same.

    Attributes
    ----------
    stream : str
    axis : Axis, PER_CHANNEL, IMAGE or None
        Axis of the stream's vectors.
    cells : tuple of (str, str)
        Variable and place of each column.
    """

    stream: str
    axis: AxisLike | None
    cells: tuple[tuple[str, str], ...]


@dataclass(slots=True, eq=False)
class StreamValues:
    """The values of one stream in one step.

    Attributes
    ----------
    columns : Columns
    places : list of (int, int)
        Column and call of each value.
    numbers : list
        A number each, or a vector.
    is_whole : bool
        Every column has its one value, in the order of the columns.
    """

    columns: Columns
    places: list[tuple[int, int]]
    numbers: list[Any]
    is_whole: bool


@dataclass(slots=True, eq=False)
class MeasuredStep:
    """Step for the record.

    Attributes
    ----------
    step, time_ms : int
    streams : sequence of StreamValues
    named : dict
        Place and name -> number, of what was collected.
    logged : dict
        Name -> number, of what the loop logged.
    of_state : bool
        True if the logged values describe the state before the step.
    arrays : mapping
        Place and name -> array, of what the loop logged.
    loss : float, optional
        Loss on which `backward()` was called; it is recorded separately, for many steps at once.
    """

    step: int
    time_ms: int
    streams: Sequence[StreamValues]
    named: Mapping[tuple[str, str], float]
    logged: Mapping[str, float]
    of_state: bool = False
    arrays: Mapping[tuple[str, str], Any] = field(default_factory=dict)
    loss: float | None = None
