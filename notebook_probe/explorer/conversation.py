"""What the views of a panel say and what they are told; knows messages, not widgets."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any, TypeAlias

from notebook_probe.explorer.draw import heat as heat
from notebook_probe.explorer.draw import lines as lines
from notebook_probe.explorer.draw.drawing import Moment, Room
from notebook_probe.explorer.draw.drawings import Drawings
from notebook_probe.explorer.draw.view import VIEWS
from notebook_probe.explorer.draw.what_has_values import Recorded
from notebook_probe.explorer.messages import wire
from notebook_probe.explorer.messages.clicks import Tickets
from notebook_probe.explorer.messages.problems import Problems
from notebook_probe.explorer.messages.reasons import reasons
from notebook_probe.explorer.messages.selection import PanelSelection, default_home
from notebook_probe.explorer.messages.status_message import Report
from notebook_probe.explorer.messages.views_present import ViewsPresent
from notebook_probe.explorer.save.export import export
from notebook_probe.record.format.source import Source
from notebook_probe.run.attach.requests import Attach, Compiled, Control, Controls, Detach, Request
from notebook_probe.run.health.status import Status

__all__ = ["PanelSession", "Send"]

Send: TypeAlias = Callable[[Mapping[str, Any], list[memoryview]], None]


class PanelSession:
    """The state that all views of one panel share.

    `hear` runs in whatever thread the kernel handles a message: it changes a value or puts a
    request, and is done. `tell` runs in the refresher's thread, which alone reads the source.
    """

    def __init__(self, source: Source, controls: Controls | None) -> None:
        self._source, self._controls = source, controls
        self._lock = threading.Lock()
        self._looking = threading.Lock()
        self._selection = PanelSelection()
        self._home_is_default = True
        self._audience = ViewsPresent()
        self._tickets = Tickets()
        self._problems = Problems()
        self._report = Report(source, controls)
        self._recorded = Recorded()
        VIEWS.load()
        self._plots = {one.name: one.painter() for one in VIEWS.values() if one.every_refresh}
        self._drawings = Drawings(source)
        self._n_hellos = 0
        self._drawn: dict[str, object] = {}
        self._told: PanelSelection | None = None
        self._exports: list[wire.ExportAsked] = []
        self._hears: dict[str, Callable[[Any], None]] = {
            "hello": self._hear_hello,
            "visible": self._hear_visible,
            "viewport": self._audience.resized,
            "ack": self._audience.painted,
            "selection": self._hear_selection,
            "attach": self._hear_attach,
            "detach": self._hear_detach,
            "control": self._hear_control,
            "compiled": self._hear_compiled,
            "fold": self._hear_fold,
            "export": self._exports.append,
        }

    def expect_views(self, blind: bool) -> None:
        """Whether views are there that cannot say hello while the cell runs."""
        with self._lock:
            self._audience.expected = blind

    def hear(self, message: wire.FromView) -> None:
        """Take in what one view says."""
        with self._lock:
            self._hears[message["type"]](message)

    def problem(self, error: Exception, where: str) -> None:
        """Show an exception in the panel, the one place where somebody sees it."""
        with self._lock:
            self._problems.add(error, where)

    def close(self) -> None:
        """The panel is gone: draw nothing more."""
        self._drawings.close()

    def status(self) -> Status:
        """How the run is now."""
        return self._report.status()

    def look(self) -> PanelSelection:
        """What to show now, after a look at what has been recorded since the last call."""
        with self._looking:
            self._recorded.look(self._source)
        with self._lock:
            self._selection = self._with_defaults(self._selection)
            return self._selection

    # ------------------------------------------------------------------------------------ telling

    def tell(self, send: Send, route: str, status: Status) -> None:
        """Send what is new to the views that are being looked at."""
        self._tell_exports(send)
        if not self._audience.present:
            return
        revision = self._source.revision
        selection = self._looked()
        with self._lock:
            messages = [
                self._report.model(status),
                None if selection == self._told else selection.message(),
                self._report.message(
                    status,
                    route,
                    self._recorded.modules,
                    self._tickets.rows(),
                    self._problems.rows(),
                ),
            ]
            self._told = selection
        for message in messages:
            if message is not None:
                send(message, [])
        for kind in self._plots:
            self._tell_frame(send, kind, revision, selection)
        self._tell_drawings(send, Moment(revision, selection, status.state, self._n_hellos))

    def _looked(self) -> PanelSelection:
        """`look`, or what was shown before: the status is told even when nothing can be read."""
        try:
            return self.look()
        except Exception as error:  # a record may be on a disk that has gone
            self.problem(error, "reading the record")
            return self._selection

    def _tell_frame(self, send: Send, kind: str, revision: int, selection: PanelSelection) -> None:
        now_s = time.monotonic()
        with self._lock:
            width = self._audience.width(kind)
            key = (revision, selection, width)
            if self._drawn.get(kind) == key or not self._audience.ready(kind, now_s):
                return
            self._drawn[kind] = key
        try:
            frame = self._plots[kind].frame(self._source, selection, width)
        except Exception as error:  # a view may be anybody's; the others go on
            self.problem(error, f"view {kind!r}")
            return
        if frame is not None:
            self._send_frame(send, kind, frame)

    def _tell_drawings(self, send: Send, moment: Moment) -> None:
        for message in self._drawings.news(moment):
            send(message, [])
        if moment.selection.home or self._source.vectors:  # else there is nothing to draw
            self._drawings.draw(moment, self._room, partial(self._send_frame, send))

    def _room(self, kind: str) -> Room | None:
        """Where a view is shown; None while nobody sees it, or its last frame is on the way."""
        with self._lock:
            if not (self._audience.shows(kind) and self._audience.ready(kind, time.monotonic())):
                return None
            return self._audience.width(kind), self._audience.pixel_ratio

    def _send_frame(self, send: Send, kind: str, frame: wire.Frame) -> None:
        with self._lock:
            seq = self._audience.sends(kind, time.monotonic())
        send({**frame[0], "seq": seq}, frame[1])

    def _tell_exports(self, send: Send) -> None:
        with self._lock:
            asked = self._exports[:]
            self._exports.clear()
        for message in asked:
            send(*export(message["kind"], self._source, self._selection))

    def _with_defaults(self, selection: PanelSelection) -> PanelSelection:
        """What a user who has not chosen yet is shown."""
        if self._home_is_default:
            selection = replace(selection, home=default_home(self._recorded.modules))
        for request in self._tickets.newly_attached():
            where = request.where or self._report.places_of(request.quantity)
            if not selection.series and where and not self._report.is_vector(request.quantity):
                selection = selection.with_series((where[0], request.quantity))
        return selection

    # ------------------------------------------------------------------------------------ hearing

    def _hear_hello(self, message: wire.Hello) -> None:
        self._audience.came(message["view"])
        self._report.forget()
        self._told = None
        self._n_hellos += 1
        self._drawn.clear()

    def _hear_visible(self, message: wire.Visible) -> None:
        self._audience.seen(message["view"], message["visible"])

    def _hear_selection(self, message: wire.SelectionMessage) -> None:
        chosen = self._selection.chosen(message)
        if chosen.home != self._selection.home:
            self._home_is_default = False
        self._selection = chosen

    def _hear_fold(self, message: wire.FoldAsked) -> None:
        self._drawings.fold(message["name"], message["folded"])

    def _hear_attach(self, message: wire.AttachAsked) -> None:
        where, schedule = tuple(message["where"]) or None, message["schedule"]
        self._ask(message["id"], "attach", Attach(where, message["quantity"], schedule))

    def _hear_detach(self, message: wire.DetachAsked) -> None:
        self._ask(message["id"], "detach", Detach(tuple(message["where"]), message["quantity"]))

    def _hear_control(self, message: wire.ControlAsked) -> None:
        self._ask(message["id"], message["action"], Control(message["action"]))

    def _hear_compiled(self, message: wire.CompiledAsked) -> None:
        self._ask(message["id"], "compiled", Compiled(message["steps"]))

    def _ask(self, click_id: str, control: str, request: Request) -> None:
        reason = reasons(self._report.status(), self._controls is not None)[control]
        self._tickets.put(click_id, request, self._controls, reason)
