"""Series of other runs as they are overlaid: smoothed, over the steps of this run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypedDict

import numpy as np

from notebook_probe.compare import Alignment
from notebook_probe.compare.band import band_of
from notebook_probe.compare.line_axes import LineAxes
from notebook_probe.compare.tables import Doubles
from notebook_probe.explorer.draw.lines.lines import Lines
from notebook_probe.explorer.messages.frames import Frame
from notebook_probe.explorer.messages.selection import PanelSelection, Series
from notebook_probe.explorer.messages.wire import VERSION
from notebook_probe.record.format.source import Source
from notebook_probe.record.views.xarray_views import RunSource

__all__ = [
    "BesideFrame",
    "BesideLine",
    "Drawn",
    "DrawnLines",
    "beside_frame",
    "grouped",
    "window_there",
]

FAR = 2.0**53
"""Beyond every step."""
WIDTH = 350
"""Pixels, of which each has two points: what is smoothed needs no more."""


@dataclass(frozen=True, slots=True)
class Drawn:
    """One series over the steps of this run."""

    steps: Doubles
    """Steps of this run; fractional where the other run's step is between two of them."""
    values: Doubles
    low: Doubles | None = None
    """Smallest value among the runs of a group; `high` is the largest."""
    high: Doubles | None = None
    n_runs: int = 1


class BesideLine(TypedDict):
    """Place of another run's series in the buffer: n x, n y; for a group n low, n high."""

    run: str
    """Location; empty for a group."""
    module: str
    quantity: str
    n: int
    """0 where it is not recorded there."""
    offset: int
    """Offset in the buffer, in float32 elements."""
    n_runs: int
    banded: bool


class BesideFrame(TypedDict):
    """The lines of other runs. buffers[0]: float32, x relative to ``x0``."""

    v: int
    type: str
    aligned: str
    x0: float
    series: list[BesideLine]


class DrawnLines:
    """Series of one other run; reads only new rows."""

    def __init__(self, record: Source) -> None:
        self._record = record
        self._painter = Lines()

    def read(self, selection: PanelSelection, alignment: Alignment) -> dict[Series, Drawn]:
        """Return the selected series that are recorded there."""
        window = window_there(selection.window, alignment)
        # The other run's own x axis is not used: its steps are mapped to steps of this run.
        asked = replace(selection, window=window, x_axis="step", log_x=False)
        message, buffer = self._drawn(asked)
        numbers = np.frombuffer(buffer, "<f4").astype(np.float64)
        found = {}
        for head in message["series"]:
            start, n = head["offset"], head["n"]
            if head["n_average"]:
                start, n = start + 2 * n, head["n_average"]
            x, y = numbers[start : start + n] + message["x0"], numbers[start + n : start + 2 * n]
            steps = alignment.steps_here(x)
            rows = alignment.drawn(x, steps)
            if len(rows):
                found[head["module"], head["quantity"]] = Drawn(steps[rows], y[rows])
        return found

    def _drawn(self, selection: PanelSelection) -> tuple[Mapping[str, Any], memoryview]:
        """Return the frame, with averages over every value."""
        # Averages are computed in parts, to keep a live panel responsive; this thread can wait.
        while True:
            message, [buffer] = self._painter.frame(self._record, selection, WIDTH)
            if message["averaged"] >= 1.0:
                return message, buffer


def grouped(runs: Sequence[Mapping[Series, Drawn]], *, log: bool) -> dict[Series, Drawn]:
    """Return each series as the mean of its runs, at even positions, with their extremes."""
    found = {}
    for series in dict.fromkeys(one for run in runs for one in run):
        held = [run[series] for run in runs if series in run]
        ends = min(one.steps[0] for one in held), max(one.steps[-1] for one in held)
        # Runs with different schedules have no common steps to average at.
        places = np.linspace(*ends, WIDTH)
        band = band_of(places, [_at(places, one) for one in held], log=log)
        known = band.n > 0
        if known.any():
            found[series] = Drawn(
                places[known], band.mean[known], band.low[known], band.high[known], len(held)
            )
    return found


def beside_frame(
    source: RunSource, selection: PanelSelection, lines: Mapping[str, Mapping[Series, Drawn]]
) -> Frame:
    """Return the message and its buffer; ``lines`` by the location of their run, "" for a group."""
    axis = LineAxes().drawn(source, selection.x_axis)
    firsts = [axis.at(one.steps[:1]) for found in lines.values() for one in found.values()]
    known = [float(x[0]) for x in firsts if np.isfinite(x[0])]
    x0 = min(known, default=0.0)
    series: list[BesideLine] = []
    parts: list[Doubles] = []
    offset = 0
    for run, found in lines.items():
        for module, quantity in selection.series:
            one = found.get((module, quantity))
            line: BesideLine = {
                "run": run,
                "module": module,
                "quantity": quantity,
                "n": 0 if one is None else len(one.steps),
                "offset": offset,
                "n_runs": 0 if one is None else one.n_runs,
                "banded": one is not None and one.low is not None,
            }
            series.append(line)
            if one is None:
                continue
            arrays = [
                axis.at(one.steps) - x0,
                one.values,
                *(part for part in (one.low, one.high) if part is not None),
            ]
            parts += arrays
            offset += sum(map(len, arrays))
    message: BesideFrame = {
        "v": VERSION,
        "type": "beside",
        "aligned": selection.aligned,
        "x0": x0,
        "series": series,
    }
    numbers = np.concatenate([np.empty(0), *parts]).astype("<f4")
    return message, [memoryview(numbers.tobytes())]


def window_there(
    window: tuple[float, float] | None, alignment: Alignment
) -> tuple[float, float] | None:
    """Return the window in steps of the other run; open at an end that it has not reached."""
    if window is None:
        return None
    low, high = alignment.steps_there(window).tolist()
    # NaN, at an end that the other run has not reached, differs from itself.
    return low if low == low else 0.0, high if high == high else FAR


def _at(places: Doubles, one: Drawn) -> Doubles:
    """Values between the points of a line; NaN before and after it."""
    known = np.isfinite(one.values)
    if not known.any():
        return np.full(len(places), np.nan)
    return np.interp(places, one.steps[known], one.values[known], left=np.nan, right=np.nan)
