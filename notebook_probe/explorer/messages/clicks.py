"""The clicks of a panel and what became of each, in the words of the status message."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

from notebook_probe.explorer.messages.wire import TicketRow
from notebook_probe.run.attach.requests import Attach, Request, Ticket
from notebook_probe.run.controls import Controls

__all__ = ["Tickets"]

KEPT = 8


@dataclass(slots=True)
class _Click:
    id: str
    ticket: Ticket
    applied: bool = False
    """Its being applied has been noticed here."""


class Tickets:
    """The last clicks; the run writes their tickets, this only reads them."""

    def __init__(self) -> None:
        self._clicks: deque[_Click] = deque(maxlen=KEPT)

    def put(self, click_id: str, request: Request, controls: Controls | None, reason: str) -> None:
        """Ask the run for something, or note why it cannot be asked.

        Parameters
        ----------
        reason : str
            Why the request cannot act; empty when it can.
        """
        refused = Ticket(request, queued_step=-1, state="refused", text=reason)
        ticket = refused if reason or controls is None else controls.put(request)
        self._clicks.append(_Click(click_id, ticket))

    def newly_attached(self) -> list[Attach]:
        """Attach requests that were applied since the last call."""
        news = [click for click in self._clicks if not click.applied and _is_applied(click)]
        for click in news:
            click.applied = True
        requests = [click.ticket.request for click in news]
        return [request for request in requests if isinstance(request, Attach)]

    def rows(self) -> list[TicketRow]:
        """The newest last."""
        return [
            {
                "id": click.id,
                "state": click.ticket.state,
                "queued_step": click.ticket.queued_step,
                "applied_step": click.ticket.applied_step,
                "text": click.ticket.text,
            }
            for click in self._clicks
        ]


def _is_applied(click: _Click) -> bool:
    return click.ticket.state == "applied"
