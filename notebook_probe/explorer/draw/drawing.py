"""One registered view of one panel: drawn in a thread of its own, at its own pace."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TypeAlias

from notebook_probe.explorer.draw.failure import Failure
from notebook_probe.explorer.draw.pace import Pace
from notebook_probe.explorer.draw.view import Painter, View
from notebook_probe.explorer.draw.worker import Worker
from notebook_probe.explorer.messages.selection import PanelSelection
from notebook_probe.explorer.messages.wire import Frame, ViewRow
from notebook_probe.record.format.source import Source

__all__ = ["HALTED", "Drawing", "Moment", "Room", "Show"]

HALTED = ("paused", "finished", "failed")
"""Nothing is trained that a drawing could hold up."""

Room: TypeAlias = tuple[int, float]
"""Width in CSS pixels, pixels of the screen per CSS pixel."""
Show: TypeAlias = Callable[[str, Frame], None]
Run: TypeAlias = Callable[[Callable[[], None]], None]


@dataclass(frozen=True, slots=True)
class Moment:
    """What there is to draw at one refresh of the panel."""

    revision: int
    selection: PanelSelection
    state: str
    n_hellos: int
    """Changes when somebody has come who has seen nothing yet."""

    @property
    def halted(self) -> bool:
        return self.state in HALTED


class Drawing:
    """Draws when there is something new and its pace allows it; `offer` is called at each refresh.

    Parameters
    ----------
    clock : callable
        Seconds, for its pace.
    run : callable, optional
        Runs a task; a thread of its own unless given.
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
        self._failure = Failure()

    def offer(self, moment: Moment, room: Room, n_views: int, show: Show) -> None:
        """Draw this moment, if it is time; returns at once.

        Parameters
        ----------
        n_views : int
            How many share what drawing may take.
        show : callable
            Brings the frame to the panel.
        """
        chosen = (moment.selection, room, moment.n_hellos)
        if chosen == self._chosen:
            rested = moment.halted or self._pace.rested(n_views)
            if moment.revision == self._revision or not rested:
                return
        if self._busy:
            return
        self._busy, self._chosen, self._revision = True, chosen, moment.revision
        self._run(partial(self._draw, moment.selection, room, show))

    def row(self, folded: bool, halted: bool, n_views: int) -> ViewRow:
        """What stands above it."""
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
        begun_s = time.thread_time()
        try:
            self._painter = self._painter or self.view.painter()
            frame = self._painter.frame(self._source, selection, *room)
            if frame is not None and not self._closed:
                show(self.view.name, frame)
            self._failure = Failure()
        except BaseException as error:  # anybody's code, in a thread that has to live on
            self._failure = self._failure.followed_by(error)
        finally:
            self._pace.drew(time.thread_time() - begun_s)
            self._busy = False
