"""Letters: a closed set, parsed strictly, whatever bytes come."""

from __future__ import annotations

import dataclasses
import json
import random
from typing import Any, get_args

import pytest

from notebook_probe.errors import BreakpointError, ProbeError
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
    Comparison,
    OnAlert,
    OnError,
    OnNan,
    OnSeries,
)
from notebook_probe.run.breakpoints.requests import AddBreakpoint, EditBreakpoint, RemoveBreakpoint
from notebook_probe.run.going_back.requests import EvaluateAt, GoBack, SaveCheckpoint
from notebook_probe.run.remote_control.coding import LetterError
from notebook_probe.run.remote_control.letters import (
    MOST_LETTER_BYTES,
    VERSION,
    Letter,
    PutRequest,
    SeeState,
    letter_bytes,
    new_id,
    read_letter,
)

EVERY: list[Request] = [
    Attach(("fc1", "(root)"), "grad_norm", "every(10)"),
    Attach(None, "grad_norm"),
    AttachPreset("gradients"),
    Detach(("fc1",), "grad_norm"),
    Reschedule(None, "grad_norm", "every(5)"),
    Control("pause"),
    Compiled("eager"),
    Budgeted(None),
    Set("lr", 1e-4, 0, hold=True),
    Set("depth", 3),
    LookAt("fc1", 4),
    BuildGraph(),
    ExamineModel(),
    EditRule("dead_units", {"most": 0.3}),
    CompareWith(("runs/good-1.zarr", "runs/good-2.zarr")),
    CompareWith(()),
    AddBreakpoint(AtStep(12)),
    AddBreakpoint(OnAlert(("dead_units",))),
    AddBreakpoint(OnSeries("fc1", "grad_norm", Comparison(">", 10.0), 2, "update")),
    AddBreakpoint(OnNan("update")),
    AddBreakpoint(OnError()),
    EditBreakpoint(1, number=3.5),
    RemoveBreakpoint(2),
    Scale("lr", 0.5),
    Release("lr"),
    GoBack(100, rate=1e-3, pause_at=120),
    EvaluateAt(100, "spectra"),
    SaveCheckpoint(),
]


def letter(request: Request) -> Letter:
    return Letter(VERSION, new_id(), new_id(), "1:2", "a test", PutRequest(request))


def changed(**fields: Any) -> bytes:
    """A good letter with other fields; None takes one away."""
    document = json.loads(letter_bytes(letter(Control("pause"))))
    document |= fields
    return json.dumps({key: value for key, value in document.items() if value is not None}).encode()


@pytest.mark.parametrize("request_", EVERY, ids=repr)
def test_every_request_comes_back_from_its_bytes(request_: Request) -> None:
    sent = letter(request_)
    content = letter_bytes(sent)
    assert content.endswith(b"\n")
    assert b"\n" not in content[:-1], "a letter is a line"
    assert read_letter(content) == sent


def test_the_set_of_requests_is_that_of_a_click() -> None:
    assert {type(one) for one in EVERY} == {*get_args(Request)}


MALFORMED = [
    (b"", "no JSON"),
    (b"\xff\xfe", "no JSON"),
    (b"[1]", "not an object"),
    (b'{"v": NaN}', "no JSON"),
    (b"[" * 100_000, "no JSON"),
    (b'{"v": ' + b"9" * 100_000 + b"}", "no JSON"),
    (changed(v=2), "version 2"),
    (changed(id="../../etc/passwd"), "hexadecimal"),
    (changed(session=7), "not str"),
    (changed(who="x" * 1000), "characters"),
    (changed(who=None), "lacks 'who'"),
    (changed(code="print(1)"), "has no 'code'"),
    (changed(ask={"ask": "exec", "code": "1"}), "'exec'"),
    (changed(ask={"ask": "put"}), "lacks 'request'"),
    (changed(ask={"ask": "put", "request": {"do": "run"}}), "'run'"),
    (changed(ask={"ask": "put", "request": {"do": ["set"]}}), "do"),
    (changed(ask={"ask": "put", "request": {"do": "control", "action": "halt"}}), "'halt'"),
    (changed(ask={"ask": "put", "request": {"do": "unbreak", "id": True}}), "not int"),
    (changed(ask={"ask": "put", "request": {"do": "unbreak", "id": 2**63}}), "not int"),
    (changed(ask={"ask": "put", "request": {"do": "unbreak", "id": 2**70}}), "digits"),
    (
        changed(ask={"ask": "put", "request": {"do": "set", "name": "lr", "value": "1e-3"}}),
        "not float",
    ),
    (
        changed(ask={"ask": "put", "request": {"do": "look", "module": "a", "__class__": "b"}}),
        "'__class__'",
    ),
    (b'{"v":1,"x":"' + b"x" * MOST_LETTER_BYTES + b'"}', "more than"),
]


@pytest.mark.parametrize(("content", "why"), MALFORMED, ids=[why for _, why in MALFORMED])
def test_a_malformed_letter_is_refused_with_its_reason(content: bytes, why: str) -> None:
    with pytest.raises(LetterError, match=why):
        read_letter(content)


def test_damaged_letters_are_refused_or_read_and_raise_nothing_else() -> None:
    rng = random.Random(0)
    good = [letter_bytes(letter(request)) for request in EVERY]
    n_refused = 0
    for _ in range(3000):
        content = bytearray(rng.choice(good))
        for _ in range(rng.randint(1, 4)):
            place = rng.randrange(len(content))
            content[place : place + rng.randint(0, 3)] = rng.choice(
                [b"null", b"[", b"}", b'"', b"-1e999", b"true", b"\xff", b"", b"1", b"{}"]
            )
        try:
            read_letter(bytes(content))
        except ProbeError:
            n_refused += 1
    assert n_refused > 2500


def test_a_letter_that_is_too_large_is_not_sent() -> None:
    with pytest.raises(LetterError, match="more than"):
        letter_bytes(letter(Attach(("x" * MOST_LETTER_BYTES,), "grad_norm")))


def test_a_request_that_refuses_its_own_values_says_so_as_a_click_does() -> None:
    bad = {"do": "break", "condition": {"when": "step", "step": -1}}
    with pytest.raises(BreakpointError, match="step"):
        read_letter(changed(ask={"ask": "put", "request": bad}))


def test_names_of_letters_are_in_the_order_of_writing() -> None:
    names = [new_id() for _ in range(100)]
    assert names == sorted(names)
    assert len({*names}) == 100


def test_fields_that_have_defaults_may_be_left_out() -> None:
    found = read_letter(changed(ask={"ask": "see"}))
    assert found.ask == SeeState()
    assert dataclasses.asdict(found)["who"] == "a test"
