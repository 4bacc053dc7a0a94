"""The line that was left for a branch: its alerts, its series and its heat map from there on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar

from notebook_probe.explorer.draw.heat import Heat
from notebook_probe.explorer.draw.lines.lines import Lines
from notebook_probe.explorer.messages.alert_rows import AlertMessages
from notebook_probe.explorer.messages.frames import Frame
from notebook_probe.explorer.messages.selection import PanelSelection
from notebook_probe.explorer.parts.left_line import left_events, left_of, starts_of
from notebook_probe.explorer.parts.part import Part, Seen
from notebook_probe.record.views.xarray_views import RunSource
from notebook_probe.run.controls import Controls

__all__ = ["ParentBranch", "alerts_of", "named", "since"]

NO_ALERTS: Mapping[str, Any] = {"rows": [], "findings": []}
WIDTH = 700
"""Width in pixels; it is drawn faintly behind the present branch."""


class ParentBranch(Part):
    """Frames of the parent branch, drawn again when the selection changes."""

    name: ClassVar = "left"

    def __init__(self, source: RunSource, controls: Controls | None) -> None:
        super().__init__(source, controls)
        self._lines, self._heat = Lines(), Heat()
        self._selection: PanelSelection | None = None
        self._sent: PanelSelection | None = None
        self._left: RunSource | None = None
        self._alerts: Mapping[str, Any] = NO_ALERTS

    def state(self, seen: Seen) -> Mapping[str, Any] | None:
        self._selection = seen.selection
        left = left_of(self._source, self._controls)
        if left is not self._left:  # another line, which nothing is added to any more
            self._left, self._sent = left, None
            self._alerts = alerts_of(left, self._source)
        return self._alerts

    def forget(self) -> None:
        self._sent = None

    def frames(self) -> list[Frame]:
        left, selection = self._left, self._selection
        if left is None or selection is None or selection == self._sent:
            return []
        fork = starts_of(self._source)[-1]
        frames = [named("left_heat", self._heat.frame(left, selection, WIDTH))]
        lines = self._lines.frame(left, since(fork, selection), WIDTH)
        frames.append(named("left_lines", lines))
        if lines[0]["averaged"] >= 1.0:  # else there is more to come
            self._sent = selection
        return [frame for frame in frames if frame is not None]


def alerts_of(left: RunSource | None, source: RunSource) -> Mapping[str, Any]:
    """Return the alerts of the parent branch, as rows and findings."""
    if left is None:
        return NO_ALERTS
    message = AlertMessages().message(left_events(left, source))
    return (
        NO_ALERTS if message is None else {"rows": message["rows"], "findings": message["findings"]}
    )


def since(fork: int, selection: PanelSelection) -> PanelSelection:
    """Return the same selection from a step on."""
    low, high = selection.window or (0.0, float("inf"))
    return replace(selection, window=(max(low, float(fork)), max(high, float(fork))))


def named(kind: str, frame: Frame | None) -> Frame | None:
    """Return the frame as a message of another type."""
    return None if frame is None else ({**frame[0], "type": kind}, frame[1])
