"""Nothing but the declared messages comes through the door."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from notebook_probe.explorer.messages.selection import PanelSelection
from notebook_probe.explorer.parse import MessageError, parse

HELLO = {"v": 1, "type": "hello", "view": "x"}
SELECTION: dict[str, Any] = {**PanelSelection(home="norm").message()}


def test_a_message_comes_through_with_its_pairs_as_tuples() -> None:
    sent = {**SELECTION, "series": [["fc", "norm"]], "window": [0, 10], "smooth": 0}
    message = parse(sent)
    assert message["type"] == "selection"
    assert message["series"] == [("fc", "norm")]
    assert message["window"] == (0, 10)


def test_frames_are_acknowledged_by_the_name_of_any_view() -> None:
    message = parse({"v": 1, "type": "ack", "view": "x", "painted": {"count": 3}})
    assert message["type"] == "ack"
    assert message["painted"] == {"count": 3}


def test_a_field_nobody_declared_does_not_come_through() -> None:
    assert parse({**HELLO, "extra": 1}) == HELLO


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("hello", "not a message"),
        ({"v": 2, "type": "hello", "view": "x"}, "reload the page"),
        ({"type": "hello", "view": "x"}, "version None"),
        ({"v": 1, "type": "helo"}, "close: 'hello'"),
        ({"v": 1, "type": ["hello"]}, "of type ['hello']"),
        ({"v": 1, "type": "hello"}, "hello.view of a view's message is None, not str"),
        ({"v": 1, "type": "visible", "view": "x", "visible": 1}, "visible.visible"),
        ({"v": 1, "type": "control", "id": "1", "action": "explode"}, "control.action"),
        ({"v": 1, "type": "compiled", "id": "1", "steps": "some"}, "compiled.steps"),
        ({"v": 1, "type": "budget", "id": "1", "percent": "5"}, "budget.percent"),
        ({**SELECTION, "series": [["fc"]]}, "selection.series"),
        ({**SELECTION, "window": [1, "2"]}, "selection.window"),
        ({**SELECTION, "smooth": True}, "selection.smooth"),
        ({"v": 1, "type": "attach", "id": "1", "where": "fc", "quantity": "q"}, "attach.where"),
        ({"v": 1, "type": "attach", "id": "1", "where": ["fc", 1]}, "attach.where"),
        ({"v": 1, "type": "ack", "view": "x", "painted": {"lines": "1"}}, "ack.painted"),
        ({"v": 1, "type": "ack", "view": "x", "painted": {1: 1}}, "ack.painted"),
    ],
)
def test_anything_else_is_answered_with_a_sentence(content: object, words: str) -> None:
    with pytest.raises(MessageError) as raised:
        parse(content)
    assert words in str(raised.value)


@pytest.mark.parametrize("address", [["slack://a/b/c"], {"to": "slack://a/b/c"}])
def test_what_is_no_single_value_is_named_by_its_type_alone(address: object) -> None:
    content = {"v": 1, "type": "notify", "id": "1", "address": address, "on": ["end"]}
    with pytest.raises(MessageError) as raised:
        parse(content)
    assert f"notify.address of a view's message is a {type(address).__name__}," in str(raised.value)
    assert "slack" not in str(raised.value)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=8,
)


@pytest.mark.slow
@given(st.dictionaries(st.sampled_from(["type", "view", "series", "window", "id", "where"]), JSON))
def test_no_content_raises_anything_but_the_sentence(content: dict[str, Any]) -> None:
    for kind in ("hello", "selection", "attach", "compiled", "ack", "export"):
        with suppress(MessageError):
            assert parse({"v": 1, **content, "type": kind})["type"] == kind
