"""Streams of which each cell is in one only: what was written over is left out where it lay.

For readers who iterate over the streams, such as a panel; `joined` overlays streams anyway.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from notebook_probe.record.format.missing import NOT_MEASURED, measured
from notebook_probe.record.format.source import Floats, LevelView, Steps, StreamView
from notebook_probe.record.views.branches.branches import read_name
from notebook_probe.record.views.wrapped import WrappedStream

__all__ = ["overlaid"]


def overlaid(streams: Iterable[StreamView]) -> list[StreamView]:
    """Return the streams of one history, without cells measured by one of greater rank."""
    streams = list(streams)
    ranks = [read_name(stream.name).rank for stream in streams]
    # One rank only: nothing can hide anything, and nothing is wrapped.
    if len(set(ranks)) < 2:
        return streams
    return [
        _under(stream, [above for above, other in zip(streams, ranks, strict=True) if other > rank])
        for stream, rank in zip(streams, ranks, strict=True)
    ]


def _under(stream: StreamView, others: Sequence[StreamView]) -> StreamView:
    above = [other for other in others if _may_hide(other, stream)]
    return _Overlaid(stream, above) if above else stream


def _may_hide(above: StreamView, below: StreamView) -> bool:
    quantities = {variable.name for variable in below.variables}
    named = any(variable.name in quantities for variable in above.variables)
    return named and not set(above.modules).isdisjoint(below.modules)


class _Overlaid(WrappedStream):
    """A stream without the cells that are measured in a stream above it."""

    def __init__(self, stream: StreamView, above: Sequence[StreamView]) -> None:
        super().__init__(stream)
        self._above = above

    @property
    def levels(self) -> Mapping[int, LevelView]:
        """Empty: the blocks cover all rows, including those that were overwritten."""
        return {}

    @property
    def version(self) -> tuple[object, ...]:
        above = tuple((one.name, one.n_rows, one.version) for one in self._above)
        return (*self._stream.version, *above)

    def values(
        self,
        quantity: str,
        start: int = 0,
        stop: int | None = None,
        modules: Sequence[str] | None = None,
    ) -> Floats:
        names = self.modules if modules is None else tuple(modules)
        values = self._stream.values(quantity, start, stop, names)
        steps = self.steps(start, stop)[: len(values)]
        for above in self._above:
            values = _without(values, steps, names, above, quantity)
        return values


def _without(
    values: Floats, steps: Steps, modules: Sequence[str], above: StreamView, quantity: str
) -> Floats:
    """Values (row, module) without the cells that ``above`` has measured."""
    known = set(above.modules)
    places = [place for place, name in enumerate(modules) if name in known]
    if not (len(steps) and places and any(one.name == quantity for one in above.variables)):
        return values
    its = above.steps()
    # Only the part of the upper stream that overlaps is read.
    first, stop = np.searchsorted(its, [steps[0], steps[-1] + 1]).tolist()
    # Steps of a stream are strictly increasing, hence unique.
    _, rows, its_rows = np.intersect1d(
        steps, its[first:stop], assume_unique=True, return_indices=True
    )
    if not len(rows):
        return values
    theirs = above.values(quantity, first, stop, [modules[place] for place in places])
    hidden = np.zeros(values.shape, bool)
    hidden[rows[:, None], places] = measured(theirs[its_rows])
    return np.where(hidden, NOT_MEASURED, values)
