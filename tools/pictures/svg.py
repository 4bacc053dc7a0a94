"""Small pictures as SVG: lines or a map on two axes, with ticks, marks and a legend."""

from __future__ import annotations

import base64
import io
from collections.abc import Mapping, Sequence
from html import escape
from itertools import accumulate

import numpy as np
from matplotlib import colormaps
from matplotlib.colors import to_hex
from PIL import Image

from notebook_probe.figures.style import EDGE, INK, SOFT, colour, number
from tools.pictures.scale import Scale, Values, scale

__all__ = ["Series", "lines", "map_of"]

Series = Mapping[str, tuple[Values, Values]]

WIDTH, HEIGHT = 480, 200
LEFT, RIGHT, TOP, BOTTOM = 62, 468, 40, 168
MOST_POINTS = 200
LETTER = 6.3
"""Width of one, about."""


def lines(
    series: Series,
    x_label: str,
    y_label: str = "",
    *,
    log: bool | None = None,
    marks: Mapping[str, float] | None = None,
    events: Mapping[str, float] | None = None,
    points: bool = False,
    ordered: bool = False,
) -> str:
    """The picture of some series ``name -> (x, y)``; values that are not finite leave gaps.

    ``marks`` are levels to compare with, ``events`` are places on the x axis. A log axis is chosen
    where positive values span more than two decades, unless ``log`` says. Series that are
    ``ordered``, such as quantiles, have a sequence of colours; ``points`` are not joined.
    """
    shown = {name: xy if points else _thinned(*xy) for name, xy in series.items()}
    marks, events = marks or {}, events or {}
    y = np.concatenate([y for _, y in shown.values()] + [np.asarray(list(marks.values()))])
    across = scale(np.concatenate([x for x, _ in shown.values()]), LEFT, RIGHT, log=False)
    up = scale(y, BOTTOM, TOP, log=log, whole=True)
    colours = _colours(len(shown), ordered)
    parts = [_frame(across, up, x_label, y_label)]
    parts += [_event(name, across.to(place)) for name, place in events.items()]
    draw = _dots if points else _polyline
    for (x, y), ink in zip(shown.values(), colours, strict=True):
        parts.append(draw(across.of(x), up.of(y), ink))
    parts += [_mark(name, up.to(level)) for name, level in marks.items()]
    names = [] if points else list(shown)
    return _svg([*parts, _legend(names, colours)])


def map_of(
    values: Values,
    x: Values,
    y: Values,
    x_label: str,
    y_label: str,
    legend: str,
    y_ticks: Mapping[str, float] | None = None,
) -> str:
    """A matrix (y, x) as colours, the lowest row first; what is not finite stays white."""
    across, up = scale(x, LEFT, RIGHT, log=False), scale(y, BOTTOM, TOP, log=False)
    finite = np.isfinite(values)
    low, high = values[finite].min(), values[finite].max()
    level = np.nan_to_num((values - low) / ((high - low) or 1.0))
    image = (colormaps["viridis"](level[::-1]) * 255).astype(np.uint8)
    image[~finite[::-1]] = 255
    told = f"{legend} {number(float(low))} to {number(float(high))}".strip()
    place = f'x="{LEFT}" y="{TOP}" width="{RIGHT - LEFT}" height="{BOTTOM - TOP}"'
    drawn = (
        f'<image {place} preserveAspectRatio="none" style="image-rendering:pixelated" '
        f'href="data:image/png;base64,{_png(image)}"/>'
    )
    bar = "".join(
        f'<rect x="{RIGHT - 210 + 6 * n}" y="6" width="6" height="9" fill="{ink}"/>'
        for n, ink in enumerate(map(to_hex, colormaps["viridis"](np.linspace(0, 1, 10))))
    )
    text = f'<text x="{RIGHT - 144}" y="14">{escape(told)}</text>'
    return _svg([drawn, _frame(across, up, x_label, y_label, y_ticks, grid=False), bar, text])


def _svg(parts: Sequence[str]) -> str:
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" '
        f'width="{WIDTH}" height="{HEIGHT}" font-family="sans-serif" font-size="11" '
        f'fill="{SOFT}"><rect width="100%" height="100%" fill="#fff"/>{"".join(parts)}</svg>\n'
    )


def _thinned(x: Values, y: Values) -> tuple[Values, Values]:
    """Evenly chosen points, no more than can be seen."""
    kept = np.unique(np.linspace(0, len(x) - 1, MOST_POINTS).round().astype(int))
    return x[kept], y[kept]


def _colours(n: int, ordered: bool) -> list[str]:
    if ordered:  # viridis without its yellow end, which is pale on white
        return [to_hex(ink) for ink in colormaps["viridis"](np.linspace(0, 0.85, n))]
    return [to_hex(colour(place)) for place in range(n)]


def _frame(
    across: Scale,
    up: Scale,
    x_label: str,
    y_label: str,
    y_ticks: Mapping[str, float] | None = None,
    grid: bool = True,
) -> str:
    parts = [f'<path d="M{LEFT} {BOTTOM}H{RIGHT}" stroke="{SOFT}"/>']
    at = [(up.to(value), told) for told, value in y_ticks.items()] if y_ticks else up.ticks()
    for level, told in at:
        if grid:
            parts.append(f'<path d="M{LEFT} {level:.0f}H{RIGHT}" stroke="{EDGE}"/>')
        parts.append(f'<text x="{LEFT - 6}" y="{level + 4:.0f}" text-anchor="end">{told}</text>')
    for place, told in across.ticks():
        parts.append(f'<text x="{place:.0f}" y="{BOTTOM + 14}" text-anchor="middle">{told}</text>')
    middle = (LEFT + RIGHT) / 2
    parts.append(
        f'<text x="{middle}" y="{HEIGHT - 4}" text-anchor="middle">{escape(x_label)}</text>'
    )
    if y_label:
        parts.append(f'<text x="4" y="14">{escape(y_label)}</text>')
    return "".join(parts)


def _polyline(x: Values, y: Values, ink: str) -> str:
    """One path, lifted where there is nothing to draw; a point alone is a dot."""
    path, lifted = [], True
    for one, other in zip(x, y, strict=True):
        if not np.isfinite(other):
            lifted = True
            continue
        path.append(f"{'M' if lifted else 'L'}{one:.0f} {other:.1f}{'h0' if lifted else ''}")
        lifted = False
    return (
        f'<path d="{"".join(path)}" fill="none" stroke="{ink}" stroke-width="1.6" '
        f'stroke-linecap="round"/>'
    )


def _dots(x: Values, y: Values, ink: str) -> str:
    found = [(one, other) for one, other in zip(x, y, strict=True) if np.isfinite(other)]
    path = "".join(f"M{one:.0f} {other:.0f}h0" for one, other in found)
    return f'<path d="{path}" stroke="{ink}" stroke-width="3.4" stroke-linecap="round"/>'


def _mark(name: str, level: float) -> str:
    return (
        f'<path d="M{LEFT} {level:.1f}H{RIGHT}" stroke="{INK}" stroke-dasharray="5 3"/>'
        f'<text x="{RIGHT}" y="{level - 4:.1f}" text-anchor="end" fill="{INK}" '
        f'stroke="#fff" stroke-width="3" paint-order="stroke">'
        f"{escape(name)}</text>"
    )


def _event(name: str, place: float) -> str:
    return (
        f'<path d="M{place:.0f} {TOP - 3}V{BOTTOM}" stroke="{SOFT}" stroke-dasharray="1.5 2.5"/>'
        f'<text x="{place:.0f}" y="{TOP - 5}">{escape(name)}</text>'
    )


def _legend(names: Sequence[str], colours: Sequence[str]) -> str:
    widths = [LETTER * len(name) + 14 for name in names]
    starts = accumulate(widths[:-1], initial=float(RIGHT) - sum(widths) + 14)
    return "".join(
        f'<text x="{start:.0f}" y="14" fill="{ink}">{escape(name)}</text>'
        for name, start, ink in zip(names, starts, colours, strict=False)
    )


def _png(image: Values) -> str:
    buffer = io.BytesIO()
    Image.fromarray(image, "RGBA").convert("RGB").quantize(64).save(buffer, "png", optimize=True)
    return base64.b64encode(buffer.getvalue()).decode()
