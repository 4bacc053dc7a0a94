"""Letters to a training and answers to them: one JSON form for every way in."""

from __future__ import annotations

import json
import re
import secrets
import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal, TypeAlias

from notebook_probe.run.attach.requests import (
    Attach,
    AttachPreset,
    Budgeted,
    BuildGraph,
    CompareWith,
    Compiled,
    Control,
    Detach,
    EditRule,
    ExamineModel,
    LookAt,
    Release,
    Request,
    Reschedule,
    Scale,
    Set,
)
from notebook_probe.run.breakpoints.conditions import (
    AtStep,
    OnAlert,
    OnError,
    OnNan,
    OnSeries,
    PauseCondition,
)
from notebook_probe.run.breakpoints.requests import AddBreakpoint, EditBreakpoint, RemoveBreakpoint
from notebook_probe.run.going_back.requests import EvaluateAt, GoBack, SaveCheckpoint
from notebook_probe.run.remote_control.coding import (
    Coding,
    LetterError,
    TaggedUnion,
    parsed_json,
)

__all__ = [
    "CODING",
    "KEY",
    "MOST_ANSWER_BYTES",
    "MOST_LETTER_BYTES",
    "NO_LETTER",
    "VERSION",
    "Answer",
    "Ask",
    "Letter",
    "NoteLooking",
    "PutRequest",
    "SeeState",
    "answer_bytes",
    "letter_bytes",
    "name_of",
    "new_id",
    "read_answer",
    "read_letter",
]

VERSION = 1
MOST_LETTER_BYTES = 2**20
MOST_ANSWER_BYTES = 2**25
KEY = re.compile(r"[0-9a-f]{32}")
"""Names of letters and of sessions, which become names of files."""
NO_LETTER = "0" * 32
"""Id in the answer to a letter that was not read."""
LONGEST_NAME = 200


@dataclass(frozen=True, slots=True)
class PutRequest:
    """Put a request into the queue of the run, as a click does."""

    request: Request


@dataclass(frozen=True, slots=True)
class SeeState:
    """Return what a panel shows of the run, apart from the record."""

    known: Mapping[str, str] = field(default_factory=dict)
    """Digests of the parts that the asking process has."""


@dataclass(frozen=True, slots=True)
class NoteLooking:
    """Note that a user looks at other series."""


Ask: TypeAlias = PutRequest | SeeState | NoteLooking


@dataclass(frozen=True, slots=True)
class Letter:
    """One message to a training."""

    v: int
    id: str
    session: str
    """The training that is meant: a record may be copied, or trained again."""
    place: str
    """The record as the asking process sees it; empty in the record's own mailbox."""
    who: str
    """Name of the asking process, as text; the way in adds what the system knows."""
    ask: Ask


@dataclass(frozen=True, slots=True)
class Answer:
    """Answer to a letter; the fields of a ticket for a request."""

    v: int
    id: str
    state: Literal["queued", "applied", "refused", "seen"]
    queued_step: int = -1
    applied_step: int = -1
    text: str = ""
    seen: Mapping[str, Any] | None = None
    """State for a panel, in the answer to `SeeState`."""


REQUESTS: Mapping[str, type] = {
    "attach": Attach,
    "attach_preset": AttachPreset,
    "detach": Detach,
    "reschedule": Reschedule,
    "control": Control,
    "compiled": Compiled,
    "budget": Budgeted,
    "set": Set,
    "scale": Scale,
    "release": Release,
    "look": LookAt,
    "graph": BuildGraph,
    "examine": ExamineModel,
    "compare_with": CompareWith,
    "edit_rule": EditRule,
    "break": AddBreakpoint,
    "edit_break": EditBreakpoint,
    "unbreak": RemoveBreakpoint,
    "rewind": GoBack,
    "evaluate": EvaluateAt,
    "checkpoint": SaveCheckpoint,
}
"""The closed set of requests, named as the messages of the panel are."""

CONDITIONS: Mapping[str, type] = {
    one.kind: one for one in (AtStep, OnAlert, OnSeries, OnNan, OnError)
}

CODING = Coding(
    {
        Ask: TaggedUnion("ask", {"put": PutRequest, "see": SeeState, "looked_at": NoteLooking}),
        Request: TaggedUnion("do", REQUESTS),
        PauseCondition: TaggedUnion("when", CONDITIONS),
    }
)


def new_id() -> str:
    """Return a name for a letter; sorted by name, letters are in the order of writing."""
    return f"{time.time_ns():016x}{secrets.token_hex(8)}"


def name_of(request: Request) -> str:
    """Return the name of a request, for people.

    Examples
    --------
    >>> name_of(Control("pause")), name_of(LookAt("fc1"))
    ('pause', 'look')
    """
    if isinstance(request, Control):
        return request.action
    return next(name for name, kind in REQUESTS.items() if kind is type(request))


def letter_bytes(letter: Letter) -> bytes:
    """Return a letter as one line of JSON.

    Raises
    ------
    LetterError
        It is too large.
    """
    content = _line(letter)
    if len(content) > MOST_LETTER_BYTES:
        raise LetterError(f"the request has {len(content)} bytes, more than {MOST_LETTER_BYTES}")
    return content


def read_letter(content: bytes) -> Letter:
    """Parse a letter.

    Raises
    ------
    LetterError
        It is too large, or not one of the letters above.
    ProbeError
        The request refuses its own values.
    """
    if len(content) > MOST_LETTER_BYTES:
        raise LetterError(f"a letter has more than {MOST_LETTER_BYTES} bytes")
    letter = CODING.read(Letter, _of_this_version(content, "a letter"), "a letter")
    if not KEY.fullmatch(letter.id) or not KEY.fullmatch(letter.session):
        raise LetterError("id and session of a letter are 32 hexadecimal digits")
    if len(letter.who) > LONGEST_NAME or len(letter.place) > MOST_LETTER_BYTES:
        raise LetterError(f"the name of who asks has more than {LONGEST_NAME} characters")
    return letter


def answer_bytes(answer: Answer) -> bytes:
    """Return an answer as one line of JSON."""
    return _line(answer)


def read_answer(content: bytes) -> Answer:
    """Parse an answer.

    Raises
    ------
    LetterError
    """
    document = _of_this_version(content, "an answer")
    seen = document.pop("seen", None)
    answer = CODING.read(Answer, document, "an answer")
    return replace(answer, seen=seen if isinstance(seen, dict) else None)


def _of_this_version(content: bytes, where: str) -> dict[str, Any]:
    document = parsed_json(content, where)
    version = document.get("v")
    if version != VERSION:
        raise LetterError(
            f"{where} has version {str(version)[:20]}, this notebook_probe reads {VERSION}: "
            "use the same version on both sides"
        )
    return document


def _line(value: Letter | Answer) -> bytes:
    return json.dumps(CODING.plain(value), allow_nan=False, separators=(",", ":")).encode() + b"\n"
