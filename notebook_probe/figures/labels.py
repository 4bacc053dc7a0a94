"""Names at the ends of lines, moved vertically so that they do not overlap."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from matplotlib.axes import Axes

from notebook_probe.figures.style import FONT, text_inches

__all__ = ["Label", "draw_labels", "labels_inches"]

LABEL_INCHES = 0.17


@dataclass(frozen=True, slots=True)
class Label:
    """Name of a line, at its last value."""

    value: float
    text: str
    shade: tuple[float, float, float]


def labels_inches(texts: Sequence[str]) -> float:
    """Return the width of the labels at the right of the axes."""
    return 0.25 + max(map(text_inches, texts), default=0.0)


def draw_labels(axes: Axes, labels: Sequence[Label]) -> None:
    """Draw each label at the right, with a line to it from its value."""
    axes.get_ylim()  # matplotlib sets the limits when it is asked for them
    to_axes = axes.transData + axes.transAxes.inverted()
    heights = [float(to_axes.transform((0.0, one.value))[1]) for one in labels]
    room = LABEL_INCHES * axes.figure.dpi / axes.bbox.height
    for height, one, y in zip(heights, labels, _moved_apart(heights, room), strict=True):
        faint: dict[str, Any] = {"color": one.shade, "linewidth": 0.8, "alpha": 0.6}
        axes.plot([1.005, 1.025], [height, y], **faint, **_outside(axes))
        axes.text(1.03, y, one.text, color=one.shade, va="center", transform=axes.transAxes, **FONT)


def _outside(axes: Axes) -> dict[str, Any]:
    # Without scalex and scaley a line to a label does not widen the axes.
    return {"transform": axes.transAxes, "clip_on": False, "scalex": False, "scaley": False}


def _moved_apart(heights: Sequence[float], room: float) -> list[float]:
    """Spread heights to at least ``room``, from the top down, then up again from the bottom."""
    order = sorted(range(len(heights)), key=lambda place: -heights[place])
    placed = [0.0] * len(heights)
    ceiling = 1.0
    for place in order:
        placed[place] = ceiling = min(heights[place], ceiling)
        ceiling -= room
    floor = 0.0
    for place in reversed(order):
        placed[place] = floor = max(placed[place], floor)
        floor += room
    return placed
