"""Old runs stand in the table of runs, and become records."""

import json
import os
import shutil
from pathlib import Path

import pytest

import notebook_probe as nbp
from notebook_probe.catalogues import Catalogue, catalogue
from notebook_probe.catalogues.documents import read_document
from notebook_probe.catalogues.marks import change
from notebook_probe.catalogues.marks.marks import Marks
from notebook_probe.command_line import main
from notebook_probe.old_runs import import_runs
from notebook_probe.old_runs import place as place_of_runs
from notebook_probe.old_runs.importing import old_runs_below
from tests.old_runs.files_of_tools import (
    FILES,
    MLFLOW,
    TENSORBOARD,
    WANDB,
    database,
    lightning,
    trainer_state,
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Old runs of every tool: ten, in nine places."""
    place = tmp_path / "old"
    place.mkdir()
    for tool in ("trackio", "mlflow"):
        database(place, tool)
    lightning(place / "lightning_logs")
    trainer_state(place / "trainer", 20)
    trainer_state(place / "trainer", 30)
    (place / "log.csv").write_text("step,loss\n0,3\n1,2\n")
    (place / "log.jsonl").write_text('{"step": 0, "loss": 3}\n')
    (place / "iris.csv").write_text("length,width\n1,2\n")
    (place / "log.db").write_bytes(b"SQLite format 3\0damaged")
    for path in place.rglob("*"):
        os.utime(path, (1.7e9, 1.7e9))
    return place


@pytest.fixture
def found(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Catalogue:
    monkeypatch.setenv("NOTEBOOK_PROBE_HOME", str(folder.parent / "home"))
    return catalogue(folder.parent / "index.sqlite", root=[folder, FILES])


def test_every_run_below_a_folder_is_found_once(folder: Path) -> None:
    places = [*old_runs_below(folder)]
    assert sorted(path.relative_to(folder).parts[0] for path in places) == [
        "lightning_logs",
        "log.csv",
        "log.jsonl",
        "mlflow.db",
        "mlflow.db",
        "trackio.db",
        "trackio.db",
        "trainer",
    ]
    assert {*old_runs_below(FILES)} == {WANDB, TENSORBOARD, *MLFLOW}


def test_tables_among_the_artifacts_of_a_run_are_no_runs(tmp_path: Path) -> None:
    shutil.copytree(MLFLOW[0], tmp_path / "run")
    artifacts = tmp_path / "run" / "artifacts"
    artifacts.mkdir(exist_ok=True)
    (artifacts / "metrics.csv").write_text("step,loss\n0,1\n")
    assert [*old_runs_below(tmp_path)] == [tmp_path / "run"]


def test_old_runs_stand_in_the_catalogue(found: Catalogue) -> None:
    with found:
        table = found.runs()
        assert len(table) == 12
        assert {*table["state"]} == {"finished"}
        rows = found.runs("config.lr == 0.1 and last.loss < 0.2")
        assert sorted(row["name"] for row in rows) == ["first", "first", "second/a"]
        assert len(found.runs("annotations.tool == 'MLflow'")) == 4
        changes = found.refresh()
    assert (changes.added, changes.changed, changes.unreadable) == (0, 0, {})


@pytest.mark.usefixtures("new_files_grow")
def test_a_run_that_grows_is_read_again(found: Catalogue, folder: Path) -> None:
    events = folder / "tensorboard"
    events.mkdir()
    (file,) = [path for path in TENSORBOARD.iterdir() if path.name.endswith("part0")]
    data = file.read_bytes()
    with found:
        (events / file.name).write_bytes(data[: len(data) // 2])
        (row,) = found.runs(lambda row: row["run"] == str(events))
        assert row["state"] == "running"
        assert 0 < row["steps"] < 6
        (events / file.name).write_bytes(data)  # the folder itself does not change
        (row,) = found.runs(lambda row: row["run"] == str(events))
        assert row["steps"] == 6
        os.utime(events / file.name, (1.7e9, 1.7e9))
        (row,) = found.runs(lambda row: row["run"] == str(events))
        assert row["state"] == "finished"


def test_a_run_that_is_removed_leaves_the_table(found: Catalogue, folder: Path) -> None:
    with found:
        found.refresh()
        (folder / "log.csv").unlink()
        assert found.refresh().gone == 1


@pytest.mark.parametrize(
    "place", [WANDB, TENSORBOARD, MLFLOW[0]], ids=lambda place: place.parent.name
)
def test_the_row_of_an_old_run_is_that_of_its_record(place: Path, tmp_path: Path) -> None:
    (imported,) = import_runs([place], tmp_path)
    assert imported.target is not None
    row, expected = read_document(place).row, read_document(imported.target).row
    differing = {"run", "size_bytes", "annotations.original"}
    assert {key for key in {*row, *expected} if row.get(key) != expected.get(key)} <= differing
    assert row["loss.last"] == pytest.approx(2 / 12)


def test_a_run_that_has_failed_is_not_finished(tmp_path: Path) -> None:
    place = trainer_state(tmp_path, 20).parent
    os.utime(place / "trainer_state.json", (1.7e9, 1.7e9))
    assert read_document(place).row["state"] == "killed"
    assert not nbp.open_run(place).finished


def test_old_runs_are_imported_once(folder: Path, tmp_path: Path) -> None:
    first = [*import_runs([folder], tmp_path / "runs")]
    assert [one.text for one in first] == ["imported"] * 8
    assert len({one.target for one in first}) == 8
    again = [*import_runs([folder], tmp_path / "runs")]
    assert {one.text for one in again} == {"was imported before"}
    assert {one.target for one in again} == {one.target for one in first}
    run = nbp.open_run(tmp_path / "runs" / "version_0.zarr")
    assert run.series("", "train_loss").values.tolist() == [2.5, 1.5, 0.5]
    assert run.config["net"] == {"depth": 3, "act": "relu"}


def test_a_place_without_old_runs_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(nbp.RecordFormatError, match="no run of another tool is in"):
        [*import_runs([tmp_path], tmp_path / "runs")]


def test_the_command_lists_the_runs_of_a_folder(
    folder: Path, found: Catalogue, capsys: pytest.CaptureFixture[str]
) -> None:
    found.close()
    index = ["--catalogue", str(folder.parent / "index.sqlite")]
    assert main(["runs", str(folder), *index, "--json", "--columns", "run,last.loss"]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert len(rows) == 8
    assert all(row["run"].startswith(str(folder)) for row in rows)
    assert main(["runs", str(folder / "log.csv"), *index, "--limit", "1"]) == 0
    assert "log" in capsys.readouterr().out


def test_the_command_imports_old_runs(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["import", str(folder / "log.csv"), str(WANDB), "--to", str(tmp_path / "runs")]
    assert main(words) == 0
    assert capsys.readouterr().out.splitlines() == [
        f"{folder / 'log.csv'} -> {tmp_path / 'runs' / 'log.zarr'}: imported",
        f"{WANDB} -> {tmp_path / 'runs' / 'first.zarr'}: imported",
    ]
    assert main(["import", str(folder / "log.db"), "--to", str(tmp_path), "--json"]) == 1
    (outcome,) = json.loads(capsys.readouterr().out)
    assert outcome["record"] is None
    assert "cannot be read" in outcome["text"]


def test_the_verbs_read_an_old_run(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    place = str(folder / "trackio.db" / "first")
    assert main(["series", place, "(root)", "acc", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)
    assert main(["show", place]) == 0
    assert "config.lr" in capsys.readouterr().out
    assert main(["compare", place, str(folder / "trackio.db" / "second%2Fa")]) == 0


def test_marks_and_cleaning_up_leave_an_old_run_alone(folder: Path, found: Catalogue) -> None:
    place = folder / "lightning_logs" / "version_0"
    before = sorted(folder.rglob("*"))
    with pytest.raises(nbp.RecordFormatError, match="no record in"):
        change(place, lambda marks: Marks(("best",)))
    with found:
        plan = found.clean_up(lambda row: row["run"].startswith(str(folder)))
    assert len(plan.stays) == 8
    assert plan.delete().gone == ()
    assert sorted(folder.rglob("*")) == before


def test_a_table_of_old_runs_makes_no_record_of_any(
    found: Catalogue, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*_: object) -> None:
        raise AssertionError

    monkeypatch.setattr(place_of_runs, "as_store", refused)
    with found:
        assert len(found.runs()) == 12
