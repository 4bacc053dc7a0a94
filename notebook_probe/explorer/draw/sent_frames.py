"""Frames of the views: drawn when something has changed, sent when the last one is painted."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

# The views of this package are registered as they are imported.
from notebook_probe.explorer.draw import heat as heat
from notebook_probe.explorer.draw import vectors as vectors
from notebook_probe.explorer.draw.drawing import Room
from notebook_probe.explorer.draw.increments import Increments
from notebook_probe.explorer.draw.lines import lines as lines
from notebook_probe.explorer.draw.view import VIEWS
from notebook_probe.explorer.messages.frames import Frame
from notebook_probe.explorer.messages.selection import PanelSelection
from notebook_probe.explorer.messages.view_registry import ViewsPresent
from notebook_probe.explorer.yield_io import yield_io
from notebook_probe.record.format.source import Source

__all__ = ["Send", "SentFrames"]

Send: TypeAlias = Callable[[Mapping[str, Any], list[memoryview]], None]


class SentFrames:
    """Draw the views that are drawn at every refresh, and send the frames of all views.

    Parameters
    ----------
    source : Source
    views_present : ViewsPresent
        Painted content and size of each view.
    lock : Lock
        Held while `views_present` is read or changed: messages arrive on another thread.
    problem : callable
        Shows an error of a view in the panel, with where it happened.

    Attributes
    ----------
    has_more : bool
        The last frame that was sent is not all there is to draw yet.
    is_held_up : bool
        Something else was chosen, and is drawn once the last frame is painted.
    """

    def __init__(
        self,
        source: Source,
        views_present: ViewsPresent,
        lock: threading.Lock,
        problem: Callable[[Exception, str], None],
    ) -> None:
        self._source, self._views_present = source, views_present
        self._lock, self._problem = lock, problem
        VIEWS.load()
        self._plots = {one.name: one.painter() for one in VIEWS.values() if one.every_refresh}
        self._drawn: dict[str, object] = {}
        self._increments = Increments()
        self._sent_of: dict[str, PanelSelection] = {}
        self.has_more = self.is_held_up = False

    def begin(self) -> None:
        """Begin a refresh."""
        self.has_more = self.is_held_up = False

    def forget(self) -> None:
        """Draw every view again, and send whole frames: a new view has none."""
        self._increments.forget()
        self._drawn.clear()

    def publish(self, send: Send, revision: int, selection: PanelSelection) -> None:
        """Draw the views that are drawn at every refresh, and send what is new."""
        for kind in self._plots:
            self._publish(send, kind, revision, selection)

    def _publish(self, send: Send, kind: str, revision: int, selection: PanelSelection) -> None:
        """Draw and send one view, if it has changed and its last frame is painted."""
        now_s = time.monotonic()
        with self._lock:
            width = self._views_present.width(kind)
            key = (revision, selection, width)
            if self._drawn.get(kind) == key:
                return
            is_waited_for = self._sent_of.get(kind) != selection
            # The last frame is not painted yet: a slow browser gets fewer frames, not a queue of
            # them.
            if not self._views_present.ready(kind, now_s):
                self.is_held_up |= is_waited_for
                return
            # Noted before drawing: a view that fails is not drawn again until something changes.
            self._drawn[kind], self._sent_of[kind] = key, selection
        try:
            frame = self._plots[kind].frame(self._source, selection, width)
        except Exception as error:  # a view may be a user's; the other views continue
            self._problem(error, f"view {kind!r}")
            return
        if frame is None:
            return
        self.send(send, kind, frame)
        if is_waited_for:
            yield_io()
        if frame[0].get("averaged", 1.0) < 1.0:
            self._drawn.pop(kind, None)  # more is to be drawn, whether or not the source grows
            self.has_more = True

    def room(self, kind: str) -> Room | None:
        """Return the size of a view; None if it is hidden or its last frame has not arrived."""
        with self._lock:
            present = self._views_present
            if not (present.shows(kind) and present.ready(kind, time.monotonic())):
                return None
            return present.width(kind), present.pixel_ratio

    def send(self, send: Send, kind: str, frame: Frame) -> None:
        """Send a frame of a view, or only what is new in it."""
        with self._lock:
            goes_on = not self._views_present.waits_for(kind)
            seq = self._views_present.sends(kind, time.monotonic())
        send(*self._increments.of(kind, ({**frame[0], "seq": seq}, frame[1]), goes_on))
