"""The registered views of one panel: their list, folds and header rows."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from notebook_probe.explorer.draw.drawing import Drawing, PanelState, Room, Run, Show
from notebook_probe.explorer.draw.view import VIEWS
from notebook_probe.explorer.messages.wire import VERSION, EsmMessage, ViewsMessage
from notebook_probe.record.format.source import Source

__all__ = ["Drawings"]


class Drawings:
    """A `Drawing` of each view that has its own pace; called from the refresher's thread.

    Parameters
    ----------
    clock, run
        See `Drawing`.
    """

    def __init__(
        self,
        source: Source,
        clock: Callable[[], float] = time.monotonic,
        run: Run | None = None,
    ) -> None:
        self._source, self._clock, self._run = source, clock, run
        self._drawings: dict[str, Drawing] = {}
        self._folded: frozenset[str] = frozenset()
        self._known: dict[str, Drawing] = {}  # whose ES modules the panel has
        self._sent_rows: object = None
        self._n_hellos = 0

    def fold(self, name: str, folded: bool) -> None:
        """Fold a view, so that only its name is shown and it is not drawn; or unfold it."""
        self._folded = self._folded | {name} if folded else self._folded - {name}

    def news(self, moment: PanelState) -> Iterator[Mapping[str, Any]]:
        """Yield the messages that views do not have yet: header rows and ES modules."""
        self._renew()
        if moment.n_hellos != self._n_hellos:
            self._n_hellos, self._sent_rows, self._known = moment.n_hellos, None, {}
        halted, n_views = moment.halted, len(self._unfolded)
        rows = [
            one.row(name in self._folded, halted, n_views) for name, one in self._drawings.items()
        ]
        if rows != (self._sent_rows or []):
            yield ViewsMessage(v=VERSION, type="views", rows=rows)
        self._sent_rows = rows
        for name, drawing in self._drawings.items():
            # By identity: a view registered again under its name may have another ES module.
            if self._known.get(name) is not drawing:
                yield EsmMessage(v=VERSION, type="esm", view=name, text=drawing.view.esm)
        self._known = {**self._drawings}

    def draw(self, moment: PanelState, room: Callable[[str], Room | None], show: Show) -> None:
        """Draw the visible views that are due.

        Parameters
        ----------
        room : callable
            Size of a view on the screen; None while it is hidden.
        """
        unfolded = self._unfolded
        for drawing in unfolded:
            if (place := room(drawing.view.name)) is not None:
                drawing.offer(moment, place, len(unfolded), show)

    def close(self) -> None:
        """End their threads; the next `news` begins again."""
        for drawing in self._drawings.values():
            drawing.close()
        self._drawings = {}

    @property
    def _unfolded(self) -> list[Drawing]:
        return [one for name, one in self._drawings.items() if name not in self._folded]

    def _renew(self) -> None:
        """Add the views registered since the last call; one with the same name is replaced."""
        for view in VIEWS.values():
            known = self._drawings.get(view.name)
            if view.every_refresh or (known is not None and known.view is view):
                continue
            if known is not None:
                known.close()
            self._drawings[view.name] = Drawing(view, self._source, self._clock, self._run)
