"""Panel of a run or a record: its widget, its refresher, and the controls of a live run."""

from __future__ import annotations

import os
import warnings
import weakref
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from typing import TypeAlias, TypeVar

from notebook_probe.alerts import Alert
from notebook_probe.errors import ProbeError, RecordWarning
from notebook_probe.explorer import one_file
from notebook_probe.explorer.conversation import PanelSession
from notebook_probe.explorer.draw.drawing import HALTED
from notebook_probe.explorer.draw.worker import Worker
from notebook_probe.explorer.explorer import Explorer
from notebook_probe.explorer.handed_on.package import Looked, Packer
from notebook_probe.explorer.handed_on.saved_panel import SavedPanel
from notebook_probe.explorer.kernel import KernelRoute, kernel_route
from notebook_probe.explorer.long_turns import LongTurns
from notebook_probe.explorer.messages.from_view import FromView
from notebook_probe.explorer.messages.selection import MOST_OTHERS
from notebook_probe.explorer.messages.wire import TicketMessage
from notebook_probe.explorer.notebooks.absent import say_no_notebook
from notebook_probe.explorer.parse import parse
from notebook_probe.explorer.refresher import Refresher
from notebook_probe.explorer.save.saved_picture import SavedPicture
from notebook_probe.explorer.saved_views import ViewFile
from notebook_probe.record.views.xarray_views import RunSource
from notebook_probe.run.controls import Controls

__all__ = ["Panel"]

FREQUENT = ("ack", "pointed", "moved")
"""Messages that come many times a second and can wait for the next refresh."""

CellError: TypeAlias = BaseException | None
Given = TypeVar("Given")
Found = TypeVar("Found")

_shown: set[Panel] = set()
"""Panels of opened records: the only references that keep them alive until they are closed.

A live run holds its own panel, so that both end together when the run is dropped.
"""

_everyone: weakref.WeakSet[Panel] = weakref.WeakSet()
"""All open panels; a notebook keeps the results of its cells, so they outlive their names."""


class Panel:
    """Panel of one source, for the code that shows it; users have its `explorer`.

    Parameters
    ----------
    source : RunSource
        A run or an opened record.
    controls : Controls, optional
        The live run's side for requests; without it the panel only shows.
    """

    def __init__(self, source: RunSource, controls: Controls | None = None) -> None:
        self._source, self._controls = source, controls
        self._session = PanelSession(source, controls)
        self._snapshot = SavedPicture(source, self._keep_picture)
        self._packer = Packer(source, controls)
        self._saved = SavedPanel(self._packer, self._keep_package)
        # Pictures have their own thread, as drawing one takes longer than a refresh.
        self._beside = Worker("notebook_probe picture")
        self._widget: Explorer | None = None
        self._widget_id = ""
        self._refresher: Refresher | None = None
        self._long_turns: LongTurns | None = None
        self._leave_run: list[Callable[[], None]] = []
        self._next: tuple[RunSource, Controls | None] | None = None
        self._places: dict[str, int] = {}  # cell -> which execution of it shows a view
        self._last_state = ""
        self._route = kernel_route()
        self._restore()

    @property
    def explorer(self) -> Explorer:
        """The widget, to be placed among others; it is not shown yet, but opened."""
        if self._widget is not None and self._widget.closed:
            self.close()  # by marimo, as the cell that made it runs again
        return self._widget or self._open()

    def show(self) -> Explorer:
        """Show the panel under this cell; again, and it is a second view of the same panel.

        Outside a notebook it prints one line instead.
        """
        route = self._route
        if route.name == "no kernel":
            say_no_notebook(self._source.name)
            return self._closed_widget()
        explorer = self.explorer
        self._take_place(route.cell, route.execution)
        route.display(explorer)
        self._snapshot.place()
        self._saved.place()
        route.verify(explorer.comm)
        is_blind = route.name == "after the cell"
        self._session.expect_views(blind=is_blind)
        if is_blind:
            self._saved.wait(self._source.name)
        return explorer

    def to_html(self, path: str | os.PathLike[str], view: str = "") -> Path:
        """Write the selection, or a saved view, into one file; needs no widget, shown or not."""
        looked = one_file.looking_at(self._looked(), self._source, view)
        return one_file.write(self._packer, looked, self._session.head(), path)

    def show_view(self, name: str) -> None:
        """Show a saved view in all views of the panel.

        Raises `UnknownNameError` where none is saved under this name.
        """
        view = ViewFile.of(self._source).view(name)
        self._session.receive(view.applied(self._session.look(), self._source).message())

    def _restore(self) -> None:
        """Show the saved view that this record showed last."""
        try:
            if name := ViewFile.of(self._source).last:
                self.show_view(name)
        except ProbeError as error:
            self._session.problem(error, "saved views")

    def compare(self, others: Sequence[str], grouped: bool) -> None:
        """Compare with other runs, as if they were ticked in the list of runs."""
        shown = tuple(others[:MOST_OTHERS])
        if len(others) > len(shown):
            text = f"{len(shown)} of {len(others)} other runs are shown: {', '.join(shown)}"
            warnings.warn(text, RecordWarning, stacklevel=3)
        self.choose("others", shown)
        self.choose("ratio_to", shown[0])
        self.choose("grouped", grouped)

    def show_once_in_a_cell(self) -> None:
        """Show it unless this cell has; its widget is often the cell's last value, too."""
        if self._route.execution not in self._places.values():
            self.show()

    def shows(self, explorer: Explorer) -> bool:
        """Return whether this is the panel's widget; a closed one is not."""
        return self._widget is explorer

    def go_over(self, source: RunSource, controls: Controls | None) -> None:
        """Show another source from now on, in all views; from any thread."""
        # One assignment: the refresher takes it over between two refreshes.
        self._next = source, controls
        while self._leave_run:
            self._leave_run.pop()()
        if self._refresher is None:
            self._take_over()
            return
        self._follow(controls)
        self._wake()

    def close(self) -> None:
        """Remove the panel from page and kernel and leave its picture; calling it twice is fine."""
        if self._refresher is None:
            return
        # Before anything is closed: it needs the session and the source.
        self._guarded(self._take_picture, "the last picture")
        while self._leave_run:
            self._leave_run.pop()()
        self._refresher.close()
        if self._long_turns is not None:
            self._long_turns.close()
        self._beside.close()
        self._session.close()
        self._refresher = self._widget = None
        self._places.clear()
        _everyone.discard(self)
        _shown.discard(self)

    @property
    def closed(self) -> bool:
        """True if there is no widget: it was closed, or never opened."""
        return self._widget is None

    def __enter__(self) -> Panel:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # ------------------------------------------------------ called by the widget, in any thread

    def check(self, name: str, value: object) -> object:
        """Refuse what cannot be looked at, before a trait takes it; aliases become names."""
        return self._session.check(name, value)

    def showing(self, alert: Alert) -> dict[str, object]:
        """Return the traits that show an alert."""
        return self._session.showing(alert)

    def choose(self, name: str, value: object) -> None:
        """Look at something else, as the trait of this name says."""
        self._session.choose(name, value)
        self._wake()

    def receive(self, content: object) -> None:
        """Take in a message from a view; an exception becomes a line in the panel."""
        try:
            message = parse(content)
            if message["type"] == "ping":
                self._route.answered(message["token"])
                return
            answer = self._session.receive(message)
            if answer is not None and self._widget is not None:
                self._widget.send(answer, [])
        except Exception as error:
            # A message comes from a browser; no content of it may end the widget's thread.
            self._session.problem(error, "a click")
            self._wake()
            return
        if self._session.is_held_up or self._is_urgent(message, answer):
            # One refresh answers all but what is asked of the run.
            self._wake(is_used=answer is not None)

    def _is_urgent(self, message: FromView, answer: TicketMessage | None) -> bool:
        """Return whether to refresh now: a queued click is news only once the run applies it."""
        waits = answer is not None and answer["state"] == "queued"
        return not waits and message["type"] not in FREQUENT

    # --------------------------------------------------------------- called by the refresher

    def refresh(self) -> None:
        """Send the views what is new; take the picture when it is time."""
        turn = self._long_turns.turn() if self._long_turns is not None else nullcontext()
        with turn:
            self._guarded(self._refresh, "refreshing the panel")

    def _refresh_takes_long(self, seconds: float) -> bool:
        """Send what needs no reading; return whether there is a panel."""
        explorer = self._widget
        if explorer is None:
            return False
        tell = partial(self._session.publish_while_reading, explorer.send, self._route.name)
        self._guarded(partial(tell, seconds), "a long refresh")
        return True

    def _refresh(self) -> None:
        self._take_over()
        explorer = self._widget
        if explorer is None:
            return
        head = self._session.head()
        self._session.publish(explorer.send, self._route.name, head)
        explorer.follow(**self._session.looked_at)
        if self._session.has_more and head.state in HALTED:
            self._wake(is_used=False)  # no training would be slowed down
        rests = head.state not in ("training", self._last_state or head.state)
        self._last_state = head.state
        if rests or (head.state == "training" and self._snapshot.due):
            self._snapshot.postpone()
            self._beside.do(self._take_picture_beside)

    # ------------------------------------------------------------------------------- the rest

    def _take_over(self) -> None:
        """Begin with the source that is to be shown, between two refreshes."""
        if self._next is None:
            return
        (self._source, self._controls), self._next = self._next, None
        # The new session takes over views and selection before the old one closes.
        before = self._session
        self._session = PanelSession(self._source, self._controls, before)
        before.close()
        self._snapshot.draw_of(self._source)
        self._packer = Packer(self._source, self._controls)
        self._saved.pack_with(self._packer)

    def _wake(self, *, is_used: bool = True) -> None:
        refresher = self._refresher
        if refresher is not None:
            refresher.wake(is_used=is_used)

    def _take_place(self, cell: str, execution: int) -> None:
        """Claim a cell; panels shown there before are removed, and closed if shown nowhere else."""
        # A copy: closing a panel removes it from the set.
        for other in list(_everyone):
            if cell and other._places.get(cell, execution) < execution:
                del other._places[cell]
                if not other._places and other is not self:
                    other.close()
        self._places[cell] = execution

    def _open(self) -> Explorer:
        """Make the widget and everything that keeps it alive while cells run."""
        route = self._route
        explorer = self._widget = Explorer(self, self._source.name)
        self._widget_id = explorer.model_id
        _everyone.add(self)
        route.carry(explorer.comm)
        # Weakly: the kernel must not keep a panel without other references.
        forget_cells = route.on_cell_end(_weakly(self._cell_ended))
        self._refresher = Refresher(self, partial(_end, explorer, route, forget_cells))
        if not self._is_here:
            # Nothing else keeps the panel of an opened record; that of a run is kept by the run.
            _shown.add(self)
            self._long_turns = LongTurns(_weakly(self._refresh_takes_long))
        self._follow(self._controls)
        return explorer

    @property
    def _is_here(self) -> bool:
        """True if this process trains the run."""
        return self._controls is not None and self._controls.is_here

    def _follow(self, controls: Controls | None) -> None:
        """Subscribe to the steps of a live run, and to its answers."""
        if controls is not None and self._refresher is not None:
            self._leave_run = [controls.follow(), controls.each_news(self._refresher.wake)]
            if self._route.is_pumped:  # else steps in which nothing is due stay at rest
                self._leave_run.append(controls.each_boundary(self._route.pump))

    def _closed_widget(self) -> Explorer:
        explorer = Explorer(self, self._source.name)
        explorer.remove()
        return explorer

    def _cell_ended(self, error: BaseException | None) -> None:
        """Close the last step of a training cell, and leave its picture in the notebook.

        In the cell's thread, as a notebook runner drops whatever arrives after the cell.
        """
        self._guarded(partial(self._finish_cell, error), "the end of the cell")

    def _finish_cell(self, error: BaseException | None) -> None:
        if self._controls is not None:
            self._controls.settle(error)
        head = self._session.head()
        elsewhere = head.background or (not self._is_here and head.state == "training")
        if not (elsewhere and self._snapshot.exists):
            self._take_picture()

    def _keep_picture(self, picture: str) -> None:
        if self._widget is not None:
            self._widget.keep(picture)

    def _keep_package(self, text: str) -> None:
        if self._widget is not None:
            self._widget.keep_package(text)

    def _take_picture(self) -> None:
        """Store the selection in the notebook: a picture, and the panel without its kernel."""
        looked = self._looked()
        self._snapshot.take(looked.selection)
        self._saved.take(looked, self._session.head(), self._widget_id)

    def _take_picture_beside(self) -> None:
        """Take the picture in a thread: it takes tenths of a second, and no click should wait."""
        if not self.closed:
            self._guarded(self._take_picture, "the picture")

    def _looked(self) -> Looked:
        selection = self._session.look()
        return Looked(selection, self._session.homes)

    def _guarded(self, act: Callable[[], None], where: str) -> None:
        """Run a callback; an error in it would be visible nowhere but in the panel."""
        try:
            act()
        except Exception as error:
            self._session.problem(error, where)


def _weakly(method: Callable[[Given], Found]) -> Callable[[Given], Found | None]:
    """Return the method bound weakly to its object; it does nothing once that was collected."""
    # The notebook, and a thread, keep callbacks for longer than a panel is used.
    reference = weakref.WeakMethod(method)

    def call(given: Given) -> Found | None:
        alive = reference()
        return alive(given) if alive is not None else None

    return call


def _end(explorer: Explorer, route: KernelRoute, forget_cells: Callable[[], None]) -> None:
    """Clean up when the panel is closed or garbage collected."""
    forget_cells()
    route.forget(explorer.comm)
    explorer.remove()
