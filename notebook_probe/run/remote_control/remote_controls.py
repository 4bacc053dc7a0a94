"""Controls of a run that another process trains, for the panel of an opened record."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from notebook_probe.alerts import RULES, Rules
from notebook_probe.errors import ProbeError, StoreSilentError
from notebook_probe.record.read.reader import OpenedRecord
from notebook_probe.record.store.location import Location
from notebook_probe.record.views.xarray_views import RunSource
from notebook_probe.run.attach.requests import Fitting, Request, Ticket
from notebook_probe.run.breakpoints.requests import BreakpointInfo
from notebook_probe.run.callbacks import Callbacks
from notebook_probe.run.health.status import PresetInfo, ProbeStatus, QuantityInfo, StatusHead
from notebook_probe.run.remote_control.letters import (
    CODING,
    Answer,
    NoteLooking,
    PutRequest,
    SeeState,
    new_id,
)
from notebook_probe.run.remote_control.lines import ControlLine, open_line, whoami
from notebook_probe.run.remote_control.shown import HEAD, PARTS, About, Lately
from notebook_probe.run.settings.setting import KnobInfo

__all__ = ["RemoteControls"]

FIRST_S = 3.0
"""Seconds to wait for the first answer: then the panel only reads."""
LOST_S = 15.0
"""Seconds without an answer after which the line counts as lost."""
IDLE_S = 10.0
"""Seconds after which the thread ends if no panel asks; the next question starts it again."""
AGAIN_S = 2.0
"""Seconds between two attempts to reach a training that does not answer."""


@dataclass(slots=True)
class _SentRequest:
    """A request that was sent, until its answer."""

    ticket: Ticket
    sent_s: float
    has_arrived: bool = False
    """True once the store, or the socket, has taken it."""


class RemoteControls:
    """`Controls` of a run in another process, over a line to it.

    A thread sends requests and fetches the state; everything here answers at once from what it
    fetched last. It ends when nobody asks for a while.

    Parameters
    ----------
    source : OpenedRecord
    location : path, URL or store
    """

    is_here = False

    def __init__(self, source: OpenedRecord, location: Location) -> None:
        self._source, self._location = source, location
        self._parts: dict[str, Any] = {}
        self._digests: dict[str, str] = {}
        self._requests: queue.SimpleQueue[Ticket | NoteLooking] = queue.SimpleQueue()
        self._sent: dict[str, _SentRequest] = {}
        self._session = self._seeing = ""
        self._opened_s = self._saw_s = 0.0
        self._told: Callbacks[Callable[[], None]] = Callbacks()
        self._has_tried = threading.Event()
        self._wake = threading.Event()
        # Any thread may ask; only one of them may start the thread that reads answers.
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._asked_s = self._heard_s = time.monotonic()
        self._problem, self._is_store_silent = "", False
        self._rules = Rules(lambda: self._lately.rule_states)

    def reach(self) -> bool:
        """Wait for the first answer; return whether the training can be controlled."""
        self._keep_going()
        self._has_tried.wait(FIRST_S)
        return self._parts.keys() == PARTS.keys()

    # ---------------------------------------------------------------- for a panel

    def put(self, request: Request) -> Ticket:
        """Send a request; its ticket says what became of it once the answer has come."""
        ticket = Ticket(request, queued_step=self._head.step)
        self._requests.put(ticket)
        self._wake.set()
        self._keep_going()
        return ticket

    def looked_at(self) -> None:
        self._requests.put(NoteLooking())
        self._wake.set()

    def status_head(self) -> StatusHead:
        self._keep_going()
        head = self._head
        if self._source.finished:
            return replace(head, state="finished", pause_reason="")
        silent_s = time.monotonic() - self._heard_s
        if silent_s > LOST_S or self._problem:
            return self._without_answer(head, silent_s)
        # A loop elsewhere runs on when a cell of this notebook ends.
        return replace(head, background=head.state in ("training", "paused"))

    def _without_answer(self, head: StatusHead, silent_s: float) -> StatusHead:
        """Return the last state, with why there is none that is newer."""
        why = self._problem or "the training or its store is silent"
        # A training whose store does not answer may well continue.
        may_train = self._is_store_silent or not self._problem
        return replace(
            head,
            state=head.state if may_train else "idle",
            unheard=may_train,
            problem=f"no answer for {silent_s:.0f} s: {why}",
            flushed_age_s=head.flushed_age_s + silent_s,
        )

    def probes(self) -> Sequence[ProbeStatus]:
        return self._lately.probes

    def attachable(self) -> Sequence[QuantityInfo]:
        return self._about.attachable

    def preset_infos(self) -> Sequence[PresetInfo]:
        return self._about.presets

    def fitting(self) -> Fitting:
        return self._about.fitting

    def knobs(self) -> Sequence[KnobInfo]:
        return self._lately.knobs

    def pending_looks(self) -> tuple[list[tuple[str, int]], dict[tuple[str, int], str]]:
        lately = self._lately
        missed = {(module, step): why for module, step, why in lately.missed_looks}
        return [*lately.looks], missed

    def breakpoint_infos(self) -> Sequence[BreakpointInfo]:
        return self._lately.breakpoints

    def severe_rules(self) -> Sequence[str]:
        return self._about.severe

    @property
    def restores(self) -> str:
        return self._about.restores

    @property
    def parent(self) -> RunSource | None:
        return self._source.parent

    @property
    def rules(self) -> Rules:
        return self._rules

    def rule_names(self) -> Sequence[str]:
        return [*self._lately.rules]

    def follow(self) -> Callable[[], None]:
        """Do nothing: a pause in another process is continued by requests."""
        return lambda: None

    def each_boundary(self, callback: Callable[[], None]) -> Callable[[], None]:
        """Do nothing: the boundaries are in another process, which needs no help of this one."""
        return lambda: None

    def each_news(self, callback: Callable[[], None]) -> Callable[[], None]:
        return self._told.add(callback)

    def settle(self, error: BaseException | None = None) -> None:
        """Do nothing: the end of a cell here is not the end of a loop there."""

    @property
    def _head(self) -> StatusHead:
        head: StatusHead = self._parts[HEAD]
        return head

    @property
    def _lately(self) -> Lately:
        lately: Lately = self._parts["lately"]
        return lately

    @property
    def _about(self) -> About:
        about: About = self._parts["about"]
        return about

    # ---------------------------------------------------------------- its thread

    def _keep_going(self) -> None:
        self._asked_s = time.monotonic()
        with self._lock:
            if self._thread is None or not self._thread.is_alive():
                self._heard_s = self._asked_s
                self._thread = threading.Thread(
                    target=self._run, name="notebook_probe remote controls", daemon=True
                )
                self._thread.start()

    def _run(self) -> None:
        while time.monotonic() - self._asked_s < IDLE_S:
            try:
                line = open_line(self._location, whoami("panel"))
            except Exception as error:  # a network folder may be gone for a while
                self._lose(error)
            else:
                self._talk(line)
            self._wake.wait(AGAIN_S)

    def _talk(self, line: ControlLine) -> None:
        """Exchange letters until the line is lost, or no panel asks any more."""
        self._opened_s = time.monotonic()
        if line.session != self._session:
            self._refuse_sent("the training was started again")
        self._session = line.session
        try:
            while time.monotonic() - self._asked_s < IDLE_S and not self._source.finished:
                self._wake.clear()
                self._send(line)
                self._take(line.answers_or_end([*self._sent, self._seeing], line.poll_s))
                self._give_up_old(line)
                if not self._sent:
                    self._wake.wait(line.poll_s)
        except Exception as error:  # whatever the library of a store raises
            self._lose(error)
        finally:
            self._seeing = ""
            line.close()

    def _send(self, line: ControlLine) -> None:
        while not self._requests.empty():
            one = self._requests.get_nowait()
            key = new_id()
            if isinstance(one, NoteLooking):
                line.send(one, key)
                continue
            # Before it is sent: a store that does not answer may have taken it.
            self._sent[key] = sent = _SentRequest(one, time.monotonic())
            line.send(PutRequest(one.request), key)
            sent.has_arrived = True
        # An answer that the training could not leave never comes.
        if not self._seeing or time.monotonic() - self._saw_s > LOST_S:
            self._seeing, self._saw_s = new_id(), time.monotonic()
            line.send(SeeState(self._digests), self._seeing)

    def _take(self, answers: Sequence[Answer]) -> None:
        for answer in answers:
            self._heard_s, self._problem = time.monotonic(), ""
            if answer.id == self._seeing:
                self._seeing = ""
                self._see(answer)
            elif answer.id in self._sent:
                self._decide(answer)
        if answers:
            self._tell()

    def _decide(self, answer: Answer) -> None:
        ticket = self._sent[answer.id].ticket
        if answer.queued_step >= 0:
            ticket.queued_step = answer.queued_step
        if answer.state in ("applied", "refused"):
            del self._sent[answer.id]
            ticket.text, ticket.applied_step = answer.text, answer.applied_step
            ticket.state = answer.state  # last: it says that the rest is there

    def _see(self, answer: Answer) -> None:
        for name, kind in PARTS.items():
            found = (answer.seen or {}).get(name)
            if isinstance(found, dict):
                self._parts[name] = CODING.read(kind, found.get("value"), name)
                self._digests[name] = str(found.get("digest"))
        if self._parts.keys() == PARTS.keys():
            self._follow_rules()
            self._has_tried.set()

    def _follow_rules(self) -> None:
        """Bring the rules to the numbers that they have in the training."""
        there = self._lately.rules
        for name, rule in [*self._rules.items()]:
            if name not in there:
                del self._rules[name]
            elif rule.numbers != there[name]:
                self._rules[name] = rule.but(**there[name])
        for name in (there.keys() - self._rules.keys()) & {*RULES}:
            self._rules[name] = RULES[name].but(**there[name])

    def _give_up_old(self, line: ControlLine) -> None:
        """Refuse requests that the training has not read; those that it has wait for a step."""
        late_s = time.monotonic() - LOST_S
        for key, sent in [*self._sent.items()]:
            if max(sent.sent_s, self._opened_s) > late_s:
                continue
            if line.take_back(key):
                why = "the training did not answer; the request was taken back"
            elif not sent.has_arrived:
                why = "the request was lost, as its store did not answer"
            else:
                continue
            del self._sent[key]
            _refuse(sent.ticket, why)
            self._tell()

    def _lose(self, error: Exception) -> None:
        self._problem = str(error) if isinstance(error, ProbeError) else repr(error)
        self._has_tried.set()
        self._is_store_silent = isinstance(error, StoreSilentError)
        # A store that is back may still have the letters, and their answers.
        if not self._is_store_silent:
            self._refuse_sent(self._problem)
        while not self._requests.empty():
            waiting = self._requests.get_nowait()
            if isinstance(waiting, Ticket):
                _refuse(waiting, f"not sent: {self._problem}")
        self._tell()

    def _refuse_sent(self, why: str) -> None:
        sent, self._sent = self._sent, {}
        for one in sent.values():
            _refuse(one.ticket, why)

    def _tell(self) -> None:
        for callback in self._told.every:
            callback()


def _refuse(ticket: Ticket, text: str) -> None:
    ticket.text, ticket.state = text, "refused"
