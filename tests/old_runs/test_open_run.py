"""An old run is opened, shown and compared like a record."""

import os
import sqlite3
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

import notebook_probe as nbp
from notebook_probe.compare.reference.opening import opened_references
from notebook_probe.explorer import Panel
from notebook_probe.explorer.others.places import neighbours
from notebook_probe.lineage.row import row_of
from notebook_probe.record import RecordWriter
from tests.old_runs.files_of_tools import (
    EXPECTED,
    MLFLOW,
    TENSORBOARD,
    WANDB,
    database,
    float32,
    lightning,
    trainer_state,
)


def content(folder: Path) -> dict[str, tuple[bytes, int]]:
    files = (path for path in sorted(folder.rglob("*")) if path.is_file())
    return {str(path): (path.read_bytes(), path.stat().st_mtime_ns) for path in files}


def test_the_data_of_a_wandb_run_is_a_dataset() -> None:
    run = nbp.open_run(WANDB)
    rows = [row["item"] for row in EXPECTED["wandb_run"]["rows"]]
    expected = float32([float(row["loss"]) for row in rows])
    np.testing.assert_array_equal(run.series("", "loss").values, expected)
    assert run.data["loss"].dims == ("module", "step")
    assert run.config["model"] == {"depth": 3}
    assert run.annotations["tool"] == "W&B"
    assert run.name == "first"
    assert run.finished


def test_evaluations_are_of_states(tmp_path: Path) -> None:
    run = nbp.open_run(trainer_state(tmp_path).parent)
    assert {path: stream.n_rows for path, stream in run.streams.items()} == {
        "logged": 3,
        "eval_logged": 3,
    }
    assert run.series("", "eval_loss").step.values.tolist() == [10, 20, 30]
    assert row_of(run)["eval.loss"] == pytest.approx(0.1)
    assert row_of(run)["loss.first"] == pytest.approx(0.2)
    assert row_of(run)["steps"] == 30


def test_a_number_of_a_layer_is_a_quantity_of_its_module() -> None:
    run = nbp.open_run(TENSORBOARD)
    found = run.series("body.0.weight", "grad_norm")
    np.testing.assert_array_equal(found.values, 0.5 + np.arange(12))
    names = [row.name for row in run.modules]
    assert names[:4] == ["(root)", "body", "body.0", "body.0.weight"]
    assert {names[row.parent] for row in run.modules if row.name.startswith("fc.")} == {"fc"}


def test_files_of_other_tools_are_only_read(tmp_path: Path) -> None:
    places = [lightning(tmp_path), trainer_state(tmp_path)]
    for tool in ("trackio", "mlflow"):
        database(tmp_path, tool)
    places += [tmp_path / "trackio.db" / "first"]
    places += [tmp_path / "mlflow.db" / key for key in EXPECTED["mlflow_runs"]][:1]
    before = content(tmp_path)
    for place in places:
        assert nbp.open_run(place).data.sizes["step"] > 2
    assert content(tmp_path) == before


def test_a_database_is_read_while_it_is_written_and_nothing_is_left_behind(tmp_path: Path) -> None:
    path = database(tmp_path, "trackio")
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA journal_mode=WAL")
        connection.execute("UPDATE metrics SET step = 999 WHERE step = 55")
        connection.commit()
        run = nbp.open_run(path / "first")
        assert run.series("", "acc").step.values[-1] == 999
        revision = run.revision
        connection.execute("UPDATE metrics SET step = 1000 WHERE step = 999")
        connection.commit()
        assert run.revision == revision + 1
    assert nbp.open_run(path / "first").series("", "acc").step.values[-1] == 1000
    assert [one.name for one in tmp_path.iterdir()] == ["trackio.db"]


def test_nothing_is_written_into_an_old_run(tmp_path: Path) -> None:
    place = lightning(tmp_path)
    before = content(tmp_path)
    with pytest.raises(nbp.RecordFormatError, match="a folder with other files, not a record"):
        nbp.open_run(place).backfill("", "loss", [0], [1.0])
    with pytest.raises(nbp.RecordFormatError, match="a folder with other files, not a record"):
        RecordWriter(place, title="new", modules=[])
    assert content(tmp_path) == before


def test_a_file_with_several_runs_lists_them(tmp_path: Path) -> None:
    path = database(tmp_path, "trackio")
    with pytest.raises(nbp.RecordFormatError, match=r"holds 2 runs of trackio; open .*/first', "):
        nbp.open_run(path)
    with pytest.raises(nbp.RecordFormatError, match="has no run 'frist'; close: 'first'"):
        nbp.open_run(path / "frist")


def test_a_folder_with_old_runs_lists_them(tmp_path: Path) -> None:
    lightning(tmp_path)
    with pytest.raises(nbp.RecordFormatError, match=r"it contains .*version_0"):
        nbp.open_run(tmp_path)


@pytest.mark.usefixtures("new_files_grow")
def test_a_growing_file_is_read_again(tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    path.write_text("step,loss\n0,1\n1,0.5\n2,0.2")  # the last row may be cut off
    run = nbp.open_run(path)
    assert not run.finished
    assert run.is_written
    assert run.series("", "loss").values.tolist() == [1.0, 0.5]
    revision = run.revision
    assert run.revision == revision
    path.write_text("step,loss\n0,1\n1,0.5\n2,0.25\n")
    assert run.revision == revision + 1
    assert run.series("", "loss").values.tolist() == [1.0, 0.5, 0.25]
    os.utime(path, (1e9, 1e9))
    assert nbp.open_run(path).finished


def test_an_old_run_is_compared_and_is_a_reference() -> None:
    runs = nbp.open_runs([WANDB, MLFLOW[0]])
    assert runs.sizes["run"] == 2
    assert {"loss", "acc", "train/loss"} <= {*runs.data_vars}
    (reference,) = opened_references(WANDB)
    assert reference.name == "first"
    found = nbp.open_run(MLFLOW[0]).find_differences(MLFLOW[1])
    assert "No difference" in found.title


def test_an_old_run_is_shown_in_the_panel() -> None:
    run = nbp.open_run(WANDB)
    with Panel(run) as panel:
        assert repr(panel.explorer) == f"<Explorer of {run.name!r}>"


def test_old_runs_in_the_folder_of_a_run_can_be_overlaid(tmp_path: Path) -> None:
    (tmp_path / "iris.csv").write_text("length,width\n1,2\n")
    (tmp_path / "log.csv").write_text("step,loss\n0,1\n")
    place = lightning(tmp_path)
    assert {*neighbours(str(place))} == {str(place), str(tmp_path / "log.csv")}


def test_an_old_run_is_explained_by_rules_that_are_applied_to_it_now(tmp_path: Path) -> None:
    losses = [1.0 / (1 + step) for step in range(60)] + [float("nan")] * 5
    rows = "".join(f"{step},{loss}\n" for step, loss in enumerate(losses))
    (tmp_path / "log.csv").write_text("step,loss\n" + rows)
    explained = nbp.open_run(tmp_path / "log.csv").explain()
    assert [(cause.alert.rule, cause.alert.step) for cause in explained.causes] == [
        ("nonfinite_loss", 60)
    ]
    (tmp_path / "good.csv").write_text("step,loss\n" + rows.replace("nan", "0.01"))
    healthy = nbp.open_run(tmp_path / "good.csv").explain()
    assert not healthy.causes
    assert "nonfinite_loss" in healthy.well
    # Nobody has looked at its optimizer.
    assert "not_in_optimizer" not in healthy.well
    assert "not_in_optimizer" in healthy.unknown["a watched training",]
