"""The Explorer: a panel under the cell that shows a source and steers its run where it is live."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from functools import partial

from IPython.core.getipython import get_ipython
from IPython.display import display

from notebook_probe.explorer.conversation import PanelSession
from notebook_probe.explorer.kernel import kernel_route
from notebook_probe.explorer.messages.parse import parse
from notebook_probe.explorer.panel import Panel
from notebook_probe.explorer.refresher import Refresher
from notebook_probe.explorer.save.saved_picture import SavedPicture
from notebook_probe.record.format.source import Source
from notebook_probe.run.attach.requests import Controls

__all__ = ["Explorer"]

HALTED = ("paused", "finished", "failed")

_shown: set[Explorer] = set()
"""Panels of opened records: nobody else holds them, yet they live until they are closed.

A live run holds its own panel, so that both end together when the run is dropped.
"""

_everyone: weakref.WeakSet[Explorer] = weakref.WeakSet()
"""All that have a panel; a notebook keeps the results of its cells, so they outlive their names."""


class Explorer:
    """A panel on one source; ``with`` closes it at the end.

    Parameters
    ----------
    source : Source
        A run or an opened record.
    controls : Controls, optional
        The live run's side for requests; without it the panel only shows.

    Examples
    --------
    >>> explorer = nbp.open_run("runs/first.zarr").explore()  # doctest: +SKIP
    >>> explorer.close()  # doctest: +SKIP
    """

    def __init__(self, source: Source, controls: Controls | None = None) -> None:
        self._source, self._controls = source, controls
        self._conversation = PanelSession(source, controls)
        self._snapshot = SavedPicture(source)
        self._panel: Panel | None = None
        self._refresher: Refresher | None = None
        self._leave_run: Callable[[], None] | None = None
        self._places: dict[str, int] = {}  # cell -> which execution of it shows a view
        self._last_state = ""

    def show(self) -> None:
        """Show the panel under this cell; again, and it is a second view of the same panel.

        Outside a notebook it prints one line instead.
        """
        shell, route = get_ipython(), kernel_route()
        if shell is None or route.name == "no kernel":
            print(f"{self._source.name}: there is no notebook here to show a panel in")
            return
        panel = self._panel or self._open()
        self._take_place(route.cell, shell.execution_count)
        display(panel)
        self._snapshot.place()
        route.verify(panel.comm)
        self._conversation.expect_views(blind=route.name == "after the cell")

    def close(self) -> None:
        """Remove the panel from page and kernel and leave its picture; twice is fine."""
        if self._refresher is None:
            return
        self._guarded(self._take_picture, "the last picture")
        if self._leave_run is not None:
            self._leave_run()
        self._refresher.close()
        self._conversation.close()
        self._refresher = self._panel = None
        self._places.clear()
        _everyone.discard(self)
        _shown.discard(self)

    @property
    def closed(self) -> bool:
        """There is no panel: it was closed, or never shown."""
        return self._panel is None

    def __enter__(self) -> Explorer:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<Explorer of {self._source.name!r}{', closed' if self.closed else ''}>"

    def _ipython_display_(self) -> None:
        shell = get_ipython()
        if shell is None or shell.execution_count not in self._places.values():
            self.show()

    # ------------------------------------------------------- called by the panel, in any thread

    def receive(self, content: object) -> None:
        """Take in a message from a view; an exception becomes a line in the panel."""
        self._guarded(lambda: self._receive(content), "a click")

    def _receive(self, content: object) -> None:
        message = parse(content)
        if message["type"] == "ping":
            kernel_route().answered(message["token"])
            return
        self._conversation.hear(message)
        if message["type"] != "ack":
            self._wake()

    # --------------------------------------------------------------- called by the refresher

    def refresh(self) -> None:
        """Tell the views what is new; take the picture when it is time."""
        self._guarded(self._refresh, "refreshing the panel")

    def _refresh(self) -> None:
        panel = self._panel
        if panel is None:
            return
        status = self._conversation.status()
        self._conversation.tell(panel.send, kernel_route().name, status)
        halted = status.state in HALTED and status.state != self._last_state
        self._last_state = status.state
        if halted or (status.state == "training" and self._snapshot.due):
            self._take_picture()

    # ------------------------------------------------------------------------------- the rest

    def _wake(self) -> None:
        refresher = self._refresher
        if refresher is not None:
            refresher.wake()

    def _take_place(self, cell: str, execution: int) -> None:
        """Stand in this cell; what it showed before is gone, and a panel left nowhere is closed."""
        for other in list(_everyone):
            if cell and other._places.get(cell, execution) < execution:
                del other._places[cell]
                if not other._places and other is not self:
                    other.close()
        self._places[cell] = execution

    def _open(self) -> Panel:
        """Make the panel and everything that keeps it alive while cells run."""
        route = kernel_route()
        panel = self._panel = Panel(self.receive)
        _everyone.add(self)
        route.carry(panel.comm)
        forget_cells = route.on_cell_end(_weakly(self._cell_ended))
        if self._controls is None:
            _shown.add(self)
        else:
            self._leave_run = self._controls.each_boundary(route.pump)
        self._refresher = Refresher(self, partial(_end, panel, forget_cells))
        return panel

    def _cell_ended(self) -> None:
        """Close the last step of a training cell, and leave its picture in the notebook.

        Here, in the cell's own thread: what a notebook runner is sent later it does not keep.
        """
        self._guarded(self._finish_cell, "the end of the cell")

    def _finish_cell(self) -> None:
        if self._controls is not None:
            self._controls.settle()
        status = self._conversation.status()
        elsewhere = status.background or (self._controls is None and status.state == "training")
        if not (elsewhere and self._snapshot.taken):
            self._take_picture()

    def _take_picture(self) -> None:
        self._snapshot.take(self._conversation.look())

    def _guarded(self, act: Callable[[], None], where: str) -> None:
        """Run a callback; nobody would see what it raises anywhere but in the panel."""
        try:
            act()
        except Exception as error:
            self._conversation.problem(error, where)


def _weakly(method: Callable[[], None]) -> Callable[[], None]:
    """The bound method without its hold on the object; nothing once that is gone."""
    reference = weakref.WeakMethod(method)

    def call() -> None:
        alive = reference()
        if alive is not None:
            alive()

    return call


def _end(panel: Panel, forget_cells: Callable[[], None]) -> None:
    """What is left to do when the Explorer is closed, or gone."""
    forget_cells()
    kernel_route().forget(panel.comm)
    panel.close()
