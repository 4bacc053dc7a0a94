"""A panel's side of real runs: compiled models, calls apart, parameters, vectors, new modules."""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import torch
import xarray as xr
from torch import Tensor, nn

import notebook_probe as nbp
from notebook_probe.explorer.conversation import PanelSession
from notebook_probe.explorer.parse import parse
from notebook_probe.explorer.save.export import export
from notebook_probe.quantities.define.decorator import define
from notebook_probe.record.views.xarray_views import RunSource
from notebook_probe.run.controls import Controls
from tests.models import floats, sgd, train_step

# What torch's own compiler imports is deprecated in torch.
pytestmark = pytest.mark.filterwarnings("ignore:.torch.jit.script_method. is deprecated")

batch = floats(5, 4)


class ThreeCalls(nn.Module):
    """A cell that is called three times, and a head."""

    def __init__(self) -> None:
        super().__init__()
        self.cell, self.head = nn.Linear(4, 4), nn.Linear(4, 2)

    def forward(self, x: Tensor) -> Tensor:
        for _ in range(3):
            x = self.cell(x).tanh()
        return self.head(x)


class View:
    """One view of a panel: says things, and has the last message of each type."""

    def __init__(self, source: RunSource, controls: Controls | None) -> None:
        self._conversation = PanelSession(source, controls)
        self.heard: dict[str, dict[str, Any]] = {"status": {}}
        self.says("hello", view="x")

    def says(self, message_type: str, /, **fields: Any) -> None:
        message = parse({"v": 1, "type": message_type, **fields})
        assert message["type"] != "ping"
        self._conversation.receive(message)

    def looks(self) -> dict[str, Any]:
        """The status after a refresh, as the browser has it."""
        self._conversation.publish(self._hear, "own subshell", self._conversation.head())
        for kind in ("heat", "lines"):
            if kind in self.heard:
                self.says("ack", view="x", painted={kind: self.heard[kind]["seq"]})
        return self.heard["status"]

    def selects(self, **changes: Any) -> None:
        self.says("selection", **{**self._conversation.look().message(), **changes})
        self.looks()

    def _hear(self, message: Mapping[str, Any], _: list[memoryview]) -> None:
        known = json.loads(json.dumps(message, allow_nan=False))
        goes_on = known["type"] == "status" or "base" in known
        before = self.heard[known["type"]] if goes_on else {}
        self.heard[known["type"]] = {**before, **known}

    def silent(self, kind: str) -> list[str]:
        """The probes of one kind of silence, as ``"quantity at module"``."""
        status = self.heard["status"]
        groups = [group for group in status["silent"] if group["kind"] == kind]
        places = [place for group in groups for place in group["probes"]]
        return [f"{status['attached'][k][1]} at {status['attached'][k][0]}" for k in places]


@pytest.fixture
def model() -> ThreeCalls:
    return ThreeCalls()


@pytest.fixture
def run(model: ThreeCalls, tmp_path: Path) -> Iterator[nbp.Run]:
    run = nbp.watch(model, store=tmp_path / "run.zarr", probes=None)
    yield run
    run.close()


@pytest.mark.slow
def test_a_compiled_model_is_told_loudly_until_a_click_has_brought_the_first_value(
    model: ThreeCalls, run: nbp.Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("notebook_probe.explorer.messages.throttled.EVERY_S", 0.0)
    monkeypatch.setattr("notebook_probe.explorer.messages.throttled.SHARE", math.inf)
    run.on_compiled = "skip"
    run.attach("cell", "output_mean", "every(2)")
    run.attach("head", "weight_norm")
    model.compile(backend="eager")
    view, optimizer = View(run, run.controls), sgd(model)
    view.looks()
    assert view.silent("waiting") == ["output_mean at cell", "weight_norm at head"]
    for step in range(3):
        train_step(model, optimizer, batch(step))
    status = view.looks()
    assert view.silent("compiled") == ["output_mean at cell"]
    assert status["recorded"].keys() == {"weight_norm"}, "calls that cannot be seen have no number"

    view.says("compiled", id="1", steps="eager")
    for step in range(3, 7):
        train_step(model, optimizer, batch(step))
    run.controls.settle()
    status = view.looks()
    [ticket] = status["tickets"]
    assert (ticket["state"], ticket["text"]) == ("applied", "probed steps run eagerly")
    assert status["silent"] == []
    assert status["tallies"][0][0] >= ticket["applied_step"]
    assert status["recorded"]["output_mean"] == ["cell"]
    assert run.series("cell", "output_mean").step.values.tolist() == [4, 6]


def test_everything_a_run_can_hold_has_its_row_or_is_left_out_in_words(
    model: ThreeCalls, run: nbp.Run
) -> None:
    run.attach("cell", "output_std", per_call=True)
    run.attach("", "output_std", per_call=True)
    run.attach("head.weight", "weight_norm", "every(2)")
    run.attach("head", "output_histogram")
    run.attach("head", "output_mean", phase="eval")
    view, optimizer = View(run, run.controls), sgd(model)
    for step in range(4):
        train_step(model, optimizer, batch(step))
        model.eval()
        with torch.no_grad():
            model(batch(step))
        model.train()
    model.add_module("late", nn.Linear(2, 2))
    run.attach("late", "weight_norm")
    train_step(model, optimizer, batch(9))
    run.controls.settle()
    status = view.looks()
    assert status["problems"] == []
    assert status["vectors"] == {"output_histogram": "bars"}
    calls = ["cell[0]", "cell[1]", "cell[2]"]
    assert status["recorded"] == {
        "output_std": ["(root)[0]", *calls],
        "calls": ["(root)", "cell", "head"],
        "weight_norm": ["head.weight", "late"],
        "eval_output_mean": ["head"],
        "eval_calls": ["head"],
    }
    entries = [["(root)[0]", "(root)"], *([call, "cell"] for call in calls)]
    assert view.heard["model"]["entries"] == [*entries, ["head.weight", "head"]]
    modules = [row[0] for row in view.heard["model"]["modules"]]
    assert modules == ["(root)", "cell", "head", "late"]
    for home, places in status["recorded"].items():
        view.selects(home=home, series=[[place, home] for place in places])
        assert (view.heard["heat"]["quantity"], view.heard["heat"]["rows"]) == (home, places)
        assert all(one["n"] for one in view.heard["lines"]["series"])


def test_images_are_listed_with_what_is_not_drawn_as_a_line(
    model: ThreeCalls, run: nbp.Run, tmp_path: Path
) -> None:
    def gram(output: Tensor) -> Tensor:
        """Inner products of the samples' outputs."""
        return output @ output.T

    run.attach("head", define(gram, gram, name="gram", axis=nbp.IMAGE))
    train_step(model, sgd(model), batch(0))
    run.log_array("seen", batch(0))
    run.close()
    opened = nbp.open_run(tmp_path / "run.zarr")
    assert View(opened, None).looks()["vectors"] == {"gram": "", "seen": ""}


@pytest.mark.slow
def test_files_leave_vectors_out(model: ThreeCalls, run: nbp.Run, tmp_path: Path) -> None:
    run.attach("head", "output_histogram")
    run.attach("cell", "output_std", per_call=True)
    optimizer = sgd(model)
    for step in range(3):
        train_step(model, optimizer, batch(step))
    run.close()
    opened = nbp.open_run(tmp_path / "run.zarr")
    view = View(opened, None)
    status = view.looks()
    assert status["vectors"] == {"output_histogram": "bars"}
    assert view.heard["model"]["entries"] == [[f"cell[{call}]", "cell"] for call in range(3)]
    view.selects(home="output_std")
    for kind in ("csv", "netcdf", "png", "svg"):
        message, [content] = export(kind, opened, view._conversation.look())
        assert "error" not in message, message
        assert len(content) > 100


@pytest.mark.slow
def test_scalars_of_any_name_are_shown_and_taken_away(model: ThreeCalls, run: nbp.Run) -> None:
    names = ["loss", "train/loss", "../x", "</script>", "a · b", "50 %"]
    optimizer = sgd(model)
    for step in range(3):
        train_step(model, optimizer, batch(step))
        run.log({name: float(place) for place, name in enumerate(names)})
    run.controls.settle()
    run.close()
    for source in (run, nbp.open_run(run.location)):
        view = View(source, None)
        status = view.looks()
        assert status["problems"] == []
        assert status["recorded"] == {name: ["(root)"] for name in names}
        for name in names:
            view.selects(home=name, series=[["(root)", name]])
            assert view.heard["heat"]["quantity"] == name
            assert [one["n"] for one in view.heard["lines"]["series"]] == [3]
        view.selects(series=[["(root)", name] for name in names])
        kept = {}
        for kind in ("csv", "netcdf", "png", "svg"):
            message, [kept[kind]] = export(kind, source, view._conversation.look())
            assert "error" not in message, message
        with xr.open_dataset(io.BytesIO(kept["netcdf"]), engine="scipy") as shown:
            found = {shown[key].attrs.get("quantity", key): shown[key].values for key in shown}
        assert {name: cells[0].tolist() for name, cells in found.items()} == {
            name: [float(place)] * 3 for place, name in enumerate(names)
        }
        table = csv.DictReader(bytes(kept["csv"]).decode().splitlines())
        assert {row["quantity"] for row in table} == {*names}


def test_what_the_loop_logs_is_drawn_though_its_name_is_no_word_and_beside_update_ratios(
    tmp_path: Path,
) -> None:
    model = ThreeCalls()
    with nbp.watch(model, store=tmp_path) as run:
        view, optimizer = View(run, run._controls()), sgd(model)
        for step in range(3):
            train_step(model, optimizer, batch(step))
            run.log({"train/loss": 1.0, "lr": 0.1}, accuracy=0.5)
        run.flush()
        view.looks()
        assert view.heard["selection"]["home"] == "update_ratio"
        drawn = [tuple(one) for one in view.heard["selection"]["series"]]
        assert sorted(drawn) == [("(root)", "accuracy"), ("(root)", "train/loss")]
        view.looks()
        points = {one["quantity"]: one["last_value"] for one in view.heard["lines"]["series"]}
        assert points == {"train/loss": 1.0, "accuracy": 0.5}


def test_a_usual_value_is_told_by_a_run_and_by_its_record(tmp_path: Path) -> None:
    model = ThreeCalls()
    with nbp.watch(model, store=tmp_path) as run:
        train_step(model, sgd(model), batch(0))
        view = View(run, run._controls())
        view.looks()
        assert usual(view) == {"update_ratio": 1e-3, "adam_update_rms": 1.0}
    view = View(nbp.open_run(tmp_path), None)
    view.looks()
    assert usual(view) == {"update_ratio": 1e-3}, "of what was recorded"


def usual(view: View) -> dict[str, float]:
    rows = view.heard["model"]["quantities"]
    return {row["name"]: row["usual"] for row in rows if row["usual"] is not None}
