"""One registered view of one panel, drawn in its own thread and at its own pace."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TypeAlias

from notebook_probe.explorer.draw.failure import LastFailure
from notebook_probe.explorer.draw.pace import Pace
from notebook_probe.explorer.draw.view import Painter, View
from notebook_probe.explorer.draw.worker import Worker
from notebook_probe.explorer.messages.frames import Frame
from notebook_probe.explorer.messages.selection import PanelSelection
from notebook_probe.explorer.messages.wire import ViewRow
from notebook_probe.record.format.source import Source

__all__ = ["HALTED", "Drawing", "PanelState", "Room", "Show"]

HALTED = ("paused", "finished", "failed")
"""Run states in which no training can be delayed by a drawing."""

Room: TypeAlias = tuple[int, float]
"""Width in CSS pixels, pixels of the screen per CSS pixel."""
Show: TypeAlias = Callable[[str, Frame], None]
Run: TypeAlias = Callable[[Callable[[], None]], None]


@dataclass(frozen=True, slots=True)
class PanelState:
    """State of the panel at one refresh."""

    revision: int
    selection: PanelSelection
    state: str
    n_hellos: int
    """Number that changes when a new view has connected."""

    @property
    def halted(self) -> bool:
        return self.state in HALTED


class Drawing:
    """Draw a view when there is something new and its pace allows it; see `offer`.

    Parameters
    ----------
    clock : callable
        Seconds, for its pace.
    run : callable, optional
        Runs a task; default: in a new thread.
    """

    def __init__(
        self,
        view: View,
        source: Source,
        clock: Callable[[], float] = time.monotonic,
        run: Run | None = None,
    ) -> None:
        self.view = view
        self._source = source
        self._pace = Pace(clock)
        self._worker = Worker(f"notebook_probe view {view.name}")
        self._run = run or self._worker.do
        self._painter: Painter | None = None
        self._busy = self._closed = False
        self._revision = -1
        self._chosen: object = None
        self._failure = LastFailure()

    def offer(self, moment: PanelState, room: Room, n_views: int, show: Show) -> None:
        """Draw this moment, if it is time; returns at once.

        Parameters
        ----------
        n_views : int
            Number of views that share the time for drawing.
        show : callable
            Brings the frame to the panel.
        """
        chosen = (moment.selection, room, moment.n_hellos)
        if chosen == self._chosen:
            # A growing run is drawn at the view's pace, a click at once.
            # A paused run has time, so that its picture may be exact at once.
            rested = moment.halted or self._pace.rested(n_views)
            if moment.revision == self._revision or not rested:
                return
        # The next refresh offers a newer moment anyway, so that none is queued.
        if self._busy:
            return
        # Noted before the task starts, which clears the flag at its end.
        self._busy, self._chosen, self._revision = True, chosen, moment.revision
        self._run(partial(self._draw, moment.selection, room, show))

    def row(self, folded: bool, halted: bool, n_views: int) -> ViewRow:
        """Return the header row of the view."""
        cost_s = self._pace.cost_s
        known = cost_s is not None and not halted
        return {
            "name": self.view.name,
            "summary": self.view.summary,
            "folded": folded,
            "cost_s": cost_s,
            "every_s": self._pace.rest_s(n_views) if known else None,
            "error": self._failure.text,
            "where": self._failure.where,
            "n_errors": self._failure.count,
        }

    def close(self) -> None:
        """Show nothing any more; a drawing under way is not waited for."""
        self._closed = True
        self._worker.close()

    def _draw(self, selection: PanelSelection, room: Room, show: Show) -> None:
        # CPU time: a drawing that waits for the GIL of a training does not slow it down.
        begun_s = time.thread_time()
        try:
            self._painter = self._painter or self.view.painter()
            frame = self._painter.frame(self._source, selection, *room)
            if frame is not None and not self._closed:
                show(self.view.name, frame)
            self._failure = LastFailure()
        except BaseException as error:  # a user's code, in a thread that must survive
            self._failure = self._failure.followed_by(error)
        finally:
            # Failures count: a view that raises after ten seconds must not try again at each
            # refresh.
            self._pace.drew(time.thread_time() - begun_s)
            self._busy = False
