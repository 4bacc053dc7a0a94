"""The frames of a source that are handed on, made by the painters that a live panel has."""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace

import numpy as np

from notebook_probe.compare.line_axes import LineAxes
from notebook_probe.errors import RecordFormatError
from notebook_probe.explorer.draw.heat import Heat
from notebook_probe.explorer.draw.lines.lines import Lines
from notebook_probe.explorer.draw.vectors import Vectors
from notebook_probe.explorer.handed_on.coding import EXACT, FIVE_DIGITS, RAW, coded
from notebook_probe.explorer.messages.frames import Frame
from notebook_probe.explorer.messages.selection import PanelSelection, Series
from notebook_probe.explorer.messages.wire import VERSION
from notebook_probe.explorer.parts.graph import shown_graph
from notebook_probe.explorer.parts.looks import LookRow, LooksPart
from notebook_probe.graph.recorded import recorded_graph
from notebook_probe.record.format.source import StreamView
from notebook_probe.record.views.xarray_views import RunSource

__all__ = ["HEAT_BYTES", "N_COLUMNS", "SavedFrames", "alone", "whole", "whole_lines"]

N_COLUMNS = 600
HEAT_BYTES = FIVE_DIGITS, RAW, FIVE_DIGITS, RAW
"""Bytes that are kept of each float32 of a heat map's buffers."""


class SavedFrames:
    """Frames for a saved panel; keeps the reductions and reads only new rows."""

    def __init__(self, source: RunSource) -> None:
        self._source = source
        self._heats: dict[tuple[str, int], Heat] = {}
        self._vectors: dict[str, Vectors] = {}
        self._lines = Lines()
        self._looks = LooksPart(source, None)

    def heat(
        self, quantity: str, selection: PanelSelection, n_columns: int = N_COLUMNS
    ) -> bytes | None:
        """Return the heat map of a quantity over all steps; None if there is no value."""
        painter = self._heats.setdefault((quantity, n_columns), Heat())
        frame = painter.frame(self._source, whole(selection, quantity), n_columns)
        if frame is None:
            return None
        return coded(*frame, HEAT_BYTES)

    def vectors(self, quantity: str, selection: PanelSelection) -> bytes | None:
        """Return the vectors of a quantity over all steps; None if there is no value."""
        painter = self._vectors.setdefault(quantity, Vectors())
        frame = painter.frame(self._source, whole(selection, quantity), N_COLUMNS)
        return None if frame is None else coded(*frame, [RAW, EXACT, RAW])

    def lines(self, series: list[Series], selection: PanelSelection) -> Frame:
        """Return the recorded values of some series, and their averages, thinned for the panel."""
        return whole_lines(self._lines, self._source, series, whole(selection, ""))

    def readable_lines(
        self, series: list[Series], selection: PanelSelection
    ) -> tuple[Frame, list[RecordFormatError]]:
        """Return `lines` of the series that can be read, and an error of each other one."""
        try:
            return self.lines(series, selection), []
        except RecordFormatError:  # of one of them
            known, errors = [], []
        for one in series:
            try:
                self.lines([one], selection)
                known.append(one)
            except RecordFormatError as error:
                errors.append(error)
        return self.lines(known, selection), errors

    def kept_looks(self) -> list[LookRow]:
        """Every look that is kept, by step."""
        return self._looks.rows()

    def look(self, module: str, step: int) -> bytes | None:
        """Return the first sample of a look; None where it cannot be read."""
        self._looks.hear(
            {
                "v": VERSION,
                "type": "show_look",
                "view": "",
                "module": module,
                "step": step,
                "other": -1,
                "sample": 0,
            }
        )
        [(message, buffers)] = self._looks.frames()
        return None if message["error"] else coded(message, buffers, [FIVE_DIGITS])

    def graph(self) -> bytes | None:
        """Return the graph of the network; None where none is recorded, or it is damaged."""
        try:
            graph = recorded_graph(self._source.events)
        except RecordFormatError:
            return None
        return None if graph is None else coded(shown_graph(graph, revision=1))

    def clock(self) -> dict[str, list[float]]:
        """Seconds since the run began at some steps, of the stream with most rows."""
        streams = [one for one in self._source.streams.values() if one.n_rows]
        for stream in sorted(streams, key=lambda one: -one.n_rows):
            with suppress(RecordFormatError):  # damaged: another stream knows most of the times
                return _clock_of(stream, min(map(_first_ms, streams)))
        return {"steps": [], "seconds": []}

    def epochs(self) -> list[tuple[float, float]]:
        """Return steps and their epochs, as in the lines; empty if there are none, or damaged."""
        with suppress(RecordFormatError):
            axis = LineAxes().drawn(self._source, "epoch")
            return axis.knots if axis.name == "epoch" else []
        return []


def _clock_of(stream: StreamView, origin_ms: float) -> dict[str, list[float]]:
    n_rows = stream.n_rows
    rows = np.unique(np.linspace(0, n_rows - 1, N_COLUMNS).astype(np.int64))
    seconds = (stream.times(0, n_rows)[rows] - origin_ms) / 1000.0
    return {"steps": stream.steps(0, n_rows)[rows].tolist(), "seconds": seconds.tolist()}


def _first_ms(stream: StreamView) -> float:
    """Return the time of the first row; infinity if it is damaged."""
    try:
        return float(stream.times(0, 1)[0])
    except RecordFormatError:
        return math.inf


def alone(selection: PanelSelection) -> PanelSelection:
    """All rows of this run, and no other run: what is left away is there when it is looked at."""
    return replace(
        selection, rows=(), folds=(), others=(), ratio_to="", aligned="step", grouped=False
    )


def whole_lines(
    painter: Lines, source: RunSource, series: Sequence[Series], selection: PanelSelection
) -> Frame:
    """Return the frame of some series, with averages over all their steps."""
    wanted = selection.looking_at("series", [*series]).looking_at("x_axis", "step")
    message, buffers = painter.frame(source, wanted, N_COLUMNS)
    while message["averaged"] < 1:  # of a long run, a part at a time
        message, buffers = painter.frame(source, wanted, N_COLUMNS)
    return message, buffers


def whole(selection: PanelSelection, home: str) -> PanelSelection:
    """Return the selection of all steps, with another quantity in the heat map."""
    return replace(alone(selection), home=home, window=None)
