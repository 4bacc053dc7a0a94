"""Series of several runs on one axis as a static picture."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from notebook_probe.checks import chosen_name, step_window
from notebook_probe.compare.alignment import Alignment
from notebook_probe.compare.group import group
from notebook_probe.compare.line_axes import LINE_AXES, LineAxis, LineAxisName, line_axis
from notebook_probe.compare.members import names_apart
from notebook_probe.compare.ratio_grid import runs_of
from notebook_probe.compare.series import read_smoothed
from notebook_probe.errors import ProbeError
from notebook_probe.figures.labels import Label, draw_labels, labels_inches
from notebook_probe.figures.lines import (
    PLAIN_LOOK,
    LineOptions,
    Series,
    colours_of,
    mark_lost,
    recorded,
    scale_values,
    series_label,
)
from notebook_probe.figures.style import (
    HEADING,
    RUN_DASHES,
    SOFT,
    Picture,
    colour,
    dash,
    drawing,
    lighter,
    number,
    plain_axes,
    shortened,
    ticks,
)
from notebook_probe.printable import counted
from notebook_probe.record.format.source import Floats, Steps
from notebook_probe.record.views.thinning.minmax import minmax_rows
from notebook_probe.record.views.xarray_views import RunSource

__all__ = ["compared"]

N_POINTS = 1400
LONGEST_NAME = 22
NOTE_INCHES = 0.2
UNITS = {"time": "seconds since the first row", "samples": "samples", "epochs": "epochs"}
LINE_UNITS: Mapping[LineAxisName, str] = {"step": "step", "time": UNITS["time"], "epoch": "epoch"}

Float64s = npt.NDArray[np.float64]


def compared(
    source: RunSource,
    others: RunSource | Sequence[RunSource],
    series: Sequence[Series],
    *,
    by: str = "step",
    x_axis: LineAxisName | None = None,
    window: tuple[float, float] | None = None,
    grouped: bool = False,
    look: LineOptions = PLAIN_LOOK,  # frozen
    colors: Mapping[Series, int] | None = None,
) -> Figure:
    """Lines of a run, solid, and of others in the same colors, lighter and dashed run by run.

    Only the smoothed lines of other runs are drawn, labeled with their name and last value. Missing
    parts are listed below.

    Parameters
    ----------
    source : Source
        A run or an opened record.
    others : Source or sequence of Source
    series : sequence of (module, quantity)
    by : str
        Axis on which the runs are aligned: ``"step"``, ``"time"``, ``"samples"``, ``"epochs"``, or
        a logged scalar such as ``"loss"``, which places another run's step where its own value was
        as small.
    x_axis : "step", "time" or "epoch", optional
        Horizontal axis of this run, as in a panel; other runs are drawn at the aligned steps of
        this run, up to its end. By default it is the axis ``by``.
    window : (float, float), optional
        First and last step of this run that are shown.
    grouped : bool
        Draw of the others their mean, from the smallest to the largest, and how many they are.
    look : LineOptions, optional
        Scales and smoothing; its ``x_axis`` counts not.
    colors : mapping, optional
        Color index of some series; by default their order.

    Raises
    ------
    UnknownNameError
        A series of which nothing is recorded in this run, or what the axis needs is not.
    ValueError
        Another horizontal axis, or a window whose first step is above the last.

    Examples
    --------
    >>> compared(run, [nbp.open_run(path)], [("", "loss")], by="time")  # doctest: +SKIP
    """
    step_window(window)
    if x_axis is not None:
        chosen_name("x_axis", x_axis, LINE_AXES)
    series = recorded(source, series)
    for module, quantity in series:
        source.series(module, quantity)  # raises for a wrong name, with the close ones
    axis = _Axis(source, by, None if x_axis is None else line_axis(source, x_axis), window)
    chosen = colours_of(source, series, colors)
    curves: list[_Curve] = []
    notes: dict[str, None] = {}
    for place, one in enumerate(series):
        index = chosen.get(one, place)
        curves.append(_own(axis, one, look, index))
        beside = _as_group if grouped else _each
        found, why = beside(axis, runs_of(others), one, look, index)
        curves += found
        notes |= dict.fromkeys(why)
    with drawing:
        return _picture(curves, list(notes), axis.title, look)


@dataclass(frozen=True, slots=True)
class _Curve:
    """One line with its average, band and lost points."""

    x: Float64s
    y: Float64s
    label: str
    shade: tuple[float, float, float]
    dash: Any
    under: tuple[Float64s, Float64s] | None = None
    """The values that were smoothed."""
    band: tuple[Float64s, Float64s] | None = None
    """Values of the smallest and the largest run."""
    lost: Float64s = field(default_factory=lambda: np.empty(0))
    """Positions where the value was NaN or infinite."""


Beside = tuple[list[_Curve], list[str]]
"""Curves, and why others could not be drawn."""


class _Axis:
    """Horizontal axis of the picture, on which runs are aligned.

    Parameters
    ----------
    source : Source
        The run to which the others are compared.
    by : str
    line : LineAxis or None
        Horizontal axis of the run; None for the axis ``by``.
    window : (float, float) or None
        First and last step that are shown.
    """

    def __init__(
        self,
        source: RunSource,
        by: str,
        line: LineAxis | None,
        window: tuple[float, float] | None,
    ) -> None:
        self.source, self.by = source, by
        self._line, self._window = line, window
        self._this = Alignment(source, source, by)

    @property
    def title(self) -> str:
        """Unit of the axis, and where other runs are on it."""
        unit = UNITS.get(self.by, "step") if self._line is None else LINE_UNITS[self._line.name]
        if self._this.is_by_value:
            return f"{unit}; others where their {self.by} is as small"
        if self._line is None or self.by == "step":
            return unit
        return f"{unit}; others aligned by {self.by}"

    def of_this(self, steps: Steps) -> Float64s:
        """Return the positions of the run's steps; NaN outside of the window."""
        return self._x(steps.astype(np.float64), self._this.x_of_this(steps))

    def of_other(self, alignment: Alignment, steps: Steps) -> Float64s:
        """Return the positions of another run's steps; NaN without one."""
        return self._x(alignment.steps_here(steps), alignment.x_of_other(steps))

    def of_positions(self, along: Float64s) -> Float64s:
        """Return the positions in the picture of positions on the axis ``by``."""
        is_by_value = self._this.is_by_value
        return self._x(along if is_by_value else self._this.this.places.steps_at(along), along)

    def _x(self, here: Float64s, along: Float64s) -> Float64s:
        """Return positions, given steps of the run and positions on the axis ``by``."""
        x = along if self._line is None else self._line.at(here)
        if self._window is None:
            return x
        first, last = self._window
        return np.where((first <= here) & (here <= last), x, np.nan)


def _own(axis: _Axis, one: Series, look: LineOptions, index: int) -> _Curve:
    steps, values = read_smoothed(axis.source, *one)
    x = axis.of_this(steps)
    shade, label = colour(index), series_label(one)
    lost = x[~np.isfinite(values) & np.isfinite(x)]
    line = _drawable(x, values, look)
    if not look.smooth:
        return _Curve(*line, label, shade, dash(index), lost=lost)
    steps, averages = read_smoothed(axis.source, *one, look.smooth, log=look.log_y)
    smooth = _drawable(axis.of_this(steps), averages, look)
    return _Curve(*smooth, label, shade, dash(index), under=line, lost=lost)


def _each(
    axis: _Axis, runs: Sequence[RunSource], one: Series, look: LineOptions, index: int
) -> Beside:
    """Return a line for each of the other runs."""
    curves, notes = [], []
    _, *names = names_apart([axis.source, *runs])
    for place, run in enumerate(runs):
        try:
            alignment = Alignment(axis.source, run, axis.by)
            steps, values = read_smoothed(run, *one, look.smooth, log=look.log_y)
        except ProbeError as error:
            notes.append(str(error))
            continue
        x = axis.of_other(alignment, steps)
        rows = alignment.drawn(steps, x)
        x, y = _drawable(x[rows], values[rows], look)
        if not len(y):
            notes.append(f"{names[place]} has no value of {one[1]} that can be drawn")
        else:
            label = f"{shortened(names[place], LONGEST_NAME)} {number(float(y[-1]))}"
            pattern = RUN_DASHES[place % len(RUN_DASHES)]
            curves.append(_Curve(x, y, label, lighter(colour(index)), pattern))
    return curves, notes


def _as_group(
    axis: _Axis, runs: Sequence[RunSource], one: Series, look: LineOptions, index: int
) -> Beside:
    """Return one line with a band for all of the other runs."""
    options: dict[str, Any] = {"by": axis.by, "smooth": look.smooth, "log": look.log_y}
    try:
        found = group(runs, *one, **options, like=axis.source)
    except ProbeError as error:
        return [], [str(error)]
    x = axis.of_positions(found.x)
    known = (found.n > 0) & np.isfinite(x)
    if not known.any():
        return [], [*found.left_out, f"the others have no value of {one[1]} that can be drawn"]
    n, last = int(found.n.max()), number(float(found.mean[known][-1]))
    band = found.low[known], found.high[known]
    label = f"mean of {counted(n, 'run')} {last}"
    shade = lighter(colour(index))
    curve = _Curve(x[known], found.mean[known], label, shade, RUN_DASHES[0], band=band)
    return [curve], [*found.left_out]


def _drawable(x: Float64s, values: Floats, look: LineOptions) -> tuple[Float64s, Float64s]:
    """Return a few visible points that keep the shape of the line."""
    y = values.astype(np.float64)
    shown = np.isfinite(x) & np.isfinite(y) & ((y > 0) | (not look.log_y))
    x, y = x[shown], y[shown]
    rows = minmax_rows(y, N_POINTS, log=look.log_x)
    return x[rows], y[rows]


def _picture(
    curves: Sequence[_Curve], notes: Sequence[str], title: str, look: LineOptions
) -> Figure:
    labels = [Label(float(one.y[-1]), one.label, one.shade) for one in curves if len(one.y)]
    width, height = 9.0, 3.5 + NOTE_INCHES * len(notes)
    right = 0.3 + labels_inches([one.text for one in labels])
    bottom = 0.6 + NOTE_INCHES * len(notes)
    figure = Picture(figsize=(width, height))
    place = (0.75 / width, bottom / height, 1 - (0.75 + right) / width, 2.7 / height)
    axes = figure.add_axes(place)
    plain_axes(axes, grid=True)
    axes.margins(x=0.0)
    axes.set_yscale("log" if look.log_y else "linear")
    if look.log_x:
        axes.set_xscale("symlog", linthresh=1)
    for one in curves:
        _draw(axes, one)
    scale_values(axes, [one.y if one.under is None else one.under[1] for one in curves], look)
    ticks(axes.yaxis, look.log_y)
    if not look.log_x:
        ticks(axes.xaxis, False)
    _lead(axes, curves)
    axes.set_xlabel(title, color=SOFT, fontproperties=HEADING)
    draw_labels(axes, labels)
    for row, note in enumerate(notes):
        y = (bottom - 0.55 - NOTE_INCHES * row) / height
        figure.text(0.75 / width, y, note, color=SOFT, va="center", fontproperties=HEADING)
    return figure


def _draw(axes: Axes, one: _Curve) -> None:
    if one.band is not None:
        axes.fill_between(one.x, *one.band, color=one.shade, alpha=0.25, linewidth=0)
    if one.under is not None:
        axes.plot(*one.under, color=one.shade, linewidth=0.8, alpha=0.35)
    if len(one.lost):
        mark_lost(axes, one.lost)
    axes.plot(one.x, one.y, color=one.shade, linestyle=one.dash, linewidth=1.6)


def _lead(axes: Axes, curves: Sequence[_Curve]) -> None:
    """Dots from a line that ends early to its label."""
    right = max((float(one.x[-1]) for one in curves if len(one.x)), default=0.0)
    for one in curves:
        if len(one.x) and one.x[-1] < right:
            ends = [float(one.x[-1]), right], [float(one.y[-1])] * 2
            axes.plot(*ends, color=one.shade, linewidth=0.8, linestyle=(0, (1, 3)), gid="lead")
