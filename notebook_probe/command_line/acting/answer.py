"""The answer of every verb that acts: a ticket."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

__all__ = ["ActAnswer"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ActAnswer:
    """Ticket of a request to a training."""

    run: Annotated[str, "location of the record"]
    request: Annotated[str, "name of the request, such as attach"]
    ticket: Annotated[
        Literal["applied", "refused", "queued", "unanswered"],
        "queued: it acts at the next step; unanswered: it was not read, and was taken back",
    ]
    queued_step: Annotated[int | None, "step at which the training received it"]
    applied_step: Annotated[int | None, "step from which on it took effect"]
    text: Annotated[str, "what was done, or why not"]
    way: Annotated[Literal["socket", "mailbox"], "how the training was reached"]
    seconds: Annotated[float, "from the request to its answer"]
