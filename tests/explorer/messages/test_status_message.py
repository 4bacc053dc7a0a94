"""Model and status messages: complete for a new view, only news afterwards."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from notebook_probe.explorer.messages.reasons import reasons
from notebook_probe.explorer.messages.status_message import Report
from notebook_probe.explorer.messages.wire import ModelMessage, StatusMessage
from notebook_probe.record.format.source import ModuleRow
from notebook_probe.run.health.status import ProbeStatus
from tests.explorer.fakes import START_MS, FakeControls, FakeSource, FakeStream, FakeVectors

WALL_TIME = "notebook_probe.explorer.messages.opened_status.time.time"


def probe(module: str, **fields: Any) -> ProbeStatus:
    return ProbeStatus(module, "grad_norm", "every(1)", 0, 0, -1, **fields)


def model_of(report: Report) -> ModelMessage | None:
    return report.model(report.status())


def told(report: Report, **more: Any) -> StatusMessage | None:
    arguments: dict[str, Any] = {"recorded": {}, "tickets": [], "problems": [], **more}
    return report.message(report.status(), "own subshell", **arguments)


def test_the_model_is_told_once_and_again_to_a_new_view() -> None:
    report = Report(FakeSource(modules=["fc"]), FakeControls())
    model = model_of(report)
    assert model is not None
    assert model["modules"] == [("(root)", "Net", 30, 0, -1), ("fc", "Linear", 10, 10, 0)]
    assert model["quantities"][0]["name"] == "grad_norm"
    assert model["live"]
    assert model_of(report) is None
    report.forget()
    assert model_of(report) == model


def test_modules_that_are_added_are_told() -> None:
    source = FakeSource(modules=["fc"])
    report = Report(source, FakeControls())
    model_of(report)
    source.modules = (*source.modules, ModuleRow("late", "Linear", 4, 4, 0))
    model = model_of(report)
    assert model is not None
    assert model["modules"][-1] == ("late", "Linear", 4, 4, 0)
    assert model_of(report) is None


def test_calls_and_parameters_are_told_with_their_module_as_soon_as_they_have_a_place() -> None:
    stream = FakeStream("every_1", ["a", "a[0]"], ["output_std"])
    controls, source = FakeControls(), FakeSource(stream)
    report = Report(source, controls)
    model = model_of(report)
    assert model is not None
    assert model["entries"] == [("a[0]", "a")]
    controls.attached = [probe("b.weight"), probe("a")]
    model = model_of(report)
    assert model is not None
    assert model["entries"] == [("a[0]", "a"), ("b.weight", "b")]
    stream.modules = ("a", "a[0]", "a[1]")
    model = model_of(report)
    assert model is not None
    assert model["entries"] == [("a[0]", "a"), ("a[1]", "a"), ("b.weight", "b")]


def test_what_a_quantity_costs_is_told_with_the_status_and_asked_for_once_a_second(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now = 100.0
    monkeypatch.setattr("notebook_probe.explorer.messages.catalogue.time.monotonic", lambda: now)
    controls = FakeControls()
    controls.costs_us = {"grad_norm": 12.345, "output_std": None}
    report = Report(FakeSource(), controls)
    model = model_of(report)
    status = told(report)
    assert model is not None
    assert status is not None
    assert [row["name"] for row in model["quantities"]] == ["grad_norm", "output_std"]
    assert status["costs"] == {"grad_norm": 12.0}
    assert controls.n_asked_catalogue == 1
    controls.costs_us["output_std"] = 3.0
    now += 1.1
    assert model_of(report) is None
    status = told(report)
    assert status is not None
    assert status["costs"] == {"grad_norm": 12.0, "output_std": 3.0}


def test_budget_progress_and_vectors_are_part_of_the_status() -> None:
    controls, source = FakeControls(), FakeSource()
    controls.progress = "sharpness at (root): 1 losses, 12 Hessian products"
    controls.budget = "budget 2 % of step time: every due step is measured"
    source.given_vectors.append(FakeVectors("every_1", ["a"], ["output_histogram"]))
    status = told(Report(source, controls))
    assert status is not None
    assert status["budget"] == controls.budget
    assert status["progress"] == f"measuring {controls.progress}"
    assert status["vectors"] == ["output_histogram"]


def test_an_opened_record_lists_what_it_holds() -> None:
    model = model_of(Report(FakeSource(FakeStream("s", ["a"], ["norm"])), None))
    assert model is not None
    assert not model["live"]
    assert [row["name"] for row in model["quantities"]] == ["norm"]


def test_a_status_without_news_is_not_told_again() -> None:
    controls = FakeControls()
    controls.state = "idle"
    report = Report(FakeSource(), controls)
    assert told(report) is not None
    assert told(report) is None
    controls.step = 8
    status = told(report)
    assert status is not None
    assert status["step"] == 8


def test_a_paused_run_is_heard_of_so_that_its_kernel_does_not_seem_gone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    controls = FakeControls()
    controls.state = "paused"
    report = Report(FakeSource(), controls)
    told(report)
    assert told(report) is None
    monkeypatch.setattr("notebook_probe.explorer.messages.status_message.SILENCE_S", -1.0)
    assert told(report) is not None


def test_the_long_parts_are_told_when_they_change() -> None:
    controls = FakeControls()
    report = Report(FakeSource(), controls)
    first = told(report, recorded={"grad_norm": ["a"]})
    assert first is not None
    assert first["recorded"] == {"grad_norm": ["a"]}
    controls.step, controls.attached = 8, [probe("a", note="never called")]
    second = told(report, recorded={"grad_norm": ["a"]})
    assert second is not None
    assert "recorded" not in second
    assert second["attached"] == [("a", "grad_norm", "every(1)")]
    assert second["silent"] == [{"kind": "silent", "reason": "never called", "probes": [0]}]


def test_problems_of_the_run_come_before_those_of_probes_and_panel() -> None:
    controls = FakeControls()
    controls.problem = "disk full"
    controls.attached = [probe("a", n_errors=3, error="ValueError: no", disabled=True)]
    panel = {"module": "", "quantity": "", "text": "click", "count": 1, "disabled": False}
    status = told(Report(FakeSource(), controls), problems=[panel])
    assert status is not None
    assert [row["text"] for row in status["problems"]] == ["disk full", "ValueError: no", "click"]
    assert status["problems"][1]["disabled"]


def test_numbers_that_json_cannot_say_are_none() -> None:
    controls = FakeControls()
    report = Report(FakeSource(), controls)
    for controls.step, loss in enumerate([1.0, float("nan"), 3.0, float("inf")]):
        controls.scalars = {"loss": loss}
        status = told(report)
    assert status is not None
    assert status["scalar"] == ("loss", None, [1.0, None, 3.0, None])
    json.dumps(status, allow_nan=False)


def test_a_scalar_has_a_point_per_step_not_per_refresh() -> None:
    controls = FakeControls()
    report = Report(FakeSource(), controls)
    for _ in range(3):
        report.forget()
        status = told(report)
    assert status is not None
    assert status["scalar"] == ("loss", 0.5, [0.5])


def test_what_cannot_act_says_why() -> None:
    controls = FakeControls()
    can = reasons(controls.status(), live=True)
    assert can == {
        "pause": "",
        "resume": "not paused",
        "step": "",
        "stop": "",
        "attach": "",
        "detach": "",
        "compiled": "",
    }
    controls.state = "paused"
    assert reasons(controls.status(), live=True)["pause"] == "already paused"
    assert reasons(controls.status(), live=True)["resume"] == ""
    controls.state = "waiting"
    assert reasons(controls.status(), live=True)["stop"] == "no training is running"
    controls.state = "failed"
    can = reasons(controls.status(), live=True)
    assert (can["pause"], can["attach"]) == ("training ended with an error", "")
    controls.state = "finished"
    assert set(reasons(controls.status(), live=True).values()) == {"this run has ended"}
    assert set(reasons(controls.status(), live=False).values()) == {"this run has ended"}


def test_an_opened_record_that_grows_is_training_elsewhere(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(WALL_TIME, lambda: START_MS / 1000 + 5)
    stream = FakeStream("s", ["a"], ["norm"])
    stream.append([0, 41], norm=1.0)
    source = FakeSource(stream)
    status = Report(source, None).status()
    assert (status.state, status.step) == ("training", 41)
    monkeypatch.setattr(WALL_TIME, lambda: START_MS / 1000 + 99)
    assert Report(source, None).status().state == "idle"
    source.finished = True
    assert Report(source, None).status().state == "finished"


def test_the_size_of_an_opened_record_is_that_of_its_folder(tmp_path: Path) -> None:
    (tmp_path / "chunk").mkdir()
    (tmp_path / "chunk" / "0").write_bytes(b"12345")
    source = FakeSource(FakeStream("s", ["a"], ["norm"]))
    source.location = str(tmp_path)
    assert Report(source, None).status().nbytes == 5
