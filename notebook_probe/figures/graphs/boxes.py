"""Boxes in layers and the links between them, as one picture from above to below."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import FancyArrowPatch, FancyBboxPatch
from matplotlib.path import Path

from notebook_probe.figures.graphs.layered import GraphLayout, Pair, layered
from notebook_probe.figures.style import (
    BRAND,
    EDGE,
    FONT,
    INK,
    SOFT,
    Picture,
    text_inches,
)

__all__ = ["Box", "boxes"]

# Inches: a box, the gap between two layers, the margin, and the space of the heading.
TALL, BETWEEN, MARGIN, HEADING = 0.42, 0.34, 0.25, 0.4
PADDING = 0.22
FILLED = "#eef3fb"
SMALL: dict[str, Any] = {**FONT, "size": 7.5}


@dataclass(frozen=True, slots=True)
class Box:
    """Text of a box: its name, and details in a softer color below."""

    name: str
    below: str = ""
    is_filled: bool = False

    @property
    def width(self) -> float:
        return max(text_inches(one) for one in (self.name, self.below)) + PADDING


def boxes(heading: str, given: Sequence[Box], links: Mapping[Pair, str]) -> Figure:
    """Draw the picture; a link's text is at its start."""
    widths = [box.width for box in given]
    unlinked = [*pairwise(range(len(widths)))]  # in a column
    layout = layered(widths, [*links] or unlinked)
    left, right = _bounds(layout, widths)
    n_layers = max(layout.layer, default=0) + 1
    wide = max(right - left, text_inches(heading)) + 2 * MARGIN
    high = n_layers * (TALL + BETWEEN) - BETWEEN + HEADING + 2 * MARGIN
    figure = Picture(figsize=(wide, high))
    axes = figure.add_axes((0, 0, 1, 1))
    axes.set_axis_off()
    middle = (left + right) / 2
    axes.set_xlim(middle - wide / 2, middle + wide / 2)
    axes.set_ylim(-high + HEADING + MARGIN, HEADING + MARGIN)
    corner = (middle - wide / 2 + MARGIN, HEADING / 2 + MARGIN / 2)
    axes.text(*corner, heading, color=INK, va="center", **FONT)
    for link, label in links.items():
        _draw_link(axes, layout.routes[link], label)
    for box, x, layer in zip(given, layout.x, layout.layer, strict=True):
        _draw_box(axes, box, x, _top(layer))
    return figure


def _top(layer: int) -> float:
    return -layer * (TALL + BETWEEN)


def _bounds(layout: GraphLayout, widths: list[float]) -> tuple[float, float]:
    ends = [(x - width / 2, x + width / 2) for x, width in zip(layout.x, widths, strict=True)]
    passed = [x for route in layout.routes.values() for x, _ in route]
    every = [*passed, *(one for pair in ends for one in pair)]
    return min(every, default=0.0), max(every, default=1.0)


def _draw_box(axes: Axes, box: Box, x: float, top: float) -> None:
    axes.add_patch(
        FancyBboxPatch(
            (x - box.width / 2 + 0.06, top - TALL + 0.06),
            box.width - 0.12,
            TALL - 0.12,
            boxstyle="round,pad=0.06",
            facecolor=FILLED if box.is_filled else "white",
            edgecolor=BRAND if box.is_filled else EDGE,
            linewidth=0.9,
            zorder=3,
        )
    )
    centred: dict[str, Any] = {"ha": "center", "va": "center", "zorder": 4}
    middle = top - TALL / 2
    axes.text(x, middle + (0.075 if box.below else 0), box.name, color=INK, **centred, **FONT)
    if box.below:
        axes.text(x, middle - 0.095, box.below, color=SOFT, **centred, **SMALL)


def _draw_link(axes: Axes, route: list[tuple[float, int]], label: str) -> None:
    (x_start, above), *passed, (x_end, below) = route
    points = [(x_start, _top(above) - TALL)]
    for x, layer in passed:  # straight down next to the boxes of the layer
        points += [(x, _top(layer)), (x, _top(layer) - TALL)]
    points.append((x_end, _top(below)))
    vertices, codes = [points[0]], [Path.MOVETO]
    for (x0, y0), (x1, y1) in pairwise(points):
        half = (y0 + y1) / 2
        vertices += [(x0, half), (x1, half), (x1, y1)]
        codes += [Path.CURVE4] * 3
    axes.add_patch(
        FancyArrowPatch(
            path=Path(vertices, codes),
            arrowstyle="-|>,head_length=3,head_width=1.6",
            color=SOFT,
            linewidth=0.8,
            zorder=1,
            shrinkA=0,
            shrinkB=0,
        )
    )
    if label:
        (x0, y0), (x1, _) = points[0], points[1]
        axes.text(
            x0 + (x1 - x0) * 0.15 + 0.05,
            y0 - BETWEEN * 0.36,
            label,
            color=SOFT,
            va="center",
            zorder=2,
            bbox={"facecolor": "white", "alpha": 0.8, "linewidth": 0, "pad": 0.6},
            **SMALL,
        )
