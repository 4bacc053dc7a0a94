"""Colors of everything but data, on light pages and on dark ones."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from matplotlib.axes import Axes
from matplotlib.patheffects import withStroke

from notebook_probe.figures.style import EDGE, INK, SOFT, plain_axes

__all__ = ["DARK", "LIGHT", "Tones"]


@dataclass(frozen=True, slots=True)
class Tones:
    """Background, text, missing points, and a path that stands out from any color."""

    ground: str
    ink: str
    soft: str
    lost: str
    path: str = "#ffffff"
    path_edge: str = "#1f2328"
    star: str = "#ff9f1c"

    @property
    def outlined(self) -> list[Any]:
        """Outline of text over colors."""
        return [withStroke(linewidth=2.2, foreground=self.path_edge)]

    def plain(self, axes: Axes) -> None:
        """Remove the frame and soften the ticks."""
        plain_axes(axes, grid=False)
        axes.tick_params(colors=self.soft)


LIGHT = Tones("#ffffff", INK, SOFT, EDGE)
DARK = Tones("#111418", "#e6edf3", "#9da7b1", "#3d444d")
