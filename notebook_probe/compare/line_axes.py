"""Horizontal axes of one run's lines: steps, seconds since its first row, or epochs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import ClassVar, Literal, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

from notebook_probe.compare.axes import epoch_reader, epochs_missing, time_reader
from notebook_probe.compare.tables import Doubles, Table
from notebook_probe.errors import UnknownNameError
from notebook_probe.record.format.source import Event, Source, Steps
from notebook_probe.record.views.thinning.minmax import spread
from notebook_probe.record.views.wall_time import WallTime

__all__ = ["LINE_AXES", "EpochAxis", "LineAxes", "LineAxis", "LineAxisName", "line_axis"]

LineAxisName: TypeAlias = Literal["step", "time", "epoch"]
"""Name of a horizontal axis of the lines."""

Knots: TypeAlias = list[tuple[float, float]]
"""Steps and positions, between which and beyond which a run is taken to be even."""

MOST_KNOTS = 500
"""A line has at most 1400 points, so more of them would not be seen."""


class LineAxis(Protocol):
    """Positions of the rows, steps and events of one run."""

    name: ClassVar[LineAxisName]
    unit: ClassVar[str]
    """Suffix of each tick."""
    word: ClassVar[str]
    """Word at the end of the axis, where ticks have no unit."""

    def read_new(self, source: Source) -> None:
        """Take in what the source has gained since the last call."""

    def of_rows(self, streams: Iterable[str], steps: Steps) -> Doubles:
        """Return the positions of rows of these streams, at the steps at which they are."""

    def at(self, steps: npt.ArrayLike) -> Doubles:
        """Return the positions of any steps, fractional ones too; NaN where one is not known."""

    def of_event(self, event: Event) -> float:
        """Return the position of an event."""

    @property
    def knots(self) -> Knots:
        """Steps and their positions; empty if only positions of rows are known."""


class StepAxis:
    """Steps."""

    name: ClassVar[LineAxisName] = "step"
    unit: ClassVar[str] = ""
    word: ClassVar[str] = ""

    def __init__(self, source: Source | None = None) -> None: ...

    def read_new(self, source: Source) -> None: ...

    def of_rows(self, streams: Iterable[str], steps: Steps) -> Doubles:
        return steps.astype(np.float64)

    def at(self, steps: npt.ArrayLike) -> Doubles:
        return np.asarray(steps, np.float64)

    def of_event(self, event: Event) -> float:
        return float(event.step)

    @property
    def knots(self) -> Knots:
        return [(0.0, 0.0), (1.0, 1.0)]


class TimeAxis:
    """Seconds since the run's first row."""

    name: ClassVar[LineAxisName] = "time"
    unit: ClassVar[str] = "\u2009s"
    word: ClassVar[str] = ""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._clock = WallTime()
        self._streams: list[str] = []

    def read_new(self, source: Source) -> None:
        self._source, self._streams = source, [*source.streams]
        self._clock.read_new(source)

    def of_rows(self, streams: Iterable[str], steps: Steps) -> Doubles:
        # The clock knows what is recorded; a formula is of several streams.
        timed = [one for one in streams if one in self._streams] or self._streams
        return self._clock.seconds(timed, steps)

    def at(self, steps: npt.ArrayLike) -> Doubles:
        return time_reader(self._source)(self._source).at(steps)

    def of_event(self, event: Event) -> float:
        return (event.time_ms - self._clock.origin_ms) / 1000.0

    @property
    def knots(self) -> Knots:
        return []


class EpochAxis:
    """Epochs, even between their starts.

    After the last start, epochs are as long as the last complete one; before the first, as long as
    the first one, or longer, so that no step is before epoch -1. While only one start is known, the
    recorded steps since then fill one epoch.

    Parameters
    ----------
    source : Source
        A run or an opened record.

    Raises
    ------
    UnknownNameError
        The run has no record of epochs.

    Examples
    --------
    >>> EpochAxis(record).at(record.series("", "loss").step)  # doctest: +SKIP
    array([0.  , 0.01, 0.02, ..., 9.99])
    """

    name: ClassVar[LineAxisName] = "epoch"
    unit: ClassVar[str] = ""
    word: ClassVar[str] = "epoch"

    def __init__(self, source: Source) -> None:
        self._read = epoch_reader(source)
        self._source = source
        self._revision = -1
        self._steps: Doubles = np.empty(0)
        self._places: Doubles = np.empty(0)

    def read_new(self, source: Source) -> None:
        """Read the starts.

        Raises
        ------
        UnknownNameError
            No epoch has started.
        """
        revision = source.revision
        if revision != self._revision or not len(self._steps):
            self._revision = revision
            self._steps, self._places = _even(self._read(source), source)

    def of_rows(self, streams: Iterable[str], steps: Steps) -> Doubles:
        return self.at(steps)

    def at(self, steps: npt.ArrayLike) -> Doubles:
        """Return the epoch of each step, with the share of it that was trained."""
        if not len(self._steps):
            self.read_new(self._source)
        wanted = np.asarray(steps, np.float64)
        x, y = self._steps, self._places
        found = np.interp(wanted, x, y)
        before, after = wanted < x[0], wanted > x[-1]
        found = np.where(before, y[0] + (wanted - x[0]) * _slope(x[:2], y[:2]), found)
        return np.where(after, y[-1] + (wanted - x[-1]) * _slope(x[-2:], y[-2:]), found)

    def of_event(self, event: Event) -> float:
        return float(self.at([event.step])[0])

    @property
    def knots(self) -> Knots:
        slopes = np.diff(self._places) / np.diff(self._steps)
        turns = ~np.isclose(slopes[1:], slopes[:-1], rtol=1e-9, atol=0)
        rows = np.flatnonzero(np.concatenate([[True], turns, [True]]))
        some = spread(rows, MOST_KNOTS)
        return [*zip(self._steps[some].tolist(), self._places[some].tolist(), strict=True)]


LINE_AXES: Mapping[LineAxisName, Callable[[Source], LineAxis]] = {
    one.name: one for one in (StepAxis, TimeAxis, EpochAxis)
}
"""Axes by name; making one is cheap, and raises `UnknownNameError` if a run does not have it."""


def line_axis(source: Source, name: LineAxisName) -> LineAxis:
    """Return an axis of a run so far.

    Raises
    ------
    UnknownNameError
        The run has no record of this axis.
    """
    axis = LINE_AXES[name](source)
    axis.read_new(source)
    return axis


class LineAxes:
    """Axes of a run that may grow, each made once.

    Attributes
    ----------
    refused : dict of str to str
        Reason for each axis that the run does not have.
    """

    def __init__(self) -> None:
        self._source: Source | None = None
        self._made: dict[LineAxisName, LineAxis] = {}
        self.refused: dict[str, str] = {}

    def drawn(self, source: Source, name: LineAxisName) -> LineAxis:
        """Return the axis of this name, or steps if the run does not have it."""
        if source is not self._source:
            self._source, self._made = source, {}
        self.refused = {}
        for one in LINE_AXES:
            self._make(source, one)
        axis = self._made.get(name)
        if axis is not None:
            try:
                axis.read_new(source)
                return axis
            except UnknownNameError as error:
                self.refused[name] = str(error)
        return self._made["step"]

    def _make(self, source: Source, name: LineAxisName) -> None:
        try:
            self._made[name] = self._made.get(name) or LINE_AXES[name](source)
        except UnknownNameError as error:
            self.refused[name] = str(error)


def _even(starts: Table, source: Source) -> tuple[Doubles, Doubles]:
    """Return starts and their epochs, at least two, from step 0 on."""
    steps, epochs = starts.steps.astype(np.float64), starts.places
    if not len(steps):
        raise epochs_missing(source)
    if len(steps) == 1:
        length = max(1.0, _last_step(source) + 1.0 - steps[0])
        steps, epochs = np.append(steps, steps + length), np.append(epochs, epochs + 1)
    first, number = steps[0], epochs[0]
    if first > 0:
        pace = _slope(steps[:2], epochs[:2])
        # No step is before epoch -1, as a logarithmic axis begins there.
        pace = min(pace, (number + 1) / (first + 1)) if number > -1 else pace
        steps, epochs = np.append(0.0, steps), np.append(number - first * pace, epochs)
    return steps, epochs


def _slope(steps: Doubles, epochs: Doubles) -> float:
    return float((epochs[1] - epochs[0]) / (steps[1] - steps[0]))


def _last_step(source: Source) -> int:
    """Return the last recorded step; -1 if there is none."""
    filled = [one for one in source.streams.values() if one.n_rows]
    return max((int(one.steps(one.n_rows - 1, one.n_rows)[0]) for one in filled), default=-1)
