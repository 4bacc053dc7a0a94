"""Thread that sends messages about a run; training never waits for it."""

from __future__ import annotations

import math
import shlex
import threading
import time

from notebook_probe.run.notify.lookout import Lookout, Message, RunMoment
from notebook_probe.run.notify.picture import picture_of
from notebook_probe.run.notify.services import Services
from notebook_probe.run.parts import RunParts
from notebook_probe.uninterrupted import join, uninterrupted

__all__ = ["Notifier"]

LOOK_S = 1.0
MOST_S = 30.0
"""Seconds after which a service that does not answer is a problem."""
LAST_S = 10.0
"""Seconds that closing a run waits for its last message."""


class Notifier:
    """Messages about a run, from `notebook_probe.notify` on until it or the run is closed.

    As a context manager it closes at the end.

    Parameters
    ----------
    name : str
        Name of the run.
    parts : RunParts
    services : Services
    on : frozenset of str
        Occasions.
    every_s, stalled_s : float
        Same as in `Lookout`.

    Attributes
    ----------
    services : Services
    n_sent : int
        Messages that every service took.
    problem : str
        Reason why messages are not sent; empty if the last one was sent, or none was due.
    """

    def __init__(
        self,
        name: str,
        parts: RunParts,
        services: Services,
        on: frozenset[str],
        every_s: float,
        stalled_s: float,
    ) -> None:
        self.services, self.n_sent = services, 0
        self._parts = parts
        self._failed, self._sending_since = "", math.nan
        self._closing = threading.Event()
        self._lookout = Lookout(name, on, every_s, stalled_s, self._seen())
        self._thread = threading.Thread(target=self._run, name="notebook_probe notify", daemon=True)
        self._thread.start()

    @property
    def kinds(self) -> tuple[str, ...]:
        """Kind of each address, such as ``"slack"``."""
        return self.services.kinds

    @property
    def closed(self) -> bool:
        return self._closing.is_set()

    @property
    def problem(self) -> str:
        waited_s = time.monotonic() - self._sending_since
        if waited_s > MOST_S:
            return f"notifications: no answer for {waited_s:.0f} s"
        return self._failed

    def close(self) -> None:
        """Send the due messages, and end; a service that is silent is given up after a while."""
        with uninterrupted:
            self._closing.set()
        if self._thread is not threading.current_thread():
            join(self._thread, LAST_S)

    def __enter__(self) -> Notifier:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        state = self.problem or ("closed" if self.closed else "open")
        return f"<Notifier by {', '.join(self.services.kinds)}: {state}, {self.n_sent} sent>"

    def _run(self) -> None:
        while not self._closing.wait(LOOK_S):
            self._look()
        self._look()

    def _look(self) -> None:
        try:
            for message in self._lookout.messages(self._seen()):
                self._send(message)
        except Exception as error:  # the record's, not a service's
            self._failed = f"notifications: {type(error).__name__}: {error}"

    def _send(self, message: Message) -> None:
        self._sending_since = time.monotonic()
        try:
            text = f"{message.text}\nnbp explain {shlex.quote(self._parts.source.location)}"
            picture = picture_of(self._parts.source, message.series, message.step)
            failed = self.services.send(message.title, text, picture)
        finally:
            self._sending_since = math.nan
        self._failed = "" if not failed else f"notifications: {', '.join(failed)} took none"
        self.n_sent += not failed

    def _seen(self) -> RunMoment:
        parts = self._parts
        state, rate = parts.state, parts.meter.steps_per_second
        failure = state.failure
        return RunMoment(
            events=parts.source.events,
            step=parts.observer.clock.upcoming,
            is_under_way=state.has_trained,
            is_paused=parts.gate.is_waiting,
            is_closed=self.closed,
            failure="" if failure is None else failure.text,
            step_s=1 / rate if rate > 0 else math.nan,
            now_s=time.monotonic(),
        )
