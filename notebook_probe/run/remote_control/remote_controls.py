"""Controls of a run that another process trains, for the panel of an opened record."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from notebook_probe.alerts import RULES, Rules
from notebook_probe.errors import ProbeError
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
)
from notebook_probe.run.remote_control.lines import ControlLine, LineError, open_line, whoami
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

T = TypeVar("T")


@dataclass(slots=True)
class _SentRequest:
    """A request that was sent, until its answer."""

    ticket: Ticket
    sent_s: float


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
        self._seeing = ""
        self._told: Callbacks[Callable[[], None]] = Callbacks()
        self._has_tried = threading.Event()
        self._wake = threading.Event()
        # Any thread may ask; only one of them may start the thread that reads answers.
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._asked_s = self._heard_s = time.monotonic()
        self._problem = ""
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
            why = self._problem or "the training does not answer"
            return replace(head, state="idle", problem=f"{why}, since {silent_s:.0f} s")
        # A loop elsewhere runs on when a cell of this notebook ends.
        return replace(head, background=head.state in ("training", "paused"))

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
            if isinstance(one, NoteLooking):
                line.send(one)
                continue
            try:
                self._sent[line.send(PutRequest(one.request))] = _SentRequest(one, time.monotonic())
            except LineError as error:
                _refuse(one, str(error))
                raise
        if not self._seeing:
            self._seeing = line.send(SeeState(self._digests))

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
            if sent.sent_s < late_s and line.take_back(key):
                del self._sent[key]
                _refuse(sent.ticket, "the training did not answer; the request was taken back")
                self._tell()

    def _lose(self, error: Exception) -> None:
        self._problem = str(error) if isinstance(error, ProbeError) else repr(error)
        self._has_tried.set()
        sent, self._sent = self._sent, {}
        for one in sent.values():
            _refuse(one.ticket, self._problem)
        while not self._requests.empty():
            waiting = self._requests.get_nowait()
            if isinstance(waiting, Ticket):
                _refuse(waiting, self._problem)
        self._tell()

    def _tell(self) -> None:
        for callback in self._told.every:
            callback()


def _refuse(ticket: Ticket, text: str) -> None:
    ticket.text, ticket.state = text, "refused"
