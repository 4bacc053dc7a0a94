"""The line view: every selected series, thinned to the pixels with its extremes kept."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TypeAlias

import numpy as np

from notebook_probe.alerts.alert import ALERT
from notebook_probe.compare.line_axes import LineAxes, LineAxis, StepAxis
from notebook_probe.explorer.draw.element_series import element_streams
from notebook_probe.explorer.draw.lines.average_lines import AverageLines, Smoothing, Streams
from notebook_probe.explorer.draw.lines.axis_events import thinned_events
from notebook_probe.explorer.draw.lines.long_lines import LinePoints, line_of
from notebook_probe.explorer.draw.lines.pixel_points import NOTHING, PixelAxis, PixelPoints, joined
from notebook_probe.explorer.draw.lines.read_together import ReadTogether
from notebook_probe.explorer.draw.view import panel_plot
from notebook_probe.explorer.messages.frames import Frame, LineSeries, LinesFrame
from notebook_probe.explorer.messages.selection import PanelSelection, Series
from notebook_probe.explorer.messages.value_scale import bounded
from notebook_probe.explorer.messages.wire import VERSION
from notebook_probe.json_numbers import json_number
from notebook_probe.record.format.notes import OUTPUT
from notebook_probe.record.format.ranges import charts_of
from notebook_probe.record.format.source import Source, StreamView
from notebook_probe.record.formulas import FormulaStreams
from notebook_probe.record.views.looks import without_gone
from notebook_probe.record.views.thinning.average import capped
from notebook_probe.record.views.thinning.averages import holding

__all__ = ["Lines", "points_per_series"]

MOST_POINTS = 1400
LEAST_POINTS = 50
NOT_DRAWN = frozenset({ALERT, OUTPUT})
"""Kinds of events with messages that are separate from the lines."""

_Key: TypeAlias = tuple[str, object, Series]
"""A stream, its version, a series."""


def points_per_series(n_series: int, width: int) -> int:
    """PixelPoints of each of ``n_series`` lines: two per pixel, fewer where the frame would swell.

    Examples
    --------
    >>> [points_per_series(n, 700) for n in (1, 10, 25, 1000)]
    [1400, 1400, 700, 50]
    """
    share = max(LEAST_POINTS, MOST_POINTS // max(1, n_series // 10))
    return min(share, max(LEAST_POINTS, 2 * width))


@panel_plot("lines")
class Lines:
    """Lines; keeps the series on the screen and reads only new rows."""

    def __init__(self) -> None:
        self._lines: dict[_Key, LinePoints] = {}
        self._averages = AverageLines()
        self._formulas = FormulaStreams()
        self._axes = LineAxes()
        self._axis: LineAxis = StepAxis()

    def frame(
        self, source: Source, selection: PanelSelection, width: int, pixel_ratio: float = 1.0
    ) -> Frame:
        streams = {
            **source.streams,
            **element_streams(source, selection.series),
            **self._formulas.of(source.streams, selection.series),
        }
        together = {name: _together(one, selection.series) for name, one in streams.items()}
        self._axis = self._axes.drawn(source, selection.x_axis)
        self._read(streams, selection)
        n_points = points_per_series(len(selection.series), width)
        lines = {
            series: self._points(together, series, selection, n_points)
            for series in selection.series
        }
        linear = bounded(source)
        charts = _charts_of(streams, selection)
        log_of = _log_of(lines, charts, selection, linear)
        looks = {
            series: Smoothing(
                self._weight(series, selection.chart(charts[series]).smooth),
                log_of[series] and series[1] not in linear,
            )
            for series in selection.series
        }
        self._averages.read_new(streams, looks)
        # Sent as float32, which cannot tell steps above 2**24 apart: hence an origin.
        x0 = float(min((points.x[0] for points in lines.values() if points.n_rows), default=0.0))
        heads: list[LineSeries] = []
        parts: list[np.ndarray[tuple[int], np.dtype[np.floating]]] = []
        for series, points in lines.items():
            average = self._average(together, series, points, selection, n_points)
            offset, colour = sum(map(len, parts)), selection.colour(series)
            heads.append(
                _head(
                    series=series,
                    chart=charts[series],
                    log_y=log_of[series],
                    colour=colour,
                    points=points,
                    average=average,
                    weight=looks[series].weight,
                    offset=offset,
                    x0=x0,
                )
            )
            if series[1] in self._formulas.problems:
                heads[-1]["problem"] = self._formulas.problems[series[1]]
            parts += [points.x - x0, points.y, average.x - x0, average.y]
        message: LinesFrame = {
            "v": VERSION,
            "type": "lines",
            "seq": 0,
            "layout": [[(1, 4 * len(part)) for part in parts]],
            "x0": x0,
            "x_axis": self._axis.name,
            "knots": self._axis.knots,
            "refused": self._axes.refused,
            "smooth": selection.smooth,
            "log_y": any(log_of.values()) if selection.log_y is None else selection.log_y,
            "averaged": self._averages.share,
            "series": heads,
            "events": self._events(source, selection, x0),
        }
        numbers = np.concatenate([np.empty(0), *parts]).astype("<f4")
        return message, [memoryview(numbers.tobytes())]

    def _read(self, streams: Streams, selection: PanelSelection) -> None:
        """Bring the selected series up to date and forget all others."""
        lines: dict[_Key, LinePoints] = {}
        for name, stream in streams.items():
            modules, quantities = set(stream.modules), {one.name for one in stream.variables}
            # A key contains the version of a stream: after a rewind its rows are read again.
            keys = [
                (name, stream.version, series)
                for series in selection.series
                if series[0] in modules and series[1] in quantities
            ]
            # Lines that are new need all rows, others the last few: no column is read for nothing.
            for some in (
                [k for k in keys if k in self._lines],
                [k for k in keys if k not in self._lines],
            ):
                together = _together(stream, [series for _, _, series in some])
                for key in some:
                    line = self._lines.get(key) or line_of(stream, *key[2])
                    line.read_new(together)
                    lines[key] = line
        self._lines = lines

    def _weight(self, series: Series, wanted: float) -> float:
        n_rows = sum(line.n_rows for (_, _, of), line in self._lines.items() if of == series)
        return capped(wanted, n_rows)

    def _points(
        self, streams: Streams, series: Series, selection: PanelSelection, n_points: int
    ) -> PixelPoints:
        return joined(
            [
                line.points(
                    streams[stream],
                    selection.window,
                    self._pixel_axis([stream], selection),
                    n_points,
                )
                for (stream, _, of), line in self._lines.items()
                if of == series
            ]
        )

    def _average(
        self,
        streams: Streams,
        series: Series,
        drawn: PixelPoints,
        selection: PanelSelection,
        n_points: int,
    ) -> PixelPoints:
        """Return the average of the same rows as the line."""
        if not drawn.n_rows:
            return NOTHING
        axis = self._pixel_axis(holding(streams, *series), selection)
        steps = drawn.first_step, drawn.last_step
        return self._averages.points(streams, series, steps, selection.window, axis, n_points)

    def _pixel_axis(self, streams: Iterable[str], selection: PanelSelection) -> PixelAxis:
        return PixelAxis(lambda steps: self._axis.of_rows(streams, steps), selection.log_x)

    def _events(
        self, source: Source, selection: PanelSelection, x0: float
    ) -> list[tuple[float, str, str]]:
        """Return the events in the window that are drawn."""
        low, high = selection.window or (-np.inf, np.inf)
        others = (event for event in without_gone(source.events) if event.kind not in NOT_DRAWN)
        seen = thinned_events([event for event in others if low <= event.step <= high])
        return [(self._axis.of_event(one) - x0, one.kind, one.text) for one in seen]


def _together(stream: StreamView, series: Iterable[Series]) -> StreamView:
    """Return the stream, which reads all of these series at once."""
    modules, quantities = set(stream.modules), {one.name for one in stream.variables}
    wanted: dict[str, list[str]] = {}
    for module, quantity in series:
        if module in modules and quantity in quantities:
            wanted.setdefault(quantity, []).append(module)
    return ReadTogether(stream, wanted)


def _spans_sizes(lines: Mapping[Series, PixelPoints], linear: frozenset[str]) -> bool:
    """Return whether a log scale suits the lines: not for shares, and not if signs change."""
    signed = any(bool((points.y < 0).any()) for points in lines.values())
    return not signed and any(quantity not in linear for _, quantity in lines)


def _charts_of(streams: Streams, selection: PanelSelection) -> dict[Series, int]:
    """Return the chart of each series: as arranged, else automatic."""
    arranged = [one.series for one in selection.charts]
    return charts_of(streams.values(), selection.series, arranged)


def _log_of(
    lines: Mapping[Series, PixelPoints],
    charts: Mapping[Series, int],
    selection: PanelSelection,
    linear: frozenset[str],
) -> dict[Series, bool]:
    """Return whether the axis of each series is logarithmic: as chosen, else automatic."""
    fits = {}
    for chart in {*charts.values()}:
        chosen = selection.chart(chart).log_y
        together = {one: lines[one] for one in lines if charts[one] == chart}
        fits[chart] = _spans_sizes(together, linear) if chosen is None else chosen
    return {series: fits[charts[series]] for series in lines}


def _head(
    series: Series,
    chart: int,
    log_y: bool,
    colour: int,
    points: PixelPoints,
    average: PixelPoints,
    weight: float,
    offset: int,
    x0: float,
) -> LineSeries:
    return {
        "module": series[0],
        "quantity": series[1],
        "chart": chart,
        "log_y": log_y,
        "colour": colour,
        "n": len(points.x),
        "n_average": len(average.x),
        "offset": offset,
        "n_rows": points.n_rows,
        "first_step": points.first_step,
        "last_step": points.last_step,
        "last_value": json_number(points.last_value),
        "n_nonfinite": points.n_nonfinite,
        "weight": weight,
        "marks": (points.marks - x0).tolist(),
    }
