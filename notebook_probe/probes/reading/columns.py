"""The values of a set of due probes, stream by stream."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from notebook_probe.axis import AxisLike
from notebook_probe.probes.reading.results import Count, Result
from notebook_probe.probes.step.frame import StepFrame
from notebook_probe.probes.step.measured import POOLED, Columns, StreamValues

__all__ = ["StreamResults", "by_stream"]


class StreamResults:
    """Whatever one stream is given of a step.

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
        self._keeps_calls = any(result.probe.per_call for result in results)
        self._results = [*enumerate(results)]
        self._counts = [*enumerate(counts, start=len(results))]

    def values(self, frame: StepFrame, is_final: bool) -> StreamValues:
        """Make the values; the probes count those that are final."""
        places: list[tuple[int, int]] = []
        numbers = []
        for column, result in self._results:
            probe = result.probe
            if probe.disabled:
                continue
            values = result.values(frame)
            if values and is_final:
                probe.succeeded(frame.step)
            for call, value in values:
                places.append((column, call))
                numbers.append(value)
        for column, count in self._counts:
            places.append((column, POOLED))
            numbers.append(count.of(frame))
        is_whole = not self._keeps_calls and len(numbers) == len(self._columns.cells)
        return StreamValues(self._columns, places, numbers, is_whole)


def by_stream(results: Iterable[Result], counts: Iterable[Count]) -> tuple[StreamResults, ...]:
    """Results and counts, for each stream and axis those that go there."""
    streams: dict[tuple[str, AxisLike | None], tuple[list[Result], list[Count]]] = {}
    for result in results:
        key = result.probe.stream, result.probe.quantity.axis
        streams.setdefault(key, ([], []))[0].append(result)
    for count in counts:
        streams.setdefault((count.stream, None), ([], []))[1].append(count)
    return tuple(StreamResults(*key, *its) for key, its in streams.items())
