"""A matplotlib figure as a PNG that is sharp in its place."""

from __future__ import annotations

import sys
from io import BytesIO

from matplotlib.figure import Figure

from notebook_probe.figures.style import drawing

__all__ = ["png"]

DPI = 96
"""CSS pixels per inch: a text of 10 points is as large as the panel's own."""


def png(figure: Figure, width: int, pixel_ratio: float = 1.0) -> tuple[bytes, int]:
    """Return the figure drawn ``width`` CSS pixels wide, and its height, in its own ratio.

    Texts and lines keep their size, as in a resized window. The figure is returned unchanged; a
    pyplot figure is closed.
    """
    across, down = figure.get_size_inches()
    height = max(1, round(width * down / across))
    buffer = BytesIO()
    # matplotlib's text layout and fonts are shared state that is not safe for threads.
    with drawing:
        figure.set_size_inches(width / DPI, height / DPI, forward=False)
        try:
            # The whole figure, whatever rcParams["savefig.bbox"] is: a tight box changes the ratio.
            whole = figure.bbox_inches.frozen()
            figure.savefig(buffer, format="png", dpi=DPI * pixel_ratio, bbox_inches=whole)
        finally:
            figure.set_size_inches(across, down, forward=False)
            _forget(figure)
    return buffer.getvalue(), height


def _forget(figure: Figure) -> None:
    """Pyplot keeps its figures until they are closed; it is not loaded for this."""
    pyplot = sys.modules.get("matplotlib.pyplot")
    if pyplot is not None:
        pyplot.close(figure)
