"""What a panel draws before anybody has chosen, and of what was just attached."""

from __future__ import annotations

from notebook_probe.run.attach.requests import Attach
from notebook_probe.run.health.status import ProbeStatus
from tests.explorer.fakes import FakeControls, FakeStream, FakeVectors
from tests.explorer.talk import Talk


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
