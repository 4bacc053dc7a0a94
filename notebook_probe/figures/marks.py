"""Marks below the axis of a picture: alerts, checkpoints, looks, and what else was done."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from matplotlib.axes import Axes

from notebook_probe.alerts.alert import ALERT, alert_of
from notebook_probe.figures.style import BAD, BRAND, WARNING
from notebook_probe.record.format.notes import OUTPUT
from notebook_probe.record.format.source import Event

__all__ = ["draw_marks"]


@dataclass(frozen=True, slots=True)
class _MarkStyle:
    """Shape and color of a kind of mark, as in the panel."""

    marker: str
    colour: str
    is_filled: bool = True
    size: float = 6.0


DONE = _MarkStyle("|", BRAND, size=7.0)
STYLES = {
    "done": DONE,
    "checkpoint": _MarkStyle("D", BRAND, is_filled=False, size=4.0),
    "look": _MarkStyle("s", BRAND, is_filled=False, size=4.0),
    "warning": _MarkStyle("^", WARNING, is_filled=False),
    "severe": _MarkStyle("^", BAD),
}
"""The later ones are drawn over the earlier ones."""


def draw_marks(axes: Axes, events: Iterable[Event], places: Sequence[float]) -> None:
    """Draw a mark at the bottom for each event; findings that may be intended have none."""
    marks = [(_kind(one), x) for one, x in zip(events, places, strict=True)]
    for kind, style in STYLES.items():
        x = [place for of, place in marks if of == kind]
        if x:
            axes.plot(
                x,
                [0.0] * len(x),
                style.marker,
                color=style.colour,
                markerfacecolor=style.colour if style.is_filled else "white",
                markersize=style.size,
                clip_on=False,
                transform=axes.get_xaxis_transform(),
                zorder=3,
            )


def _kind(event: Event) -> str:
    if event.kind == ALERT:
        return alert_of(event).severity
    if event.kind == OUTPUT:
        return event.kind  # which has no mark
    return event.kind if event.kind in ("checkpoint", "look") else "done"
