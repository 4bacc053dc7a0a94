"""Titles as wide as a picture: a long one takes several lines, and the picture is taller."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from notebook_probe.figures.style import text_inches

__all__ = ["LINE_INCHES", "MARGIN", "extra_inches", "title_lines"]

LINE_INCHES, MARGIN = 0.2, 0.15
"""Height of a line, and what is left free at the right of a title."""
HINTED = 1.07
"""Most that a text of small letters is wider in pixels than by its outlines."""
MOST_LINES = 4
_PIECE = re.compile(r"[^\s_./-]*[\s_./-]+|[^\s_./-]+")
"""A word of a sentence or of a name, with what ends it."""
_NO_SPACE = re.compile(r"[^\S ]")
"""Line breaks and tabs, for which no font has a letter."""


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
