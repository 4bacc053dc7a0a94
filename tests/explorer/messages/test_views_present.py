"""Who sees the panel, and when the next frame may go out."""

from __future__ import annotations

from notebook_probe.explorer.messages.views_present import DEFAULT_WIDTH, PATIENCE_S, ViewsPresent
from notebook_probe.explorer.messages.wire import Ack


def ack(kind: str, seq: int) -> Ack:
    return {"v": 1, "type": "ack", "view": "x", "kind": kind, "seq": seq}  # type: ignore[typeddict-item]


def test_nobody_is_there_until_a_view_says_hello() -> None:
    audience = ViewsPresent()
    assert not audience.present
    audience.came("x")
    assert audience.present
    audience.seen("x", False)
    assert not audience.present


def test_one_visible_view_is_enough() -> None:
    audience = ViewsPresent()
    audience.came("x")
    audience.came("y")
    audience.seen("x", False)
    assert audience.present


def test_a_view_that_cannot_speak_yet_is_expected_until_one_does() -> None:
    audience = ViewsPresent()
    audience.expected = True
    assert audience.present
    audience.came("x")
    audience.seen("x", False)
    assert not audience.present


def test_one_frame_waits_for_its_acknowledgement() -> None:
    audience = ViewsPresent()
    assert audience.ready("lines", 0.0)
    seq = audience.sends("lines", 0.0)
    assert not audience.ready("lines", 0.1)
    assert audience.ready("heat", 0.1), "the kinds do not wait for each other"
    audience.painted(ack("lines", seq - 1))
    assert not audience.ready("lines", 0.1)
    audience.painted(ack("lines", seq))
    assert audience.ready("lines", 0.1)


def test_without_acknowledgements_frames_come_seldom_but_come() -> None:
    audience = ViewsPresent()
    audience.sends("lines", 0.0)
    assert not audience.ready("lines", PATIENCE_S)
    assert audience.ready("lines", PATIENCE_S + 0.01)


def test_a_new_view_waits_for_nobody() -> None:
    audience = ViewsPresent()
    audience.sends("lines", 0.0)
    audience.came("y")
    assert audience.ready("lines", 0.0)


def test_frames_are_as_wide_as_the_widest_visible_view() -> None:
    audience = ViewsPresent()
    assert audience.width("lines") == DEFAULT_WIDTH
    for view, width in (("x", 500), ("y", 900)):
        audience.came(view)
        audience.resized(
            {"v": 1, "type": "viewport", "view": view, "line_px": width, "heat_px": 300}
        )
    assert (audience.width("lines"), audience.width("heat")) == (900, 300)
    audience.seen("y", False)
    assert audience.width("lines") == 500
