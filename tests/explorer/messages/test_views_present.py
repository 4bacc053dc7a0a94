"""Who sees the panel, and when the next frame may go out."""

from __future__ import annotations

from notebook_probe.explorer.messages.views_present import DEFAULT_WIDTH, PATIENCE_S, ViewsPresent
from notebook_probe.explorer.messages.wire import Ack, Viewport


def ack(kind: str, seq: int) -> Ack:
    return {"v": 1, "type": "ack", "view": "x", "painted": {kind: seq}}


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


def test_one_acknowledgement_may_be_of_frames_of_any_name() -> None:
    audience = ViewsPresent()
    seqs = {kind: audience.sends(kind, 0.0) for kind in ("lines", "depth")}
    audience.painted({"v": 1, "type": "ack", "view": "x", "painted": {**seqs, "never sent": 9}})
    assert audience.ready("lines", 0.1)
    assert audience.ready("depth", 0.1)


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


def viewport(view: str, ratio: float = 1.0, **widths: int) -> Viewport:
    return {"v": 1, "type": "viewport", "view": view, "widths": widths, "pixel_ratio": ratio}


def test_frames_are_as_wide_as_the_widest_visible_view() -> None:
    audience = ViewsPresent()
    assert audience.width("lines") == DEFAULT_WIDTH
    for view, width in (("x", 500), ("y", 900)):
        audience.came(view)
        audience.resized(viewport(view, lines=width, heat=300))
    assert (audience.width("lines"), audience.width("heat")) == (900, 300)
    audience.seen("y", False)
    assert audience.width("lines") == 500


def test_frames_are_as_sharp_as_the_sharpest_screen() -> None:
    audience = ViewsPresent()
    assert audience.pixel_ratio == 1.0
    for view, ratio in (("x", 1.5), ("y", 2.0)):
        audience.came(view)
        audience.resized(viewport(view, ratio, lines=500))
    assert audience.pixel_ratio == 2.0
    audience.seen("y", False)
    assert audience.pixel_ratio == 1.5


def test_a_kind_is_shown_where_a_visible_view_has_room_for_it() -> None:
    audience = ViewsPresent()
    assert audience.shows("depth"), "nobody can say so before the cell ends"
    audience.came("x")
    assert not audience.shows("depth")
    audience.resized(viewport("x", depth=300))
    assert audience.shows("depth")
    assert not audience.shows("another")
    audience.seen("x", False)
    assert not audience.shows("depth")
    audience.seen("x", True)
    audience.resized(viewport("x"))
    assert not audience.shows("depth"), "it was folded"
