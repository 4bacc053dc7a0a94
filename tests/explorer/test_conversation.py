"""What views say becomes selections and requests; what is new is told to those who look."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

import notebook_probe as nbp
from notebook_probe.explorer.conversation import PanelSession
from notebook_probe.explorer.draw import average_lines
from notebook_probe.explorer.draw.drawings import Drawings
from notebook_probe.explorer.messages.selection import PanelSelection
from notebook_probe.explorer.parse import parse
from notebook_probe.explorer.parts.all_parts import PARTS
from notebook_probe.run.attach.requests import Attach, Compiled, Control, Detach
from notebook_probe.run.controls import Controls
from notebook_probe.run.health.status import ProbeStatus
from tests.explorer.fakes import FakeControls, FakeSource, FakeStream, FakeVectors


class Talk:
    """One view of a panel on a small run: says things, and keeps what it is told."""

    def __init__(self, controls: Controls | None, *quantities: str) -> None:
        self.stream = FakeStream("every_1", ["a", "b", "c"], quantities or ["grad_norm"])
        self.source = FakeSource(self.stream)
        self.conversation = PanelSession(self.source, controls)
        self.heard: list[tuple[Mapping[str, Any], list[memoryview]]] = []

    def says(self, message_type: str, /, **fields: Any) -> None:
        message = parse({"v": 1, "type": message_type, **fields})
        assert message["type"] != "ping"
        self.conversation.receive(message)

    def selects(self, **changes: Any) -> None:
        self.says("selection", **{**self.conversation.look().message(), **changes})

    def is_told(self) -> list[str]:
        """The types of the messages of one refresh; those of parts have tests of their own."""
        before = len(self.heard)
        head = self.conversation.head()
        self.conversation.publish(lambda *message: self.heard.append(message), "own subshell", head)
        types = [message["type"] for message, _ in self.heard[before:]]
        return [type for type in types if type not in {part.name for part in PARTS}]

    def last(self, kind: str) -> Mapping[str, Any]:
        return [message for message, _ in self.heard if message["type"] == kind][-1]

    def acknowledges(self) -> None:
        for kind in ("lines", "heat"):
            if any(message["type"] == kind for message, _ in self.heard):
                self.says("ack", view="x", painted={kind: self.last(kind)["seq"]})


@pytest.fixture
def controls() -> FakeControls:
    return FakeControls()


@pytest.fixture
def talk(controls: FakeControls) -> Talk:
    talk = Talk(controls)
    talk.stream.append(range(10), grad_norm=1.0)
    return talk


def test_a_new_view_is_told_everything(talk: Talk) -> None:
    assert talk.is_told() == []
    talk.says("hello", view="x")
    assert talk.is_told() == ["model", "selection", "status", "alerts", "heat", "lines"]
    talk.acknowledges()
    assert talk.is_told() == []
    talk.says("hello", view="y")
    assert talk.is_told() == ["model", "selection", "status", "alerts", "heat", "lines"]


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


def test_an_attach_without_a_schedule_is_refused_before_the_run_is_asked(
    talk: Talk, controls: FakeControls
) -> None:
    talk.says("hello", view="x")
    talk.says("attach", id="1", where=["a"], quantity="grad_norm", schedule=" ")
    talk.is_told()
    [ticket] = talk.last("status")["tickets"]
    assert (ticket["state"], ticket["text"]) == (
        "refused",
        "say when to measure, such as every(10)",
    )
    assert controls.requests == []


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


def test_the_first_data_choose_the_home_quantity_and_no_series(controls: FakeControls) -> None:
    talk = Talk(controls, "mean", "grad_norm")
    talk.says("hello", view="x")
    assert "heat" not in talk.is_told()
    talk.stream.append([0], mean=1.0)
    talk.is_told()
    assert (talk.last("selection")["home"], talk.last("selection")["series"]) == ("mean", [])
    talk.stream.append([1], mean=1.0, grad_norm=1.0)
    talk.is_told()
    assert talk.last("selection")["home"] == "mean", "it is chosen once"


LOSS, ACCURACY = ("(root)", "loss"), ("(root)", "accuracy")


def test_what_the_loop_logs_is_drawn_from_its_first_value_and_stays_removed(
    controls: FakeControls,
) -> None:
    talk = Talk(controls)
    logged = FakeStream("logged", ["(root)"], ["lr", "accuracy", "loss"], logged=True)
    talk.source.given.append(logged)
    talk.says("hello", view="x")
    talk.stream.append([0], grad_norm=1.0)
    logged.append([0], lr=0.1)
    talk.is_told()
    assert talk.last("selection")["series"] == []
    logged.append([1], lr=0.1, loss=2.0, accuracy=0.5)
    talk.is_told()
    assert talk.last("selection")["series"] == [LOSS, ACCURACY]
    assert talk.last("selection")["home"] == "grad_norm"
    assert talk.last("status")["logged"] == ["lr", "accuracy", "loss"]
    talk.selects(series=[ACCURACY])
    logged.append([2], loss=1.0)
    talk.is_told()
    assert talk.last("selection")["series"] == [ACCURACY]


def test_what_is_attached_is_drawn_beside_what_nobody_chose(
    talk: Talk, controls: FakeControls
) -> None:
    logged = FakeStream("logged", ["(root)"], ["loss"], logged=True)
    talk.source.given.append(logged)
    logged.append([0], loss=1.0)
    talk.says("hello", view="x")
    talk.says("attach", id="1", where=["b"], quantity="grad_norm", schedule="every(1)")
    controls.apply(8)
    talk.is_told()
    assert talk.last("selection")["series"] == [LOSS, ("b", "grad_norm")]


def test_a_choice_of_the_user_is_never_changed(controls: FakeControls) -> None:
    talk = Talk(controls, "mean", "grad_norm")
    talk.says("hello", view="x")
    talk.stream.append([0], mean=1.0, grad_norm=1.0)
    talk.is_told()
    talk.selects(home="mean", series=[["a", "mean"]])
    talk.says("attach", id="1", where=["b"], quantity="grad_norm", schedule="every(1)")
    controls.apply(8)
    talk.is_told()
    assert talk.last("selection")["home"] == "mean"
    assert talk.last("selection")["series"] == [("a", "mean"), ("b", "grad_norm")]


def test_what_was_attached_is_drawn_at_each_of_its_modules(
    talk: Talk, controls: FakeControls
) -> None:
    talk.says("hello", view="x")
    talk.says("attach", id="1", where=["b", "c"], quantity="grad_norm", schedule="every(1)")
    talk.is_told()
    assert talk.last("selection")["series"] == []
    controls.apply(8)
    talk.is_told()
    assert talk.last("selection")["series"] == [("b", "grad_norm"), ("c", "grad_norm")]
    talk.selects(series=[])
    talk.is_told()
    assert talk.last("selection")["series"] == [], "once is enough"


def test_a_vector_is_not_drawn_as_a_line(talk: Talk, controls: FakeControls) -> None:
    talk.source.given_vectors.append(FakeVectors("every_1", ["a"], ["output_histogram"]))
    talk.says("hello", view="x")
    talk.says("attach", id="1", where=["a"], quantity="output_histogram", schedule="every(1)")
    controls.apply(8)
    talk.is_told()
    assert talk.last("selection")["series"] == []
    assert talk.last("selection")["home"] == "output_histogram", "it is what stands above them"
    assert talk.last("status")["vectors"] == {"output_histogram": "bars"}
    assert "output_histogram" not in talk.last("status")["recorded"]


def test_a_click_that_names_no_place_leaves_it_to_the_run_and_its_first_series_is_drawn(
    talk: Talk, controls: FakeControls
) -> None:
    talk.says("hello", view="x")
    talk.says("attach", id="1", where=[], quantity="norm", schedule="every(5)")
    assert controls.requests == [Attach(None, "norm", "every(5)")]
    controls.attached = [ProbeStatus("b", "norm", "every(5)", 8, 0, -1)]
    controls.apply(8)
    talk.is_told()
    assert talk.last("selection")["series"] == [("b", "norm")]


def test_of_what_was_attached_to_many_modules_as_many_are_drawn_as_there_are_colours(
    talk: Talk, controls: FakeControls
) -> None:
    many = [f"m{k}" for k in range(40)]
    talk.says("hello", view="x")
    talk.says("attach", id="1", where=many, quantity="grad_norm", schedule="every(1)")
    controls.apply(8)
    talk.is_told()
    drawn = talk.last("selection")["series"]
    assert drawn == [(one, "grad_norm") for one in many[:7]]


def test_clicks_become_requests_with_a_ticket_each(talk: Talk, controls: FakeControls) -> None:
    talk.says("hello", view="x")
    talk.says("attach", id="1", where=["a", "b"], quantity="norm", schedule="every(5)")
    talk.says("detach", id="2", where=["a"], quantity="")
    talk.says("control", id="3", action="pause")
    talk.says("compiled", id="4", steps="eager")
    assert controls.requests == [
        Attach(("a", "b"), "norm", "every(5)"),
        Detach(("a",), ""),
        Control("pause"),
        Compiled("eager"),
    ]
    talk.is_told()
    tickets = talk.last("status")["tickets"]
    assert [(row["id"], row["state"], row["queued_step"]) for row in tickets] == [
        ("1", "queued", 7),
        ("2", "queued", 7),
        ("3", "queued", 7),
        ("4", "queued", 7),
    ]
    controls.apply(8)
    talk.is_told()
    assert {row["applied_step"] for row in talk.last("status")["tickets"]} == {8}


def test_only_the_newest_tickets_are_told(talk: Talk) -> None:
    talk.says("hello", view="x")
    for click in range(12):
        talk.says("detach", id=str(click), where=["a"], quantity="")
    talk.is_told()
    ids = [row["id"] for row in talk.last("status")["tickets"]]
    assert ids == [str(click) for click in range(4, 12)]


def test_a_click_that_cannot_act_is_refused_with_the_reason(
    talk: Talk, controls: FakeControls
) -> None:
    talk.says("hello", view="x")
    talk.is_told()
    talk.says("control", id="1", action="resume")
    controls.state = "finished"
    talk.is_told()
    talk.says("attach", id="2", where=["a"], quantity="norm", schedule="every(1)")
    assert controls.requests == []
    talk.is_told()
    texts = [(row["state"], row["text"]) for row in talk.last("status")["tickets"]]
    assert texts == [("refused", "not paused"), ("refused", "this run has ended")]


def test_an_opened_record_refuses_requests() -> None:
    talk = Talk(None)
    talk.source.finished = True
    talk.says("hello", view="x")
    talk.says("control", id="1", action="stop")
    talk.is_told()
    assert talk.last("status")["tickets"][0]["text"] == "this run has ended"
    assert not talk.last("model")["live"]


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
    plots = ["model", "selection", "status", "alerts", "heat", "lines"]
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

    monkeypatch.setattr(talk.conversation._plots["heat"], "frame", broken)
    talk.says("hello", view="x")
    assert talk.is_told() == ["model", "selection", "status", "alerts", "lines"]
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
