"""Series over steps as a static picture."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter

from notebook_probe.checks import chosen_name, smoothing_weight, step_window, value_range
from notebook_probe.compare.line_axes import LINE_AXES, LineAxis, LineAxisName, line_axis
from notebook_probe.figures.labels import Label, draw_labels, labels_inches
from notebook_probe.figures.marks import draw_marks
from notebook_probe.figures.outliers import inner_range
from notebook_probe.figures.overlay import OverlaidSeries, draw_beside
from notebook_probe.figures.style import (
    HEADING,
    LOST_COLOUR,
    SOFT,
    Picture,
    colour,
    dash,
    drawing,
    number,
    plain_axes,
    short_path,
    shortened,
    ticks,
)
from notebook_probe.record.format.missing import measured
from notebook_probe.record.format.schema import module_label
from notebook_probe.record.format.source import (
    ROOT,
    Floats,
    Source,
    Steps,
    StreamView,
    check_opened,
)
from notebook_probe.record.formulas import with_formulas
from notebook_probe.record.views.looks import without_gone
from notebook_probe.record.views.thinning.average import capped
from notebook_probe.record.views.thinning.averages import average_between, holding
from notebook_probe.record.views.thinning.merged_rows import merged_rows
from notebook_probe.record.views.thinning.minmax import minmax_rows
from notebook_probe.record.views.thinning.zoom import in_window

__all__ = [
    "PLAIN_LOOK",
    "LineOptions",
    "Series",
    "draw_lines",
    "label_inches",
    "lines",
    "mark_lost",
    "recorded",
    "scale_values",
    "series_label",
]

# Twice the pixels that there are across: each column of them has a lowest and a highest point.
N_POINTS = 1400
SHORT = 40
"""Series of no more points are drawn as points."""
LONGEST_LABEL = 30

Series: TypeAlias = tuple[str, str]
Float64s: TypeAlias = npt.NDArray[np.float64]
Curve: TypeAlias = tuple[Float64s, Float64s]
"""x and y."""


@dataclass(frozen=True, slots=True)
class LineOptions:
    """Options of lines, as in the panel.

    Raises
    ------
    ValueError
        A weight that is not from 0 to 1, another axis, or limits that are not ascending.
    """

    log_y: bool = True
    """Logarithmic values; in a picture of series without a positive value they are linear."""
    log_x: bool = False
    smooth: float = 0.0
    """Weight of the debiased exponential average of every recorded value, in the plotted scale;
    0 for none, 0.9 averages about ten values, 0.999 a thousand."""
    x_axis: LineAxisName = "step"
    """Horizontal axis: ``"step"``, ``"time"`` in seconds since the run's first row, or ``"epoch"``
    from what ``run.log(epoch=...)`` or ``run.batches(loader)`` recorded."""
    y_limits: tuple[float, float] | None = None
    """Ends of the value axis; None fits the values."""
    outliers: bool = True
    """False leaves single values far beyond all others out of the fitted axis, and says so."""

    def __post_init__(self) -> None:
        smoothing_weight("smooth", self.smooth)
        chosen_name("x_axis", self.x_axis, LINE_AXES)
        value_range("y_limits", self.y_limits)


PLAIN_LOOK = LineOptions()


def lines(
    source: Source,
    series: Sequence[Series],
    *,
    window: tuple[float, float] | None = None,
    look: LineOptions = PLAIN_LOOK,  # frozen
    colours: Mapping[Series, int] | None = None,
) -> Figure:
    """Series over steps with a direct label each.

    Parameters
    ----------
    source : Source
        A run or an opened record.
    series : sequence of (module, quantity)
    window : (float, float), optional
        First and last step shown.
    look : LineOptions, optional
        Scales and smoothing.
    colours : mapping, optional
        Color index of each series; by default their order.

    Raises
    ------
    UnknownNameError
        A series of which nothing is recorded.
    ValueError
        A window whose first step is above the last.
        A series of which nothing is recorded, or ``x_axis="epoch"`` for a run without epochs.

    Examples
    --------
    >>> lines(run, [("fc1", "grad_norm")], look=LineOptions(smooth=0.9))  # doctest: +SKIP
    """
    step_window(window)
    series = recorded(source, series)
    for module, quantity in series:
        source.series(module, quantity)  # raises for a wrong name, with the close ones
    colour_of = colours_of(source, series, colours)
    right = 0.3 + label_inches(series)
    width, height = 9.0, 3.2
    with drawing:
        figure = Picture(figsize=(width, height))
        place = (0.75 / width, 0.3 / height, 1 - (0.75 + right) / width, 1 - 0.5 / height)
        draw_lines(figure.add_axes(place), source, series, window, look, colour_of)
    return figure


def recorded(source: Source, series: Collection[Series]) -> list[Series]:
    """Return the series by their recorded names; that of the whole model is `ROOT`.

    Raises TypeError for anything but pairs, such as one pair without a list around it.
    """
    check_opened(source)
    if isinstance(series, str) or any(isinstance(one, str) for one in series):
        raise TypeError(
            f"series={series!r}: a list of (module, quantity) is expected, such as [('', 'loss')]"
        )
    return [(module_label(module), source.recorded_name(quantity)) for module, quantity in series]


def colours_of(
    source: Source, series: Collection[Series], colours: Mapping[Series, int] | None
) -> dict[Series, int]:
    """Return the color index of each series; their order if there are none."""
    if colours:
        return dict(zip(recorded(source, colours), colours.values(), strict=True))
    return {one: place for place, one in enumerate(series)}


def label_inches(series: Sequence[Series]) -> float:
    """Room the direct labels need at the right."""
    return labels_inches([series_label(one) for one in series])


def draw_lines(
    axes: Axes,
    source: Source,
    series: Sequence[Series],
    window: tuple[float, float] | None,
    look: LineOptions,
    colours: Mapping[Series, int],
    beside: Sequence[OverlaidSeries] = (),
) -> None:
    """Draw every series, where it was not finite, what happened, and the labels."""
    streams = with_formulas(source.streams, series)
    axis = line_axis(source, look.x_axis)
    read = {one: _read(streams, one, window) for one in series}
    if not _has_logarithms(values for _, values in read.values()):
        look = replace(look, log_y=False)
    plain_axes(axes, grid=True)
    axes.margins(x=0.0)
    axes.set_yscale("log" if look.log_y else "linear")
    if look.log_x:
        axes.set_xscale("symlog", linthresh=1)  # a run begins at step 0
    others = draw_beside(axes, beside)
    ends: list[tuple[float, Series]] = []
    every: list[Floats] = []
    for one in series:
        curves = [read[one]]
        every.append(curves[0][1])
        if look.smooth > 0:
            log = look.log_y
            held = holding(streams, *one).values()
            weight = capped(look.smooth, sum(stream.n_rows for stream in held))
            curves.append(average_between(streams, *one, window, weight, log=log))
        placed = [_placed(source.streams, one, curve, look, axis) for curve in curves]
        x, y = placed[0]
        lost = ~np.isfinite(y)
        if lost.any():
            mark_lost(axes, x[lost])
        drawable = [_drawable(*curve, look) for curve in placed]
        if len(drawable[0][0]):
            ends.append((_draw(axes, drawable, colours[one]), one))
    _mark_events(axes, source, window, axis)
    _widen(axes)
    scale_values(axes, every, look)
    ticks(axes.yaxis, look.log_y)
    if look.log_x:
        axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: number(value) + axis.unit))
    else:
        ticks(axes.xaxis, False, axis.unit)
    _name_axis(axes, axis.word)
    labels = [Label(value, series_label(one), colour(colours[one])) for value, one in ends]
    draw_labels(axes, [*labels, *others])


def _widen(axes: Axes) -> None:
    """Make the axis of a single point, or of none, one unit wide; matplotlib makes it 10⁻¹⁷."""
    low, high = axes.dataLim.intervalx
    if not high - low > 1e-9:  # NaN, too
        begin = low if np.isfinite(low) else 0.0
        axes.set_xlim(begin, begin + 1.0)


def scale_values(axes: Axes, values: Sequence[npt.ArrayLike], look: LineOptions) -> None:
    """Give the value axis its limits: by hand, or without outliers, which are counted above."""
    if look.y_limits:
        if not (look.log_y and look.y_limits[0] <= 0):
            axes.set_ylim(*look.y_limits)
        return
    inner = None if look.outliers else inner_range(values, look.log_y)
    if inner is None:
        return
    low, high = np.log10([inner.low, inner.high]) if look.log_y else (inner.low, inner.high)
    margin = 0.05 * (high - low)
    ends = [low - margin, high + margin]
    axes.set_ylim(*(10 ** np.array(ends) if look.log_y else ends))
    axes.set_title(inner.text, loc="right", color=SOFT, pad=3, fontproperties=HEADING)


def _draw(axes: Axes, curves: Sequence[Curve], index: int) -> float:
    """Draw a series, faint under its average if it has one; return its last value."""
    *faint, (x, y) = curves
    for under in faint:
        axes.plot(*under, color=colour(index), linewidth=0.8, alpha=0.35)
    (line,) = axes.plot(x, y, color=colour(index), linestyle=dash(index), linewidth=1.6)
    if len(x) <= SHORT:
        line.set(marker="o", markersize=3.5)
    return float(y[-1])


def _read(
    streams: Mapping[str, StreamView], series: Series, window: tuple[float, float] | None
) -> tuple[Steps, Floats]:
    """Return all measured rows of a series in the window, from every stream that has it."""
    module, quantity = series
    held = holding(streams, module, quantity).values()
    parts = [(stream, *in_window(stream, window)) for stream in held]
    steps, values = merged_rows(parts, quantity, [module])
    known = measured(values[:, 0])
    return steps[known], values[known, 0]


def _placed(
    streams: Mapping[str, StreamView],
    series: Series,
    curve: tuple[Steps, Floats],
    look: LineOptions,
    axis: LineAxis,
) -> Curve:
    """Return a few visible points at their positions along x."""
    steps, values = curve
    shown = minmax_rows(values, N_POINTS, log=look.log_x)
    steps, y = steps[shown], values[shown].astype(np.float64)
    return axis.of_rows(holding(streams, *series), steps), y


def _has_logarithms(series: Iterable[Floats]) -> bool:
    """Return whether a logarithmic axis shows anything, or there is nothing to be shown."""
    finite = [values[np.isfinite(values)] for values in series]
    return any((one > 0).any() for one in finite) or not any(map(len, finite))


def _drawable(x: Float64s, y: Float64s, look: LineOptions) -> Curve:
    """Drop points that the axis cannot show."""
    shown = np.isfinite(y) & (y > 0) if look.log_y else np.isfinite(y)
    return x[shown], y[shown]


def mark_lost(axes: Axes, x: Float64s) -> None:
    """Crosses at the bottom where a value was NaN or infinite."""
    marks = np.zeros(len(x))
    axes.plot(x, marks, "x", color=LOST_COLOUR, markersize=5, clip_on=False, **_at_bottom(axes))


def _mark_events(
    axes: Axes,
    source: Source,
    window: tuple[float, float] | None,
    axis: LineAxis,
) -> None:
    """Draw marks at the bottom where something was done to the run, or found."""
    low, high = window or (-np.inf, np.inf)
    seen = without_gone(source.events)
    events = [event for event in seen if low <= event.step <= high]
    draw_marks(axes, events, [axis.of_event(one) for one in events])


def _name_axis(axes: Axes, word: str) -> None:
    """Write the word of an axis behind its last tick."""
    axes.annotate(
        word,
        (1, 0),
        (6, -5),
        xycoords="axes fraction",
        textcoords="offset points",
        va="top",
        color=SOFT,
        fontproperties=HEADING,
    )


def _at_bottom(axes: Axes) -> dict[str, Any]:
    """X in steps, y in heights of the axes."""
    return {"transform": axes.get_xaxis_transform()}


def series_label(series: Series) -> str:
    """Return the label of a line; for the whole model just the quantity."""
    quantity = shortened(series[1], LONGEST_LABEL)
    if series[0] in ("", ROOT):
        return quantity
    return f"{short_path(series[0], max(1, LONGEST_LABEL - len(quantity)))} · {quantity}"
