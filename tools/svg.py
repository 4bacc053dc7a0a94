"""A line picture as a small SVG: a few polylines, the ends of their axes, a legend."""

from __future__ import annotations

import math
from collections.abc import Mapping
from html import escape

import numpy as np
import numpy.typing as npt

from notebook_probe.figures.style import OKABE_ITO, number

__all__ = ["lines"]

Values = npt.NDArray[np.float64]

WIDTH, HEIGHT = 420, 130
LEFT, RIGHT, TOP, BOTTOM = 62, 410, 22, 112
MOST_POINTS = 80
DECADES = 2.0
"""Positive values that span more are drawn on a log axis."""


def lines(series: Mapping[str, tuple[Values, Values]], x_label: str) -> str:
    """The picture of some series ``name -> (x, y)``; values that are not finite leave gaps."""
    shown = {name: _thinned(*xy) for name, xy in series.items()}
    every_x = np.concatenate([x for x, _ in shown.values()])
    every_y = np.concatenate([y for _, y in shown.values()])
    every_y = every_y[np.isfinite(every_y)]
    is_log = every_y.min() > 0 and math.log10(every_y.max() / every_y.min()) > DECADES
    across = _scale(every_x, LEFT, RIGHT)
    up = _scale(np.log10(every_y) if is_log else every_y, BOTTOM, TOP)
    parts = [_frame(x_label, every_x, every_y, is_log)]
    for place, (name, (x, y)) in enumerate(shown.items()):
        colour = OKABE_ITO[place]
        with np.errstate(divide="ignore", invalid="ignore"):
            heights = up(np.log10(y) if is_log else y)
        parts += [_polyline(across(x), heights, colour), _name(place, name, colour)]
    inside = "".join(parts)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" '
        f'width="{WIDTH}" height="{HEIGHT}" font-family="sans-serif" font-size="11">'
        f'<rect width="100%" height="100%" fill="#fff"/>{inside}</svg>\n'
    )


def _thinned(x: Values, y: Values) -> tuple[Values, Values]:
    """Evenly chosen points, no more than can be seen."""
    kept = np.unique(np.linspace(0, len(x) - 1, MOST_POINTS).round().astype(int))
    return x[kept], y[kept]


def _scale(values: Values, start: float, end: float) -> Scale:
    low, high = float(values.min()), float(values.max())
    return Scale(low, (end - start) / (high - low) if high > low else 0.0, start, end)


class Scale:
    """From values to pixels; a constant lies in the middle."""

    def __init__(self, low: float, factor: float, start: float, end: float) -> None:
        self._low, self._factor = low, factor
        self._start = start if factor else (start + end) / 2

    def __call__(self, values: Values) -> Values:
        return self._start + (values - self._low) * self._factor


def _frame(x_label: str, x: Values, y: Values, is_log: bool) -> str:
    grey = 'fill="#57606a"'
    ends = [(y.max(), TOP + 4), (y.min(), BOTTOM)] if y.max() > y.min() else [(y[0], 71)]
    labels = "".join(
        f'<text x="{LEFT - 6}" y="{place}" text-anchor="end" {grey}>{_told(value)}</text>'
        for value, place in ends
    )
    log = f'<text x="{LEFT - 6}" y="71" text-anchor="end" {grey}>log</text>' if is_log else ""
    axis = f"{x_label} {_told(x.min())} to {_told(x.max())}"
    return (
        f'<path d="M{LEFT} {TOP - 6}V{BOTTOM + 4}H{RIGHT}" fill="none" stroke="#d0d7de"/>'
        f'{labels}{log}<text x="{RIGHT}" y="{HEIGHT - 4}" text-anchor="end" {grey}>{axis}</text>'
    )


def _told(value: float) -> str:
    return escape(number(float(value)))


def _polyline(x: Values, y: Values, colour: str) -> str:
    """One path, lifted where there is nothing to draw."""
    path, lifted = [], True
    for one, other in zip(x, y, strict=True):
        if not np.isfinite(other):
            lifted = True
            continue
        path.append(f"{'M' if lifted else 'L'}{one:.0f} {other:.1f}")
        lifted = False
    return f'<path d="{"".join(path)}" fill="none" stroke="{colour}" stroke-width="1.5"/>'


def _name(place: int, name: str, colour: str) -> str:
    return f'<text x="{LEFT + 4 + 112 * place}" y="12" fill="{colour}">{escape(name)}</text>'
