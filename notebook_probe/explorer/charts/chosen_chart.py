"""A chart that a user has arranged: its series, value axis, smoothing and height."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TypeAlias, TypedDict

__all__ = ["HEIGHTS", "ChartMessage", "ChosenChart", "Series", "chart_message", "chosen_charts"]

Series: TypeAlias = tuple[str, str]
"""(module, quantity)."""

HEIGHTS = (80, 1200)
"""Least and largest height of a chart, in CSS pixels."""

MOST_SMOOTH = 0.999
"""Maximum weight: an average over a thousand values; more would hide a run."""

MOST_CHOSEN = 30


class ChartMessage(TypedDict):
    """A chart as a user has arranged it."""

    series: list[tuple[str, str]]
    """(module, quantity) of each of its lines."""
    log_y: bool | None
    """Log scale of its value axis; None chooses."""
    y_limits: tuple[float, float] | None
    """Lowest and highest value of its axis; None fits the lines."""
    outliers: bool
    """True if the fitted axis has room for single values far beyond all others, too."""
    smooth: float
    """Weight of the averages of its lines."""
    height: int
    """Least height in CSS pixels."""


@dataclass(frozen=True, slots=True)
class ChosenChart:
    """A chart as a user has arranged it; see `ChartMessage`.

    Examples
    --------
    >>> chosen_charts([chart_message(ChosenChart((("", "loss"),), height=40))])[0].height
    80
    """

    series: tuple[Series, ...] = ()
    log_y: bool | None = None
    y_limits: tuple[float, float] | None = None
    outliers: bool = False
    smooth: float = 0.9
    height: int = 200


def chart_message(chart: ChosenChart) -> ChartMessage:
    """Return a chart as it is sent."""
    return {
        "series": [*chart.series],
        "log_y": chart.log_y,
        "y_limits": chart.y_limits,
        "outliers": chart.outliers,
        "smooth": chart.smooth,
        "height": chart.height,
    }


def chosen_charts(
    messages: Sequence[ChartMessage], drawn: Iterable[Series] | None = None
) -> tuple[ChosenChart, ...]:
    """Return charts as a view requests them: of the drawn series, each in the first chart it names.

    Without ``drawn`` every series is taken.
    """
    left = None if drawn is None else {*drawn}
    taken: set[Series] = set()
    charts = []
    for one in messages[:MOST_CHOSEN]:
        wanted = dict.fromkeys(one["series"])
        series = [pair for pair in wanted if pair not in taken and (left is None or pair in left)]
        taken.update(series)
        low, high = one["y_limits"] or (0.0, 0.0)
        charts.append(
            ChosenChart(
                tuple(series),
                log_y=one["log_y"],
                y_limits=(low, high) if high > low else None,
                outliers=one["outliers"],
                # A weight of 1 would be a constant line.
                smooth=min(max(one["smooth"], 0.0), MOST_SMOOTH),
                height=min(max(one["height"], HEIGHTS[0]), HEIGHTS[1]),
            )
        )
    return tuple(charts)
