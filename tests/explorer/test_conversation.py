"""What views say becomes selections and requests; what is new is told to those who look."""

from __future__ import annotations

import threading

import numpy as np
import pytest

import notebook_probe as nbp
from notebook_probe.explorer.draw.drawings import Drawings
from notebook_probe.explorer.draw.lines import average_lines
from notebook_probe.explorer.messages.selection import PanelSelection
from tests.explorer.fakes import FakeControls
from tests.explorer.talk import Talk


def test_a_new_view_is_told_everything(talk: Talk) -> None:
    assert talk.is_told() == []
    talk.says("hello", view="x")
    assert talk.is_told() == ["model", "selection", "heat", "lines", "status", "alerts"]
    talk.acknowledges()
    assert talk.is_told() == []
    talk.says("hello", view="y")
    assert talk.is_told() == ["model", "selection", "heat", "lines", "status", "alerts"]


def test_an_average_that_is_not_whole_is_gone_on_with_though_nothing_was_recorded(
    talk: Talk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(average_lines, "AT_ONCE", 100)
    monkeypatch.setattr(average_lines, "PER_FRAME", 100)
    talk.stream.append(range(10, 250), grad_norm=1.0)
    talk.says("hello", view="x")
    talk.selects(series=[("a", "grad_norm")], smooth=0.9)
    told, shares = [True], []
    while told:
        told = ["lines" in talk.is_told()][: talk.conversation.has_more]
        shares.append(talk.last("lines")["averaged"])
        talk.acknowledges()
    assert shares == pytest.approx([0.4, 0.8, 1.0])
    assert talk.is_told() == []


def test_nothing_is_told_while_nobody_looks(talk: Talk) -> None:
    talk.says("hello", view="x")
    talk.is_told()
    talk.says("visible", view="x", visible=False)
    talk.stream.append([10], grad_norm=2.0)
    assert talk.is_told() == []
    talk.says("visible", view="x", visible=True)
    talk.acknowledges()
    assert {"heat", "lines"} <= set(talk.is_told())


def test_a_frame_waits_until_the_last_one_was_painted(talk: Talk) -> None:
    talk.says("hello", view="x")
    talk.is_told()
    talk.stream.append([10], grad_norm=2.0)
    assert talk.is_told() == []
    talk.acknowledges()
    assert talk.is_told() == ["heat", "lines"]
    assert talk.last("heat")["last_step"] == 10


def test_a_view_gets_frames_of_its_width(talk: Talk) -> None:
    talk.stream.append(range(10, 5000), grad_norm=np.random.default_rng(0).random((4990, 3)))
    talk.says("hello", view="x")
    talk.says("viewport", view="x", widths={"lines": 100, "heat": 200}, pixel_ratio=1.0)
    talk.selects(series=[["a", "grad_norm"]])
    talk.is_told()
    assert talk.last("lines")["series"][0]["n"] <= 202
    assert 50 <= talk.last("heat")["columns"] <= 200


def test_the_selection_is_told_to_all_views_in_the_colours_of_the_kernel(talk: Talk) -> None:
    talk.says("hello", view="x")
    talk.is_told()
    talk.acknowledges()
    talk.selects(series=[["b", "grad_norm"], ["a", "grad_norm"]], log_y=False)
    assert talk.is_told() == ["selection", "heat", "lines"]
    assert not talk.last("selection")["log_y"]
    assert [one["colour"] for one in talk.last("lines")["series"]] == [0, 1]


@pytest.mark.parametrize(("window", "kept"), [((3, 7), (3, 7)), ((7, 3), None), (None, None)])
def test_steps_that_a_hand_moves_are_in_the_next_answer(
    talk: Talk, window: tuple[float, float] | None, kept: tuple[float, float] | None
) -> None:
    talk.says("hello", view="x")
    talk.selects(window=(1, 2), series=[["b", "grad_norm"]])
    talk.is_told()
    talk.acknowledges()
    talk.says("moved", window=window)
    assert talk.is_told() == ["selection", "heat", "lines"]
    assert talk.last("selection")["window"] == kept
    assert talk.last("selection")["series"] == [("b", "grad_norm")], "nothing else changes"


def drawn_inline(talk: Talk) -> None:
    """Registered views are drawn in the test's own thread."""
    talk.conversation._drawings = Drawings(talk.source, run=lambda task: task())


def test_a_registered_view_is_told_named_and_drawn_where_somebody_sees_it(talk: Talk) -> None:
    drawn_inline(talk)
    given: list[tuple[object, PanelSelection]] = []

    @nbp.view("mine", esm="// draws it")
    def mine(source: object, selection: PanelSelection) -> dict[str, str]:
        given.append((source, selection))
        return {"home": selection.home}

    talk.says("hello", view="x")
    plots = ["model", "selection", "heat", "lines", "status", "alerts"]
    assert talk.is_told() == [*plots, "views", "esm"], "its place is not known yet"
    talk.acknowledges()
    talk.says("viewport", view="x", widths={"lines": 500, "heat": 500}, pixel_ratio=1.0)
    assert "drawn" not in talk.is_told()
    talk.acknowledges()
    widths = {"lines": 500, "heat": 500, "mine": 480}
    talk.says("viewport", view="x", widths=widths, pixel_ratio=2.0)
    assert talk.is_told() == ["drawn"]
    assert talk.last("drawn")["data"] == {"home": "grad_norm"}
    assert given == [(talk.source, talk.conversation.look())]

    talk.selects(home="mean")
    assert "drawn" not in talk.is_told(), "the last one was not painted yet"
    talk.says("ack", view="x", painted={"mine": talk.last("drawn")["seq"]})
    assert "drawn" in talk.is_told()
    assert talk.last("drawn")["data"] == {"home": "mean"}
    talk.says("ack", view="x", painted={"mine": talk.last("drawn")["seq"]})
    talk.says("fold", name="mine", folded=True)
    talk.selects(home="grad_norm")
    assert "drawn" not in talk.is_told()
    assert [row["folded"] for row in talk.last("views")["rows"]] == [True]


def test_a_registered_view_waits_for_something_to_draw(controls: FakeControls) -> None:
    talk = Talk(controls)
    drawn_inline(talk)
    nbp.view("mine")(lambda source, selection: None)
    talk.says("hello", view="x")
    talk.says("viewport", view="x", widths={"mine": 480}, pixel_ratio=1.0)
    assert "drawn" not in talk.is_told()
    talk.stream.append([0], grad_norm=1.0)
    assert "drawn" in talk.is_told()


def test_a_closed_panel_ends_the_threads_of_its_views(talk: Talk) -> None:
    threads: list[threading.Thread] = []
    drawn = threading.Event()

    @nbp.view("mine")
    def mine(source: object, selection: object) -> None:
        threads.append(threading.current_thread())
        drawn.set()

    talk.conversation.expect_views(blind=True)
    talk.is_told()
    assert drawn.wait(60)
    talk.conversation.close()
    threads[0].join(60)
    assert not threads[0].is_alive()


def test_an_exception_of_a_view_becomes_a_problem_and_the_other_view_goes_on(
    talk: Talk, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*arguments: object) -> None:
        raise RuntimeError("no pixels left")

    monkeypatch.setattr(talk.conversation._frames._plots["heat"], "frame", broken)
    talk.says("hello", view="x")
    assert talk.is_told() == ["model", "selection", "lines", "status", "alerts"]
    talk.is_told()
    [problem] = talk.last("status")["problems"]
    assert problem["text"] == "view 'heat': RuntimeError: no pixels left"


def test_a_record_that_cannot_be_read_is_a_problem_in_the_panel(
    talk: Talk, monkeypatch: pytest.MonkeyPatch
) -> None:
    def gone(*arguments: object) -> None:
        raise OSError("no such disk")

    monkeypatch.setattr(talk.stream, "values", gone)
    talk.says("hello", view="x")
    talk.is_told()
    [problem] = talk.last("status")["problems"]
    assert problem["text"] == "reading the record: OSError: no such disk"


def test_an_exception_that_repeats_is_counted(talk: Talk) -> None:
    talk.says("hello", view="x")
    for _ in range(3):
        talk.conversation.problem(ValueError("no"), "a click")
    talk.is_told()
    [problem] = talk.last("status")["problems"]
    assert (problem["text"], problem["count"]) == ("a click: ValueError: no", 3)


def test_an_export_arrives_as_a_file(talk: Talk) -> None:
    talk.says("hello", view="x")
    talk.is_told()
    talk.says("export", kind="csv")
    assert talk.is_told() == ["exported"]
    message, [content] = talk.heard[-1]
    assert (message["filename"], message["mime"]) == ("fake.csv", "text/csv")
    assert bytes(content).startswith(b"module,quantity,step,time,value\na,grad_norm,0,")
