"""Who sees the panel, and when the next frame may go out."""

from __future__ import annotations

from notebook_probe.explorer.messages.from_view import Ack, Viewport
from notebook_probe.explorer.messages.view_registry import DEFAULT_WIDTH, PATIENCE_S, ViewsPresent


def ack(kind: str, seq: int) -> Ack:
    return {"v": 1, "type": "ack", "view": "x", "painted": {kind: seq}}


def test_nobody_is_there_until_a_view_says_hello() -> None:
    present = ViewsPresent()
    assert not present.present
    present.came("x")
    assert present.present
    present.seen("x", False)
    assert not present.present


def test_one_visible_view_is_enough() -> None:
    present = ViewsPresent()
    present.came("x")
    present.came("y")
    present.seen("x", False)
    assert present.present


def test_a_view_that_cannot_speak_yet_is_expected_until_one_does() -> None:
    present = ViewsPresent()
    present.expected = True
    assert present.present
    present.came("x")
    present.seen("x", False)
    assert not present.present


def test_one_frame_waits_for_its_acknowledgement() -> None:
    present = ViewsPresent()
    assert present.ready("lines", 0.0)
    seq = present.sends("lines", 0.0)
    assert not present.ready("lines", 0.1)
    assert present.ready("heat", 0.1), "the kinds do not wait for each other"
    present.painted(ack("lines", seq - 1))
    assert not present.ready("lines", 0.1)
    present.painted(ack("lines", seq))
    assert present.ready("lines", 0.1)


def test_one_acknowledgement_may_be_of_frames_of_any_name() -> None:
    present = ViewsPresent()
    seqs = {kind: present.sends(kind, 0.0) for kind in ("lines", "count")}
    present.painted({"v": 1, "type": "ack", "view": "x", "painted": {**seqs, "never sent": 9}})
    assert present.ready("lines", 0.1)
    assert present.ready("count", 0.1)


def test_without_acknowledgements_frames_come_seldom_but_come() -> None:
    present = ViewsPresent()
    present.sends("lines", 0.0)
    assert not present.ready("lines", PATIENCE_S)
    assert present.ready("lines", PATIENCE_S + 0.01)


def test_a_new_view_waits_for_nobody() -> None:
    present = ViewsPresent()
    present.sends("lines", 0.0)
    present.came("y")
    assert present.ready("lines", 0.0)


def viewport(view: str, ratio: float = 1.0, **widths: int) -> Viewport:
    return {"v": 1, "type": "viewport", "view": view, "widths": widths, "pixel_ratio": ratio}


def test_frames_are_as_wide_as_the_widest_visible_view() -> None:
    present = ViewsPresent()
    assert present.width("lines") == DEFAULT_WIDTH
    for view, width in (("x", 500), ("y", 900)):
        present.came(view)
        present.resized(viewport(view, lines=width, heat=300))
    assert (present.width("lines"), present.width("heat")) == (900, 300)
    present.seen("y", False)
    assert present.width("lines") == 500


def test_frames_are_as_sharp_as_the_sharpest_screen() -> None:
    present = ViewsPresent()
    assert present.pixel_ratio == 1.0
    for view, ratio in (("x", 1.5), ("y", 2.0)):
        present.came(view)
        present.resized(viewport(view, ratio, lines=500))
    assert present.pixel_ratio == 2.0
    present.seen("y", False)
    assert present.pixel_ratio == 1.5


def test_a_kind_is_shown_where_a_visible_view_has_room_for_it() -> None:
    present = ViewsPresent()
    assert present.shows("depth"), "nobody can say so before the cell ends"
    present.came("x")
    assert not present.shows("depth")
    present.resized(viewport("x", depth=300))
    assert present.shows("depth")
    assert not present.shows("another")
    present.seen("x", False)
    assert not present.shows("depth")
    present.seen("x", True)
    present.resized(viewport("x"))
    assert not present.shows("depth"), "it was folded"
