"""Texts of a picture: titles in several lines, and names at line ends that do not overlap."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from matplotlib.axes import Axes

from notebook_probe.figures.style import FONT, text_inches

__all__ = [
    "LINE_INCHES",
    "MARGIN",
    "Label",
    "draw_labels",
    "extra_inches",
    "labels_inches",
    "title_lines",
]

LINE_INCHES, MARGIN = 0.2, 0.15
"""Height of a line, and what is left free at the right of a title."""
HINTED = 1.07
"""Most that a text of small letters is wider in pixels than by its outlines."""
MOST_LINES = 4
_PIECE = re.compile(r"[^\s_./-]*[\s_./-]+|[^\s_./-]+")
"""A word of a sentence or of a name, with what ends it."""
_NO_SPACE = re.compile(r"[^\S ]")
"""Line breaks and tabs, for which no font has a letter."""
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


def title_lines(text: str, inches: float) -> list[str]:
    """Return the lines of a title, none wider than this; a fifth line and the rest are left out.

    Lines end after a space, dot, dash, slash or underscore, where there is one.

    Examples
    --------
    >>> title_lines("grad_norm", 2.0)
    ['grad_norm']
    >>> title_lines("output_grad_norm_per_channel", 1.0)
    ['output_grad_', 'norm_per_', 'channel']
    """
    inches /= HINTED
    lines = [""]
    for piece in _pieces(text, inches):
        if lines[-1] and text_inches((lines[-1] + piece).rstrip()) > inches:
            if len(lines) == MOST_LINES:
                lines[-1] = f"{lines[-1].rstrip()}…"
                break
            lines.append("")
        lines[-1] += piece
    return [line.rstrip() for line in lines if line.strip()] or [""]


def extra_inches(lines: Sequence[str]) -> float:
    """Return the height that lines of a title take in addition to the first one."""
    return LINE_INCHES * (len(lines) - 1)


def _pieces(text: str, inches: float) -> Iterator[str]:
    """Yield words; of one that is too wide, its characters."""
    for piece in _PIECE.findall(_NO_SPACE.sub(" ", text)):
        yield from [piece] if text_inches(piece) <= inches else piece
