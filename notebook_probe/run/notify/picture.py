"""Small picture of a series for a message."""

from __future__ import annotations

from io import BytesIO
from typing import Protocol

from notebook_probe.record.format.source import ROOT, Thinned

__all__ = ["picture_of"]

LAST_STEPS = 1000
SIZE_IN, DPI, COLOR = (4.0, 2.0), 100, "#0072B2"


class HasSeries(Protocol):
    """Record whose series can be drawn."""

    def thinned(self, module: str, quantity: str, start: float, stop: float) -> Thinned:
        """Return a part of a series."""
        ...


def picture_of(source: HasSeries, series: tuple[str, str] | None, step: int) -> bytes | None:
    """Return a PNG of a series up to a step; None without one, and without matplotlib."""
    if series is None:
        return None
    try:
        from matplotlib.figure import Figure
    except ModuleNotFoundError:
        return None
    module, quantity = series
    try:
        line = source.thinned(module, quantity, step - LAST_STEPS, step + 1)
    except KeyError:  # a fact of execution has no series
        return None
    figure = Figure(figsize=SIZE_IN, dpi=DPI, layout="constrained")
    axes = figure.subplots()
    axes.plot(line.x, line.y, linewidth=1, color=COLOR)
    axes.set(title=f"{'the model' if module == ROOT else module} {quantity}", xlabel="step")
    file = BytesIO()
    figure.savefig(file, format="png")
    return file.getvalue()
