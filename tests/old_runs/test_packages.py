"""Each reader finds what the tool itself reads in its files."""

import math
import shutil
from pathlib import Path

import pytest

from notebook_probe.old_runs.importing import old_runs_below
from tests.old_runs.files_of_tools import (
    EXPECTED,
    MLFLOW,
    TENSORBOARD,
    WANDB,
    assert_same,
    database,
    number,
    read,
    values,
)

WANDB_ROWS = [row["item"] for row in EXPECTED["wandb_run"]["rows"]]


@pytest.mark.parametrize(("name", "own"), [("loss", "loss"), ("acc", "acc"), ("opt/lr", "opt.lr")])
def test_wandb_numbers_are_those_that_it_shows(name: str, own: str) -> None:
    expected = {row["_step"]: number(row[own]) for row in WANDB_ROWS}
    assert len(expected) == 12
    assert_same(values(read(WANDB), name), expected)


def test_wandb_evaluations_stand_at_the_steps_that_their_metric_defines() -> None:
    expected = {
        row["trainer/global_step"]: row["val/loss"] for row in WANDB_ROWS if "val/loss" in row
    }
    assert [*expected] == [30, 70, 110]
    assert_same(values(read(WANDB), "val/loss"), expected)


def test_wandb_settings_notes_and_times_are_read() -> None:
    run = read(WANDB)
    assert run.config == {"lr": 0.1, "model": {"depth": 3}, "sizes": [3, 4]}
    assert run.notes["tags"] == ["a", "b"]
    assert run.notes["notes"] == "a note"
    assert run.notes["alerts"] == ["odd: loss is nan"]
    assert (run.name, run.run_id, run.has_ended) == (
        "first",
        WANDB.name.removeprefix("offline-"),
        True,
    )
    times = [round(row["_timestamp"] * 1000) for row in WANDB_ROWS]
    (loss,) = (one for one in run.series if one.name == "loss")
    assert max(abs(loss.times_ms - times)) <= 1
    assert run.remarks == ()


@pytest.mark.parametrize("tag", ["train/loss", "acc", "grad_norm/body.0.weight", "val/loss"])
def test_tensorboard_scalars_of_all_files_are_those_of_its_accumulator(tag: str) -> None:
    expected = {step: value for step, value, _ in EXPECTED["tensorboard_run"]["series"][tag]}
    assert len(expected) == (3 if tag == "val/loss" else 12)
    assert_same(values(read(TENSORBOARD), tag), expected)


def test_tensorboard_settings_and_times_are_read() -> None:
    run = read(TENSORBOARD)
    assert run.config == {"lr": 0.1, "optimizer": "SGD", "nesterov": True}
    (loss,) = (one for one in run.series if one.name == "train/loss")
    wall = [one[2] for one in EXPECTED["tensorboard_run"]["series"]["train/loss"]]
    assert loss.times_ms.tolist() == [round(time * 1000) for time in wall]


def test_histograms_of_wandb_are_arrays_of_their_modules() -> None:
    (logged,) = (row for row in WANDB_ROWS if "gradients/body.0.weight.bins" in row)
    (found,) = read(WANDB).histograms
    edges, counts = (logged[f"gradients/body.0.weight.{name}"] for name in ("bins", "values"))
    assert found.bins.tolist() == [[edges[:-1], edges[1:], counts]]
    assert (found.module, found.quantity) == ("body.0.weight", "logged_gradient_histogram")


def test_histograms_of_tensorboard_are_those_of_its_accumulator() -> None:
    expected = EXPECTED["tensorboard_run"]
    tensors, protos = read(TENSORBOARD).histograms
    assert [tensors.module, protos.module] == ["fc.bias", "fc.weight"]
    assert protos.quantity == "logged_gradient_histogram"
    for place, step in enumerate((3, 7, 11)):
        assert tensors.bins[place].T.tolist() == expected["tensors"][str(step)]
        limits, counts = expected["protos"][str(step)]
        left, right, found = protos.bins[place].tolist()
        # TensorBoard's first bin starts at the least value, here its own limit.
        assert (left, right, found) == ([limits[0], *limits[:-1]], limits, counts)


def test_settings_next_to_tensorboard_s_files_belong_to_the_run(tmp_path: Path) -> None:
    first, second = sorted(TENSORBOARD.iterdir())
    inside = tmp_path / "1700000000.25"  # as PyTorch's add_hparams names it
    inside.mkdir()
    shutil.copy(second, tmp_path)
    shutil.copy(first, inside)
    (tmp_path / "hparams.yaml").write_text("batch_size: 8\n")
    run = read(tmp_path)
    assert run.config == {"lr": 0.1, "optimizer": "SGD", "nesterov": True, "batch_size": 8}
    assert len(values(run, "acc")) == 12
    assert [*old_runs_below(tmp_path)] == [tmp_path]


@pytest.mark.parametrize(("name", "key"), [("first", "first"), ("second/a", "second%2Fa")])
@pytest.mark.parametrize("metric", ["loss", "acc"])
def test_trackio_numbers_are_those_of_its_own_reader(
    tmp_path: Path, name: str, key: str, metric: str
) -> None:
    logs = EXPECTED["trackio_runs"]["logs"][name]
    run = read(database(tmp_path, "trackio") / key)
    assert_same(values(run, metric), {row["step"]: number(row[metric]) for row in logs})
    assert (run.name, run.config) == (name, {"lr": 0.1, "model": {"depth": 3}})
    assert [one.name for one in run.series] == ["loss", "acc"]


@pytest.mark.parametrize("metric", ["train/loss", "acc"])
def test_mlflow_numbers_are_those_of_its_client(tmp_path: Path, metric: str) -> None:
    path = database(tmp_path, "mlflow")
    runs = EXPECTED["mlflow_runs"]
    places = {one.name: one for one in MLFLOW}
    assert len(runs) == 4
    for run_id, metrics in runs.items():
        run = read(places.get(run_id, path / run_id))
        expected = {step: number(value) for step, value, _ in metrics[metric]}
        # MLflow's database has the largest number in place of an infinity, which its files keep.
        expected = {at: math.inf if one > 1e308 else one for at, one in expected.items()}
        assert_same(values(run, metric), expected)
        assert run.config == {"lr": 0.1, "optimizer": "SGD", "nesterov": True}
        assert run.notes == {"tags": {"kept": "yes"}}
        assert (run.run_id, run.has_ended) == (run_id, True)
        (series,) = (one for one in run.series if one.name == metric)
        assert series.times_ms.tolist() == [time for _, _, time in metrics[metric]]
