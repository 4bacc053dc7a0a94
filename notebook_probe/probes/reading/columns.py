"""The values of a set of due probes, stream by stream."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, TypeAlias

from notebook_probe.axis import AxisLike
from notebook_probe.probes.reading.cells import NOTHING_COMMON
from notebook_probe.probes.reading.results import CellSource, Count, Result, SummaryResult
from notebook_probe.probes.step.frame import StepFrame
from notebook_probe.probes.step.measured import POOLED, Columns, StreamValues

__all__ = ["StreamResults", "by_stream"]

_Sources: TypeAlias = "int | tuple[tuple[int, ...], ...]"
"""Index of the one state of a frame that a value needs, or for each source those of its states."""


class StreamResults:
    """Results and counts of one stream in a step.

    Parameters
    ----------
    stream : str
    axis : Axis, PER_CHANNEL, IMAGE or None
    results : sequence of Result
    counts : sequence of Count
    """

    def __init__(
        self,
        stream: str,
        axis: AxisLike | None,
        results: Sequence[Result],
        counts: Sequence[Count],
    ) -> None:
        cells = [(result.probe.variable, result.probe.place) for result in results]
        cells += [(count.variable, count.place) for count in counts]
        self._columns = Columns(stream, axis, tuple(cells))
        self._places = [(column, POOLED) for column in range(len(cells))]
        self._keeps_calls = any(result.probe.per_call for result in results)
        self._results = [(i, one, _places_of_states(one)) for i, one in enumerate(results)]
        self._counts = [*enumerate(counts, start=len(results))]

    def values(self, frame: StepFrame, is_final: bool) -> StreamValues:
        """Make the values; the probes count those that are final."""
        places: list[tuple[int, int]] = []
        numbers: list[Any] = []
        states, step, every_place = frame.states, frame.step, self._places
        for column, result, sources in self._results:
            probe = result.probe
            if probe.disabled:
                continue
            if sources is None:
                values = result.values(frame)
                if values and is_final:
                    probe.succeeded(step)
                for call, value in values:
                    places.append((column, call))
                    numbers.append(value)
                continue
            # Most values: a function of pooled states, as `SummaryResult.values` does.
            quantity = probe.quantity
            try:
                if isinstance(sources, int):
                    state = states[sources]
                    if state is None or state is NOTHING_COMMON:
                        continue
                    value = quantity.function(state)
                else:
                    given = _pooled(states, sources)
                    if given is None:
                        continue
                    value = quantity.function(*given)
                numbers.append(value if type(value) is float else quantity.value_of(value))
            except Exception as error:  # a user's quantity must never reach training
                frame.blame(probe, error)
                continue
            places.append(every_place[column])
            if is_final:  # as probe.succeeded
                probe.n_values += 1
                probe.last_step, probe.values_failed = step, 0
                if step != probe.error_step:
                    probe.errors_in_a_row = 0
        for column, count in self._counts:
            number = count.of(frame)
            if number is not None:
                places.append(every_place[column])
                numbers.append(number)
        is_whole = not self._keeps_calls and len(numbers) == len(self._columns.cells)
        return StreamValues(self._columns, places, numbers, is_whole)


def by_stream(results: Iterable[Result], counts: Iterable[Count]) -> tuple[StreamResults, ...]:
    """Group results and counts by stream and axis."""
    streams: dict[tuple[str, AxisLike | None], tuple[list[Result], list[Count]]] = {}
    for result in results:
        key = result.probe.stream, result.probe.quantity.axis
        streams.setdefault(key, ([], []))[0].append(result)
    for count in counts:
        streams.setdefault((count.stream, None), ([], []))[1].append(count)
    return tuple(StreamResults(*key, *its) for key, its in streams.items())


def _places_of_states(result: Result) -> _Sources | None:
    """Return where the states are that a value is a function of; None for any other value."""
    if not isinstance(result, SummaryResult) or result.probe.per_call:
        return None
    indices = [source.indices for source in result.sources if isinstance(source, CellSource)]
    if len(indices) < len(result.sources):
        return None
    is_one = len(indices) == 1 and len(indices[0]) == 1
    return indices[0][0] if is_one else tuple(indices)


def _pooled(states: Sequence[Any], sources: Iterable[tuple[int, ...]]) -> list[Any] | None:
    """Return the state of each source, as `CellSource.state` does; None where one is missing."""
    found = []
    for indices in sources:
        pooled = None
        for index in indices:
            state = states[index]
            if state is not None:
                pooled = state if pooled is None else pooled.merge(state)
        if pooled is None or pooled is NOTHING_COMMON:
            return None
        found.append(pooled)
    return found
