"""Model and status messages: complete for a new view, only news afterwards."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest

from notebook_probe.explorer.messages.catalogue import PanelCatalogue
from notebook_probe.explorer.messages.clicks import REQUESTS, greyed_controls
from notebook_probe.explorer.messages.model_message import ModelMessages
from notebook_probe.explorer.messages.opened_status import OpenedStatus
from notebook_probe.explorer.messages.probe_rows import probe_rows
from notebook_probe.explorer.messages.status_message import StatusMessages
from notebook_probe.explorer.messages.wire import ModelMessage, StatusMessage
from notebook_probe.record.format.source import ModuleRow
from notebook_probe.run.health.status import ProbeStatus
from tests.explorer.fakes import START_MS, FakeControls, FakeSource, FakeStream, FakeVectors

WALL_TIME = "notebook_probe.explorer.messages.opened_status.time.time"


def probe(module: str, **fields: Any) -> ProbeStatus:
    return ProbeStatus(module, "grad_norm", "every(1)", 0, 0, -1, **fields)


class Messages:
    """Model and status as a panel of these would send them now."""

    def __init__(self, source: FakeSource, controls: FakeControls | None) -> None:
        self._controls, self._opened = controls, OpenedStatus(source)
        catalogue = PanelCatalogue(source, controls)
        self._models = ModelMessages(source, controls, catalogue)
        self._statuses = StatusMessages(catalogue, live=controls is not None)

    def forget(self) -> None:
        self._models.forget()
        self._statuses.forget()

    def model(self) -> ModelMessage | None:
        return self._models.message(self._probes().attached)

    def status(self, **more: Any) -> StatusMessage | None:
        head = self._opened.head() if self._controls is None else self._controls.status_head()
        parts: dict[str, Any] = {
            "recorded": {},
            "logged": [],
            "tickets": [],
            "greyed": {},
            "problems": [],
        }
        return self._statuses.message(head, self._probes(), "own subshell", **{**parts, **more})

    def _probes(self) -> Any:
        return probe_rows(self._controls.attached if self._controls is not None else [])


def test_the_model_is_told_once_and_again_to_a_new_view() -> None:
    messages = Messages(FakeSource(modules=["fc"]), FakeControls())
    model = messages.model()
    assert model is not None
    assert model["modules"] == [("(root)", "Net", 30, 0, -1), ("fc", "Linear", 10, 10, 0)]
    assert model["quantities"][0]["name"] == "grad_norm"
    assert model["live"]
    assert messages.model() is None
    messages.forget()
    assert messages.model() == model


def test_modules_that_are_added_are_told() -> None:
    source = FakeSource(modules=["fc"])
    messages = Messages(source, FakeControls())
    messages.model()
    source.modules = (*source.modules, ModuleRow("late", "Linear", 4, 4, 0))
    model = messages.model()
    assert model is not None
    assert model["modules"][-1] == ("late", "Linear", 4, 4, 0)
    assert messages.model() is None


def test_calls_and_parameters_are_told_with_their_module_as_soon_as_they_have_a_place() -> None:
    stream = FakeStream("every_1", ["a", "a[0]"], ["output_std"])
    controls, source = FakeControls(), FakeSource(stream)
    messages = Messages(source, controls)
    model = messages.model()
    assert model is not None
    assert model["entries"] == [("a[0]", "a")]
    controls.attached = [probe("b.weight"), probe("a")]
    model = messages.model()
    assert model is not None
    assert model["entries"] == [("a[0]", "a"), ("b.weight", "b")]
    stream.modules = ("a", "a[0]", "a[1]")
    model = messages.model()
    assert model is not None
    assert model["entries"] == [("a[0]", "a"), ("a[1]", "a"), ("b.weight", "b")]


def test_what_a_quantity_costs_is_told_with_the_status_and_asked_for_once_a_second(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now = 100.0
    monkeypatch.setattr("notebook_probe.explorer.messages.throttled.time.monotonic", lambda: now)
    controls = FakeControls()
    controls.costs_us = {"grad_norm": 12.345, "output_std": None}
    messages = Messages(FakeSource(), controls)
    model = messages.model()
    status = messages.status()
    assert model is not None
    assert status is not None
    assert [row["name"] for row in model["quantities"]] == ["grad_norm", "output_std"]
    assert status["costs"] == {"grad_norm": 12.0}
    assert controls.n_asked_catalogue == 1
    controls.costs_us["output_std"] = 3.0
    now += 1.1
    assert messages.model() is None
    status = messages.status()
    assert status is not None
    assert status["costs"] == {"grad_norm": 12.0, "output_std": 3.0}


def test_what_fits_is_decided_once_and_sent_by_kind_of_place() -> None:
    stream = FakeStream("every_1", ["a", "a[0]"], ["output_std"])
    controls, source = FakeControls(), FakeSource(stream)
    messages = Messages(source, controls)
    controls.attached = [probe("b.weight")]
    model = messages.model()
    assert model is not None
    assert model["entries"] == [("a[0]", "a"), ("b.weight", "b")]
    assert model["kinds"] == [2, 3, 3, 3, 1, 0]
    assert model["quantities"][0]["misfits"] == ["", "a call", "", ""]
    controls.attached = []
    model = messages.model()
    assert model is not None
    assert model["kinds"] == [2, 3, 3, 3, 1]
    assert controls.n_asked_fitting == 1


def test_nothing_fits_an_opened_record() -> None:
    model = Messages(FakeSource(FakeStream("s", ["a"], ["norm"])), None).model()
    assert model is not None
    assert model["kinds"] == []
    assert model["quantities"][0]["misfits"] == []


def test_budget_progress_and_vectors_are_part_of_the_status() -> None:
    controls, source = FakeControls(), FakeSource()
    controls.progress = "sharpness at (root): 1 losses, 12 Hessian products"
    controls.budget = "budget 2 % of step time: every due step is measured"
    source.given_vectors.append(FakeVectors("every_1", ["a"], ["output_histogram"]))
    status = Messages(source, controls).status()
    assert status is not None
    assert status["budget"] == controls.budget
    assert status["progress"] == f"measuring {controls.progress}"
    assert status["vectors"] == {"output_histogram": "bars"}


def test_readings_that_are_compiled_are_part_of_the_status() -> None:
    controls = FakeControls()
    messages = Messages(FakeSource(), controls)
    before = messages.status()
    assert before is not None
    assert before["progress"] == ""
    controls.how_far = {"compiling": True}
    after = messages.status()
    assert after is not None
    assert after["progress"] == "compiling the readings"


def test_how_far_training_will_go_is_part_of_the_status_as_far_as_it_is_known() -> None:
    controls = FakeControls()
    messages = Messages(FakeSource(), controls)
    unknown = messages.status()
    assert unknown is not None
    assert (unknown["end_step"], unknown["epoch"], unknown["seconds_left"]) == (-1, -1, None)
    controls.how_far = {"end_step": 1875, "epoch": 2, "seconds_left": 171.0}
    known = messages.status()
    assert known is not None
    assert (known["end_step"], known["epoch"], known["seconds_left"]) == (1875, 2, 171.0)
    opened = Messages(FakeSource(), None).status()
    assert opened is not None
    assert (opened["end_step"], opened["epoch"], opened["seconds_left"]) == (-1, -1, None)


def test_an_opened_record_lists_what_it_holds() -> None:
    model = Messages(FakeSource(FakeStream("s", ["a"], ["norm"])), None).model()
    assert model is not None
    assert not model["live"]
    assert [row["name"] for row in model["quantities"]] == ["norm"]


def test_a_status_without_news_is_not_told_again() -> None:
    controls = FakeControls()
    controls.state = "idle"
    messages = Messages(FakeSource(), controls)
    assert messages.status() is not None
    assert messages.status() is None
    controls.step = 8
    status = messages.status()
    assert status is not None
    assert status["step"] == 8


def test_a_paused_run_is_heard_of_so_that_its_kernel_does_not_seem_gone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    controls = FakeControls()
    controls.state = "paused"
    messages = Messages(FakeSource(), controls)
    messages.status()
    assert messages.status() is None
    monkeypatch.setattr("notebook_probe.explorer.messages.status_message.SILENCE_S", -1.0)
    assert messages.status() is not None


def test_the_long_parts_are_told_when_they_change() -> None:
    controls = FakeControls()
    messages = Messages(FakeSource(), controls)
    first = messages.status(recorded={"grad_norm": ["a"]})
    assert first is not None
    assert first["recorded"] == {"grad_norm": ["a"]}
    controls.step, controls.attached = 8, [probe("a", note="never called")]
    second = messages.status(recorded={"grad_norm": ["a"]})
    assert second is not None
    assert "recorded" not in second
    assert second["attached"] == [("a", "grad_norm", "every(1)")]
    assert second["silent"] == [{"kind": "silent", "reason": "never called", "probes": [0]}]


def test_problems_of_the_run_come_before_those_of_probes_and_panel() -> None:
    controls = FakeControls()
    controls.problem = "disk full"
    controls.attached = [probe("a", n_errors=3, error="ValueError: no", disabled=True)]
    panel = {"module": "", "quantity": "", "text": "click", "count": 1, "disabled": False}
    status = Messages(FakeSource(), controls).status(problems=[panel])
    assert status is not None
    assert [row["text"] for row in status["problems"]] == ["disk full", "ValueError: no", "click"]
    assert status["problems"][1]["disabled"]


def test_a_store_that_two_readers_cannot_reach_is_one_problem() -> None:
    row = {"module": "", "quantity": "", "text": "disk full", "count": 1, "disabled": False}
    controls = FakeControls()
    controls.problem = "disk full"
    status = Messages(FakeSource(), controls).status(problems=[row, {**row, "text": "click"}])
    assert status is not None
    assert [one["text"] for one in status["problems"]] == ["disk full", "click"]


def test_numbers_that_json_cannot_say_are_none() -> None:
    controls = FakeControls()
    messages = Messages(FakeSource(), controls)
    for controls.step, loss in enumerate([1.0, float("nan"), 3.0, float("inf")]):
        controls.scalars = {"loss": loss}
        status = messages.status()
    assert status is not None
    assert status["scalar"] == ("loss", None, [1.0, None, 3.0, None])
    json.dumps(status, allow_nan=False)


def test_a_scalar_has_a_point_per_step_not_per_refresh() -> None:
    controls = FakeControls()
    messages = Messages(FakeSource(), controls)
    for _ in range(3):
        messages.forget()
        status = messages.status()
    assert status is not None
    assert status["scalar"] == ("loss", 0.5, [0.5])


def test_what_cannot_act_says_why() -> None:
    controls = FakeControls()

    def greyed(live: bool = True) -> dict[str, str]:
        return greyed_controls(controls.status_head(), live, {*REQUESTS} - {"control"})

    assert greyed() == {
        "pause": "",
        "resume": "not paused",
        "step": "",
        "stop": "",
        "attach": "",
        "detach": "",
        "compiled": "",
        "budget": "",
    }
    controls.state = "paused"
    assert greyed()["pause"] == "already paused"
    assert greyed()["resume"] == ""
    controls.state = "waiting"
    assert greyed()["stop"] == "no training is running"
    controls.state = "failed"
    can = greyed()
    assert (can["pause"], can["attach"]) == ("training ended with an error", "")
    controls.state = "finished"
    assert set(greyed().values()) == {"this run has ended"}
    assert set(greyed(live=False).values()) == {"this run has ended"}


def test_an_opened_record_that_grows_is_training_elsewhere(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(WALL_TIME, lambda: START_MS / 1000 + 5)
    stream = FakeStream("s", ["a"], ["norm"])
    stream.append([0, 41], norm=1.0)
    source = FakeSource(stream)
    status = OpenedStatus(source).head()
    assert (status.state, status.step) == ("training", 42), "completed steps, as a run says"
    age_s = status.flushed_age_s
    assert 0 < age_s <= 5, "how old the picture is"
    monkeypatch.setattr(WALL_TIME, lambda: START_MS / 1000 + 99)
    assert OpenedStatus(source).head().state == "idle"
    assert OpenedStatus(source).head().flushed_age_s == age_s + 94, "it grows where no row comes"
    source.finished = True
    assert OpenedStatus(source).head().state == "finished"
    assert math.isnan(OpenedStatus(source).head().flushed_age_s)


def test_the_size_of_an_opened_record_is_that_of_its_folder(tmp_path: Path) -> None:
    (tmp_path / "chunk").mkdir()
    (tmp_path / "chunk" / "0").write_bytes(b"12345")
    source = FakeSource(FakeStream("s", ["a"], ["norm"]))
    source.location = str(tmp_path)
    assert OpenedStatus(source).head().nbytes == 5
