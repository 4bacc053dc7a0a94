"""What presets and quantities cost: measured, kept in a file, and told on a page."""

from __future__ import annotations

from argparse import ArgumentParser
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from torch import nn

from benchmarks import quantities as benchmark
from benchmarks.quantities import own
from benchmarks.quantities.cells import of_preset, of_quantity
from benchmarks.quantities.own import Own, in_all
from benchmarks.quantities.saved import Saved
from benchmarks.quantities.stage import Stage, played
from benchmarks.workloads import WORKLOADS, Workload
from notebook_probe.quantities import as_quantity
from notebook_probe.quantities.define.costs import Cell, MeasuredCost, read_costs
from notebook_probe.run.attach.presets import presets
from notebook_probe.schedules import Every, schedule
from tools.quantity_costs import costs_page


@pytest.fixture(autouse=True)
def short(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Two steps of each are enough to see that they are measured."""
    monkeypatch.setattr(own, "ENOUGH_S", 0.0)
    threads = torch.get_num_threads()
    yield
    torch.set_num_threads(threads)


def small() -> Workload:
    model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 3))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    return Workload(model, optimizer, torch.randn(6, 4), torch.arange(6) % 3)


@pytest.mark.parametrize(
    "name",
    [
        "weight_norm",  # at layers
        "accuracy",  # of targets
        "worst_samples",  # of losses and indices
        "gsnr",  # of micro-batches
        "amp_scale",  # of a gradient scaler
        "loss_spike_score",  # of what is logged
        "data_wait_share",  # of the loop
        "sharpness",  # on the probe batch
        "grad_depth_slope",  # of all layers together
        "sign_flips",  # of several steps
    ],
)
def test_a_quantity_gets_what_it_needs_and_is_measured(name: str) -> None:
    cell = of_quantity(as_quantity(name), small)
    assert isinstance(cell, MeasuredCost), cell
    assert cell.us > 0 < cell.percent


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("bn_mean_tid", "Linear keeps no running mean and variance"),
        ("adam_update_rms", "the optimizer keeps no such state of it"),
        ("attn_entropy", "called, but computed no attention"),
    ],
)
def test_what_a_workload_does_not_have_is_said(name: str, reason: str) -> None:
    cell = of_quantity(as_quantity(name), small)
    assert isinstance(cell, str)
    assert cell.startswith(reason)


def test_a_preset_is_measured_with_its_schedules() -> None:
    assert isinstance(of_preset("activations", small), MeasuredCost)
    assert of_preset("batchnorm", small) == "it fits no module"


def test_the_kinds_of_steps_of_a_preset_are_weighed_by_how_often_they_come() -> None:
    stage = Stage()
    preset, kinds = played(presets["activations"], stage)
    assert list(kinds.values()) == [0.9, 0.08, 0.02]
    stage.set(list(kinds)[1])
    due = {str(row.schedule) for row in preset.rows if schedule(row.schedule)(0)}
    assert due == {"every(1)", "every(10)"}
    assert Every(10) in list(kinds)[1]


def test_own_time_is_held_against_the_step_without_it() -> None:
    parts = [(0.9, Own(own_s=0.0, bare_s=0.010)), (0.1, Own(own_s=0.005, bare_s=0.010))]
    assert in_all(parts) == MeasuredCost(us=500.0, percent=5.0)


def test_parts_of_a_measurement_come_together_in_a_file(tmp_path: Path) -> None:
    file, some = tmp_path / "costs.json", MeasuredCost(1.0, 2.0)
    Saved(file).put("quantities", "lr", "MLP", some)
    Saved(file).put("presets", "default", "MLP", "why not")
    Saved(file).put("quantities", "lr", "small GPT", "too small")
    Saved(file).put("quantities", "gone", "MLP", some)
    again = Saved(file)
    again.keep("quantities", ["weight_norm", "lr"], ["MLP", "small GPT"])
    assert again.get("quantities", "lr", "MLP") == some
    assert again.get("quantities", "gone", "MLP") is None
    costs = read_costs(file.read_text("utf-8"))
    assert costs.quantities == {"lr": {"MLP": some, "small GPT": "too small"}}
    assert costs.presets == {"default": {"MLP": "why not"}}
    assert "torch" in costs.machine


def run_benchmark(*options: str) -> None:
    parser = ArgumentParser()
    benchmark.add_arguments(parser)
    benchmark.run(parser.parse_args(options))


def test_what_is_in_the_file_is_measured_again_only_when_asked_to(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(WORKLOADS, "MLP", small)
    file = str(tmp_path / "costs.json")
    old: Cell = MeasuredCost(12345.0, 0.5)
    Saved(Path(file)).put("quantities", "weight_norm", "MLP", old)
    options = ["--workloads", "MLP", "--kinds", "quantities", "--save", file]
    run_benchmark("--names", "weight_[nr]*m*", *options)
    shown = capsys.readouterr().out
    assert "12345" in shown.replace("1.23e+04", "12345")
    saved = Saved(Path(file))
    assert saved.get("quantities", "weight_norm", "MLP") == old
    assert isinstance(saved.get("quantities", "weight_rms", "MLP"), MeasuredCost)
    run_benchmark("--names", "weight_norm", "--again", *options)
    assert Saved(Path(file)).get("quantities", "weight_norm", "MLP") not in (old, None)


def test_the_page_tells_costs_and_notes_why_there_are_none() -> None:
    costs = read_costs(
        '{"machine": "a desk calculator", '
        '"presets": {"default": {"MLP": {"us": 1234.5, "percent": 4.0}, "GPT": "none"}}, '
        '"quantities": {"lr": {"MLP": {"us": 0.5, "percent": 0.25}}}}'
    )
    some = [as_quantity("lr"), as_quantity("momentum")]
    page = costs_page(costs, ["default"], some, lambda quantity: quantity.name)
    assert "Measured on: a desk calculator." in page
    assert "| preset | MLP | GPT |\n|---|---|---|\n| `default` | 1,234 us, 4 % | note 1 |" in page
    assert "| quantity | class | MLP |\n|---|---|---|\n| lr | `scalar` | 0.5 us, 0.25 % |" in page
    assert "| momentum | `scalar` | not measured |" in page
    assert page.endswith("* note 1: none\n")
