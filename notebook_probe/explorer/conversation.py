"""The session of a panel: what its views send and receive. Knows messages, not widgets."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, cast

from notebook_probe.alerts import Alert
from notebook_probe.errors import StoreSilentError, UnknownNameError, near
from notebook_probe.explorer.draw.drawing import PanelState
from notebook_probe.explorer.draw.drawings import Drawings
from notebook_probe.explorer.draw.sent_frames import Send, SentFrames
from notebook_probe.explorer.draw.what_has_values import COUNTS, RecordedModules
from notebook_probe.explorer.messages import from_view, wire
from notebook_probe.explorer.messages.alert_rows import AlertMessages
from notebook_probe.explorer.messages.catalogue import PanelCatalogue
from notebook_probe.explorer.messages.clicks import REQUESTS, Clicks, greyed_controls
from notebook_probe.explorer.messages.defaults import Defaults
from notebook_probe.explorer.messages.looked_at import check
from notebook_probe.explorer.messages.model_message import ModelMessages
from notebook_probe.explorer.messages.opened_status import OpenedStatus
from notebook_probe.explorer.messages.probe_rows import probe_rows
from notebook_probe.explorer.messages.selection import N_COLOURS, PanelSelection
from notebook_probe.explorer.messages.shown_alert import showing
from notebook_probe.explorer.messages.status_message import PanelProblems, StatusMessages
from notebook_probe.explorer.messages.throttled import Throttled
from notebook_probe.explorer.messages.view_registry import ViewsPresent
from notebook_probe.explorer.parts.all_parts import CLICKS, RESTARTS, AllParts
from notebook_probe.explorer.parts.part import Seen
from notebook_probe.explorer.save.exports import FileExports
from notebook_probe.explorer.yield_io import yield_io
from notebook_probe.record.views.xarray_views import RunSource
from notebook_probe.run.controls import Controls
from notebook_probe.run.health.status import ProbeStatus, StatusHead

__all__ = ["PanelSession"]

READING = "reading the record"


class PanelSession:
    """The state that all views of one panel share.

    `receive` runs in the widget's thread: it passes a click to the run, puts everything else into a
    queue, and never waits. `publish` runs in the refresher's thread, the only one that reads the
    source, and acts on the received messages.
    """

    def __init__(
        self, source: RunSource, controls: Controls | None, before: PanelSession | None = None
    ) -> None:
        self._source, self._controls = source, controls
        self._inbox: queue.SimpleQueue[from_view.FromView] = queue.SimpleQueue()
        # Messages arrive on a thread of the kernel; the refresher's thread answers them.
        self._lock = threading.Lock()
        self._looking = threading.Lock()
        self._telling = threading.Lock()
        self._revision = 0
        self._last_head: StatusHead | None = None
        self._selection = PanelSelection()
        self._homes: dict[str, None] = {}
        self._defaults = Defaults()
        self._views_present = ViewsPresent()
        requests = REQUESTS | {kind: click.request for kind, click in CLICKS.items()}
        self._clicks = Clicks(controls, requests)
        self._puts = frozenset(requests)
        self._problems = PanelProblems()
        self._step, self._step_is_news = 0, False
        if before is not None:
            self._go_on(before)
        self._parts = AllParts(source, controls, self._problems.add)
        self._opened = OpenedStatus(source)
        self._catalogue = PanelCatalogue(source, controls)
        self._models = ModelMessages(source, controls, self._catalogue)
        self._statuses = StatusMessages(self._catalogue, controls is not None, self._opened.recent)
        self._alerts = AlertMessages()
        self._probes = Throttled(lambda: probe_rows(_probes(controls)))
        self._n_probes = 0
        self._recorded = RecordedModules()
        self._frames = SentFrames(source, self._views_present, self._lock, self.problem)
        self._drawings = Drawings(source)
        self._n_hellos = 0
        self._sent_selection: PanelSelection | None = None
        self._asked: list[from_view.ExportClick] = []
        self._exports = FileExports(source)
        self._handlers: dict[str, Callable[[Any], None]] = {
            "hello": self._on_hello,
            "visible": self._on_visible,
            "viewport": self._views_present.resized,
            "ack": self._views_present.painted,
            "selection": self._on_selection,
            "moved": self._on_moved,
            "fold": self._on_fold,
            "export": self._asked.append,
            "pointed": self._on_pointed,
            **self._parts.handlers,
        }

    def _go_on(self, before: PanelSession) -> None:
        """Take over the views, the selection and the clicks of the session before."""
        # A message may arrive while the session is replaced.
        with before._lock:
            self._inbox, self._views_present = before._inbox, before._views_present
            self._selection, self._defaults = before._selection, before._defaults
            self._step, self._problems = before._step, before._problems
        self._clicks.follow(before._clicks)

    def receive(self, message: from_view.FromView) -> wire.TicketMessage | None:
        """Take in what one view says; a click is answered at once."""
        if message["type"] in self._puts:
            # At once, not at the next refresh: the page shows that the click was received.
            return self._clicks.put(cast("from_view.Click", message))
        self._inbox.put(message)
        return None

    def expect_views(self, blind: bool) -> None:
        """Note whether there are views that cannot say hello while the cell runs."""
        with self._lock:
            self._views_present.expected = blind

    def problem(self, error: Exception, where: str) -> None:
        """Show an exception in the panel, the only place where the user sees it."""
        self._problems.add(error, where)

    def close(self) -> None:
        """Stop drawing: the panel is closed."""
        self._drawings.close()
        self._exports.close()

    def head(self) -> StatusHead:
        """Return the present state of the run."""
        if self._controls is not None:
            return self._controls.status_head()
        self._last_head = head = self._opened.head()
        return head

    def look(self) -> PanelSelection:
        """Read what was recorded since the last call, and return the selection to show."""
        # Not under the other lock: reading may wait for a disk, and clicks must not wait for that.
        with self._looking:
            for error in self._recorded.look(self._source):
                self.problem(error, READING)
        with self._lock:
            self._take_inbox()
            self._selection = self._with_defaults(self._selection)
            self._note_home()
            return self._selection

    @property
    def homes(self) -> list[str]:
        """The quantities that the heat map has shown, the last one last."""
        return [*self._homes]

    @property
    def has_more(self) -> bool:
        """True if the last frame that was sent is not all there is to draw yet."""
        return self._frames.has_more

    @property
    def is_held_up(self) -> bool:
        """True if something else was chosen, and is drawn once the last frame is painted."""
        return self._frames.is_held_up

    # --------------------------------------------------------------------------- from the traits

    @property
    def looked_at(self) -> dict[str, object]:
        """Values for the traits of the widget."""
        with self._lock:
            chosen, step = self._selection, self._step
        return {
            "home": chosen.home,
            "series": chosen.series,
            "window": chosen.window,
            "step": step,
            "rows": chosen.rows,
            "folds": chosen.folds,
            "others": chosen.others,
            "ratio_to": chosen.ratio_to,
            "aligned": chosen.aligned,
            "grouped": chosen.grouped,
            "apart": chosen.apart,
        }

    def check(self, name: str, value: Any) -> Any:
        """Return the value with recorded names of quantities.

        Raises `UnknownNameError` or ValueError for an invalid selection.
        """
        if name == "ratio_to":
            return self._checked_ratio(value)
        listed = self._controls.attachable() if self._controls is not None else ()
        return check(name, value, self._source, [one.name for one in listed])

    def choose(self, name: str, value: Any) -> None:
        """Look at something else, as one trait says."""
        with self._lock:
            if name == "step":
                self._step, self._step_is_news = value, True
                return
            self._choose(self._selection.looking_at(name, value))

    def _checked_ratio(self, run: str) -> str:
        with self._lock:
            others = self._selection.others
        if run and run not in others:
            raise UnknownNameError(f"no run {run!r} in the folder of this one; {near(run, others)}")
        return run

    def showing(self, alert: Alert) -> dict[str, object]:
        """Return the traits that show an alert."""
        selection = self.look()
        return showing(alert, self._recorded.modules, selection)

    # ------------------------------------------------------------------------------------ telling

    def publish(self, send: Send, route: str, head: StatusHead) -> None:
        """Send what is new to the visible views."""
        greyed = greyed_controls(head, self._controls is not None, self._puts, RESTARTS)
        self._frames.begin()
        with self._lock:
            self._take_inbox()
            self._clicks.look(greyed)
        self._publish_exports(send)
        if not self._views_present.present:
            return
        with self._lock:
            tickets = self._clicks.news()
        for ticket in tickets:  # before anything is read, which takes its time
            send(ticket, [])
            yield_io()
        revision = self._newest_revision()
        selection = self._looked()
        self._publish_chosen(send, head, selection)
        self._frames.publish(send, revision, selection)  # before what is not waited for
        self._publish_status(send, route, head, greyed)
        for part in self._parts.news(Seen(head, selection)):
            send(*part)
        self._publish_drawings(send, PanelState(revision, selection, head.state, self._n_hellos))

    def publish_while_reading(self, send: Send, route: str, wait_s: float) -> None:
        """Send the status and the state of clicks, from another thread than `publish`.

        A view takes a silent kernel to be busy; reading may wait long for a disk or a network.
        """
        head = self._last_head if self._controls is None else self._controls.status_head()
        if head is None:
            return
        self._problems.reads_long(wait_s)
        greyed = greyed_controls(head, self._controls is not None, self._puts, RESTARTS)
        with self._lock:
            self._clicks.look(greyed)
            present = self._views_present.present
        if present:
            self._publish_status(send, route, head, greyed)

    def _newest_revision(self) -> int:
        """Return the revision of the source, or the last one while it cannot be read."""
        try:
            self._revision = self._source.revision
            self._problems.has_read()
        except StoreSilentError as error:
            self.problem(error, READING)
        return self._revision

    def _publish_chosen(self, send: Send, head: StatusHead, selection: PanelSelection) -> None:
        """Send the model, the status and the selection, where they have changed."""
        with self._lock:
            if head.n_probes != self._n_probes:
                self._n_probes = head.n_probes
                self._probes.expire()
            model = self._models.message(self._probes.value().attached)
            is_known = selection == self._sent_selection
            self._sent_selection = selection
        if model is not None:
            send(model, [])
        if not is_known:
            send(selection.message(), [])

    def _publish_status(
        self, send: Send, route: str, head: StatusHead, greyed: Mapping[str, str]
    ) -> None:
        """Send the status and the alerts, where they have changed."""
        # Held while they are sent: each has what has changed since the one before.
        with self._telling:
            for message in self._status_messages(route, head, greyed):
                if message is not None:
                    send(message, [])

    def _status_messages(
        self, route: str, head: StatusHead, greyed: Mapping[str, str]
    ) -> Sequence[Mapping[str, Any] | None]:
        # Not held while sending, which may wait for the front end.
        with self._lock:
            if self._views_present.is_blind:
                self._statuses.forget()
            messages: list[Mapping[str, Any] | None] = [
                self._statuses.message(
                    head=head,
                    probes=self._probes.value(),
                    route=route,
                    recorded=self._recorded.modules,
                    logged=self._recorded.logged,
                    tickets=self._clicks.rows(),
                    greyed=greyed,
                    problems=self._problems.rows(),
                ),
                self._alerts.message(self._source.events),
            ]
            if self._step_is_news:
                # Sent once: a repeated message would move a view back while the user continues.
                messages.append({"v": wire.VERSION, "type": "pointed", "step": self._step})
                self._step_is_news = False
        return messages

    def _looked(self) -> PanelSelection:
        """Return `look`, or the last selection: the status is sent even if nothing can be read."""
        try:
            return self.look()
        except Exception as error:  # a record may be on a disk that has gone
            self.problem(error, READING)
            return self._selection

    def _publish_drawings(self, send: Send, moment: PanelState) -> None:
        for message in self._drawings.news(moment):
            send(message, [])
        if moment.selection.home or self._source.vectors:  # else there is nothing to draw
            self._drawings.draw(moment, self._frames.room, partial(self._frames.send, send))

    def _publish_exports(self, send: Send) -> None:
        """Make the files that were requested, and send those that are made."""
        with self._lock:
            asked = self._asked[:]
            self._asked.clear()
        for message in asked:
            self._exports.make(message["kind"], self._selection)
        for frame in self._exports.made():
            send(*frame)

    def _with_defaults(self, selection: PanelSelection) -> PanelSelection:
        """Fill in defaults where the user has not chosen yet."""
        recorded = self._recorded
        selection = self._defaults.fill(selection, recorded.modules, recorded.logged, COUNTS)
        for request in self._clicks.newly_attached():
            self._probes.expire()
            where = request.where or self._probes.value().places_of(request.quantity)
            name = self._source.recorded_name(request.quantity)
            if self._catalogue.is_vector(request.quantity):
                shown = selection.looking_at("home", name)
                self._defaults.chosen(selection, shown)
                selection = shown
            else:
                selection = selection.with_series(*((one, name) for one in where[:N_COLOURS]))
        return selection

    # ------------------------------------------------------------------------------------ hearing

    def _take_inbox(self) -> None:
        """Act on the received messages, in their order."""
        while not self._inbox.empty():
            message = self._inbox.get_nowait()
            self._handlers[message["type"]](message)

    def _on_hello(self, message: from_view.Hello) -> None:
        self._views_present.came(message["view"])
        known = (self._models, self._statuses, self._alerts, self._parts, self._frames)
        for sent in known:
            sent.forget()
        self._sent_selection = None
        self._n_hellos += 1

    def _on_visible(self, message: from_view.Visible) -> None:
        self._views_present.seen(message["view"], message["visible"])

    def _on_selection(self, message: wire.SelectionMessage) -> None:
        self._choose(self._selection.chosen(message))

    def _on_moved(self, message: from_view.Moved) -> None:
        self._choose(self._selection.moved(message["window"]))

    def _choose(self, chosen: PanelSelection) -> None:
        if self._controls is not None and {*chosen.series} - {*self._selection.series}:
            self._controls.looked_at()
        self._defaults.chosen(self._selection, chosen)
        self._selection = chosen
        self._note_home()

    def _note_home(self) -> None:
        home = self._selection.home
        self._homes.pop(home, None)
        self._homes[home] = None

    def _on_pointed(self, message: from_view.Pointed) -> None:
        self._step = message["step"]

    def _on_fold(self, message: from_view.FoldClick) -> None:
        self._drawings.fold(message["name"], message["folded"])


def _probes(controls: Controls | None) -> Sequence[ProbeStatus]:
    return () if controls is None else controls.probes()
