"""Desk of a run: converts letters of every transport to requests, and tickets to answers."""

from __future__ import annotations

import json
import threading
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from typing import Protocol

from notebook_probe.errors import ProbeError
from notebook_probe.probes.step.sink import EventSink
from notebook_probe.run.attach.requests import Ticket
from notebook_probe.run.controls import Controls
from notebook_probe.run.remote_control.letters import (
    CODING,
    NO_LETTER,
    VERSION,
    Answer,
    Letter,
    NoteLooking,
    PutRequest,
    name_of,
    read_letter,
)
from notebook_probe.run.remote_control.shown import ShownParts

__all__ = ["REMOTE", "Desk", "OpenRequest", "SharedControls"]

REMOTE = "remote"
"""Kind of the events of requests from elsewhere."""
BURST, PER_SECOND = 100, 20.0
"""Letters that may come at once, and per second in the long run."""
NOTE_S = 60.0
"""Seconds for which refused letters are noted in one event."""
CLOSED = "the run is closed"


class SharedControls(Controls, Protocol):
    """The controls of a run that are shared, which may be closed."""

    @property
    def closed(self) -> bool:
        """True once the run is closed."""
        ...


class OpenRequest:
    """A request in the queue of the run, until its ticket is decided.

    Parameters
    ----------
    letter : Letter
    ticket : Ticket
    decided : callable
        Called once, when the ticket is decided.
    """

    def __init__(
        self, letter: Letter, ticket: Ticket, decided: Callable[[Letter, Ticket], None]
    ) -> None:
        self.letter, self._ticket, self._decided = letter, ticket, decided
        self._is_noted = False

    @property
    def is_decided(self) -> bool:
        return self._ticket.state != "queued"

    def answer(self) -> Answer:
        """Return the state of the ticket."""
        ticket = self._ticket
        if self.is_decided and not self._is_noted:
            self._is_noted = True
            self._decided(self.letter, ticket)
        return Answer(
            VERSION,
            self.letter.id,
            ticket.state,
            ticket.queued_step,
            ticket.applied_step,
            ticket.text,
        )

    def give_up(self) -> Answer:
        """Return the answer as the run ends: what still waits is refused."""
        if not self.is_decided:
            self._ticket = replace(self._ticket, state="refused", text=CLOSED)
        return self.answer()


class Desk:
    """Taker of letters, from any thread, which puts their requests and knows no way in.

    Parameters
    ----------
    controls : callable
        Returns the controls, or None once the run is gone: a letter must not keep a run alive.
    events : EventSink
        Log of what was asked, and by whom.
    session : str
        Letters for another training of the same record are refused.
    place : str
        The record; letters about a copy of it are refused.
    """

    def __init__(
        self,
        controls: Callable[[], SharedControls | None],
        events: EventSink,
        session: str,
        place: str,
    ) -> None:
        self._controls, self._events = controls, events
        self.session, self.place = session, place
        self._shown = ShownParts()
        # The threads of the socket and of the mailbox both bring letters.
        self._lock = threading.Lock()
        self._room, self._filled_s = float(BURST), time.monotonic()
        self._refused: Counter[str] = Counter()
        self._noted_s = -NOTE_S

    @property
    def is_open(self) -> bool:
        """True until the run is closed or gone."""
        controls = self._controls()
        return controls is not None and not controls.closed

    def take(self, content: bytes, sender: str, letter_id: str = NO_LETTER) -> Answer | OpenRequest:
        """Act on a letter; a bad one is refused and counted.

        Parameters
        ----------
        sender : str
            Sender, if the system knows it.
        letter_id : str
            Id for the answer to a letter that is not read.
        """
        # Before it is parsed: reading a flood costs time that the training needs.
        if not self._has_room():
            return self.refuse("too many", "too many requests; try again in a second", letter_id)
        try:
            letter = read_letter(content)
        except Exception as error:  # whatever a request makes of strange values
            return self.refuse("malformed", str(error), letter_id)
        if letter.session != self.session or letter.place not in ("", self.place):
            return self.refuse(
                "for another training", "this is for another training or a copy", letter.id
            )
        controls = self._controls()
        if controls is None or controls.closed:
            return refusal(letter.id, CLOSED)
        try:
            return self._act(letter, controls, sender)
        except Exception as error:  # a letter must not end the thread that serves it
            return refusal(letter.id, f"{type(error).__name__}: {error}")

    def _act(self, letter: Letter, controls: Controls, sender: str) -> Answer | OpenRequest:
        ask = letter.ask
        if isinstance(ask, PutRequest):
            decided = lambda letter, ticket: self._note(letter, ticket, sender)  # noqa: E731
            return OpenRequest(letter, controls.put(ask.request), decided)
        if isinstance(ask, NoteLooking):
            controls.looked_at()
            return Answer(VERSION, letter.id, "seen")
        with self._lock:
            seen = self._shown.news(controls, ask.known)
        return Answer(VERSION, letter.id, "seen", seen=seen)

    def refuse(self, why: str, text: str, letter_id: str = NO_LETTER) -> Answer:
        """Refuse a letter and count it."""
        with self._lock:
            self._refused[why] += 1
        return refusal(letter_id, text)

    def note_refused(self, *, at_once: bool = False) -> None:
        """Note in an event how many letters were refused, once a minute at most."""
        with self._lock:
            if not self._refused or (not at_once and time.monotonic() - self._noted_s < NOTE_S):
                return
            counts, self._refused = self._refused, Counter()
            self._noted_s = time.monotonic()
        n = sum(counts.values())
        reasons = ", ".join(f"{count} {why}" for why, count in counts.items())
        text = f"{n} message{'s' if n > 1 else ''} from elsewhere refused: {reasons}"
        self._event(-1, text, json.dumps({"refused": dict(counts)}))

    def _note(self, letter: Letter, ticket: Ticket, sender: str) -> None:
        who = ", ".join(filter(None, (letter.who, sender)))
        step = ticket.applied_step if ticket.state == "applied" else ticket.queued_step
        refused = "refused: " if ticket.state == "refused" else ""
        detail = {
            "who": who,
            "request": CODING.plain(ticket.request),
            "state": ticket.state,
            "text": ticket.text,
        }
        text = f"{refused}{name_of(ticket.request)}, asked by {who}: {ticket.text}"
        self._event(step, text, json.dumps(detail))

    def _event(self, step: int, text: str, detail: str) -> None:
        controls = self._controls()
        if controls is not None:
            with suppress(ProbeError):  # the run was closed in between
                known = step if step >= 0 else controls.status_head().step
                self._events.event(max(0, known), REMOTE, text, detail)

    def _has_room(self) -> bool:
        with self._lock:
            now_s = time.monotonic()
            self._room = min(BURST, self._room + PER_SECOND * (now_s - self._filled_s))
            self._filled_s = now_s
            if self._room < 1.0:
                return False
            self._room -= 1.0
            return True


def refusal(letter_id: str, text: str) -> Answer:
    """Return an answer that refuses."""
    return Answer(VERSION, letter_id, "refused", text=text)
