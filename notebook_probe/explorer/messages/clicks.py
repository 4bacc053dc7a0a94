"""The clicks of a panel: what each asks of the run, and what became of it."""

from __future__ import annotations

import queue
from collections import deque
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from notebook_probe.explorer.messages.from_view import Click
from notebook_probe.explorer.messages.wire import VERSION, TicketMessage, TicketRow
from notebook_probe.run.attach.requests import (
    Attach,
    Budgeted,
    Compiled,
    Control,
    Detach,
    Request,
    Ticket,
)
from notebook_probe.run.controls import Controls
from notebook_probe.run.health.status import StatusHead

__all__ = ["REQUESTS", "Clicks", "greyed_controls"]

# Every status contains all of them.
KEPT = 8
CONTROLS = ("pause", "resume", "step", "stop")


def greyed_controls(
    head: StatusHead, live: bool, clicks: Collection[str], restarts: Collection[str] = ()
) -> dict[str, str]:
    """Control or other click to the reason why it cannot act now, empty where it can.

    Those that restart a loop act after its end, too.
    """
    every = [*CONTROLS, *clicks]
    ended = head.state == "finished"
    if not live or ended:
        elsewhere = "this run is trained by another process"
        # A record has no queue into which another process would look.
        greyed = dict.fromkeys(every, "this run has ended" if ended else elsewhere)
        can_restart = live and head.until >= 0
        return greyed | dict.fromkeys(restarts, "") if can_restart else greyed
    paused = head.state == "paused"
    training = paused or head.state == "training" or head.background
    why = {"pause": "already paused"} if paused else {"resume": "not paused"}
    if not training:
        why["stop"] = "no training is running"
    if head.state == "failed":
        why |= dict.fromkeys(CONTROLS, "training ended with an error")
    return {control: why.get(control, "") for control in every}


@dataclass(slots=True)
class _Click:
    id: str
    control: str
    ticket: Ticket
    applied: bool = False
    """True once the application of the click was noticed here."""
    told: tuple[str, str] = ("", "")
    """The state that the views know, and its text."""

    def row(self) -> TicketRow:
        """Return the state of the click."""
        return {
            "id": self.id,
            "state": self.ticket.state,
            "queued_step": self.ticket.queued_step,
            "applied_step": self.ticket.applied_step,
            "text": self.ticket.text,
        }

    @property
    def is_news(self) -> bool:
        """True if the views know a different state."""
        return self.told != (self.ticket.state, self.ticket.text)

    def message(self) -> TicketMessage:
        """Return the state as a message, and note that the views know it."""
        row = self.row()
        self.told = row["state"], row["text"]
        return {"v": VERSION, "type": "ticket", **row}


class Clicks:
    """The last clicks; the run writes their tickets, this only reads them.

    `put` runs in the widget's thread; all else in the refresher's.

    Parameters
    ----------
    controls : Controls or None
    requests : mapping of str to callable
        Type of a message to what it asks of the run.
    """

    def __init__(
        self, controls: Controls | None, requests: Mapping[str, Callable[[Any], Request]]
    ) -> None:
        self._controls, self._requests = controls, requests
        # A SimpleQueue needs no lock of ours between the widget's thread and the refresher's.
        self._arrived: queue.SimpleQueue[_Click] = queue.SimpleQueue()
        self._clicks: deque[_Click] = deque(maxlen=KEPT)
        self._greyed: Mapping[str, str] = MappingProxyType({})

    def follow(self, before: Clicks) -> None:
        """Continue with the clicks of another run's session, and report their results too."""
        self._arrived, self._clicks = before._arrived, before._clicks

    def put(self, click: Click) -> TicketMessage:
        """Queue what a click asks of the run, or note that its control was greyed."""
        control: str = click.get("action", click["type"])  # type: ignore[assignment]
        request = self._requests[click["type"]](click)
        # The views grey a control from the last status; a click may have been under way meanwhile.
        reason = self._greyed.get(control, "") or _missing(request)
        if self._controls is None or reason:
            ticket = Ticket(request, queued_step=-1, state="refused", text=reason)
        else:
            ticket = self._controls.put(request)
        put = _Click(click["id"], control, ticket)
        message = put.message()
        self._arrived.put(put)
        return message

    def look(self, greyed: Mapping[str, str]) -> None:
        """Take in new clicks, and which controls are disabled now."""
        self._greyed = greyed
        while not self._arrived.empty():
            click = self._arrived.get_nowait()
            if click.ticket.state == "refused" and not click.ticket.text:
                click.ticket.text = greyed[click.control]
            self._clicks.append(click)

    def newly_attached(self) -> list[Attach]:
        """Attach requests that were applied since the last call."""
        news = [click for click in self._clicks if not click.applied and _is_applied(click)]
        for click in news:
            click.applied = True
        requests = [click.ticket.request for click in news]
        # Attach requests only: what they measure is put on the screen.
        return [request for request in requests if isinstance(request, Attach)]

    def news(self) -> list[TicketMessage]:
        """Return the clicks whose state has changed since the views were last informed."""
        return [click.message() for click in self._clicks if click.is_news]

    def rows(self) -> list[TicketRow]:
        """Return the rows of all clicks, the newest last."""
        return [click.row() for click in self._clicks]


def _missing(request: Request) -> str:
    """Return what a click lacks; an empty schedule would otherwise mean every step."""
    empty = isinstance(request, Attach) and not request.schedule.strip()
    return "say when to measure, such as every(10)" if empty else ""


def _is_applied(click: _Click) -> bool:
    return click.ticket.state == "applied"


def _attach(click: Any) -> Request:
    return Attach(tuple(click["where"]) or None, click["quantity"], click["schedule"])


def _detach(click: Any) -> Request:
    return Detach(tuple(click["where"]), click["quantity"])


def _control(click: Any) -> Request:
    return Control(click["action"])


def _compiled(click: Any) -> Request:
    return Compiled(click["steps"])


def _budget(click: Any) -> Request:
    return Budgeted(click["percent"])


REQUESTS: dict[str, Callable[[Any], Request]] = {
    "attach": _attach,
    "detach": _detach,
    "control": _control,
    "compiled": _compiled,
    "budget": _budget,
}
"""Request of each message type; parts add more."""
