"""The runs of a folder are found and told in rows; what cannot be read says why."""

from __future__ import annotations

import json
import threading
from pathlib import Path

import pytest

import notebook_probe as nbp
from notebook_probe.explorer.others.places import resolved
from notebook_probe.explorer.others.shelf import Shelf, Task
from tests.explorer.others.records import train


def at_once(task: Task) -> None:
    task()


def shelf_of(path: Path) -> Shelf:
    return Shelf(nbp.open_run(path), run=at_once)


def test_the_records_of_the_folder_are_told_without_the_run_itself(folder: Path) -> None:
    own = train(folder / "own.zarr", config={"lr": 0.1})
    train(folder / "a.zarr", (2.0, 1.5, 1.0, 0.25))
    (folder / "notes.txt").write_text("no record")
    (folder / "empty").mkdir()
    shelf = shelf_of(own)
    assert (shelf.rows(), shelf.listed, shelf.folder) == ([], False, "runs")
    shelf.look()
    assert shelf.own is not None
    assert (shelf.own["name"], shelf.own["line"]) == ("own", [2.0, 1.0, 0.5])
    [row] = shelf.rows()
    assert shelf.listed
    assert (row["name"], row["steps"], row["scalar"], row["last"]) == ("a", 4, "loss", 0.25)
    assert row["line"] == [2.0, 1.5, 1.0, 0.25]
    assert row["finished"]
    assert row["problem"] == ""


def test_runs_begun_last_come_first(folder: Path) -> None:
    own = train(folder / "own.zarr")
    for name, begun in (("old", "2020"), ("new", "2024"), ("middle", "2022")):
        root = train(folder / f"{name}.zarr") / "zarr.json"
        text = json.loads(root.read_text())
        text["attributes"]["created"] = f"{begun}-03-01T12:00:00+00:00"
        root.write_text(json.dumps(text))
    shelf = shelf_of(own)
    shelf.look()
    assert [row["name"] for row in shelf.rows()] == ["new", "middle", "old"]
    assert shelf.rows()[0]["begun_ms"] == 1_709_294_400_000


def test_a_loss_that_ends_in_nan_is_told_as_one(folder: Path) -> None:
    own = train(folder / "own.zarr")
    train(folder / "lost.zarr", (2.0, 1.0, float("nan")))
    shelf = shelf_of(own)
    shelf.look()
    [row] = shelf.rows()
    assert row["line"] == [2.0, 1.0, None]
    assert row["last"] is None


def test_a_record_of_a_newer_format_stays_listed_with_the_reason(folder: Path) -> None:
    own = train(folder / "own.zarr")
    root = train(folder / "newer.zarr") / "zarr.json"
    text = json.loads(root.read_text())
    text["attributes"]["format_version"] = 99
    root.write_text(json.dumps(text))
    (folder / "broken.zarr").mkdir()
    (folder / "broken.zarr" / "zarr.json").write_text("{")
    shelf = shelf_of(own)
    shelf.look()
    problems = {row["name"]: row["problem"] for row in shelf.rows()}
    assert set(problems) == {"newer", "broken"}
    assert problems["newer"].startswith("cannot be read: ")
    assert "99" in problems["newer"]
    assert problems["broken"].startswith("cannot be read: ")


def test_a_chosen_run_is_read_wherever_it_is_and_however_it_is_written(folder: Path) -> None:
    own = train(folder / "own.zarr")
    beside = train(folder / "a.zarr")
    elsewhere = train(folder.parent / "elsewhere" / "b.zarr")
    shelf = shelf_of(own)
    typed = str(folder / ".." / "runs" / "a.zarr")
    shelf.keep([typed, str(elsewhere), str(folder / "gone.zarr")])
    shelf.look()
    rows = {row["run"]: row for row in shelf.rows()}
    assert set(rows) == {typed, str(elsewhere), str(folder / "gone.zarr")}
    assert rows[str(folder / "gone.zarr")]["problem"].startswith("cannot be read: no record at")
    opened = shelf.opened(str(beside))
    assert opened is not None
    assert resolved(opened.location) == resolved(typed)
    assert shelf.opened(str(folder / "gone.zarr")) is None


@pytest.mark.slow
def test_a_run_that_grows_is_told_as_it_is_now(folder: Path) -> None:
    own = train(folder / "own.zarr")
    net_path = train(folder / "a.zarr", (2.0, 1.0))
    shelf = shelf_of(own)
    shelf.look()
    before = shelf.rows()
    shelf.look()
    assert shelf.rows() == before
    with nbp.open_run(net_path)._writing() as writer:
        writer.backfill("", "loss", [7], [0.125])
    shelf.look()
    [row] = shelf.rows()
    assert (row["steps"], row["last"]) == (8, 0.125)


def test_a_folder_that_is_gone_is_told_and_one_far_away_is_not_looked_for(folder: Path) -> None:
    own = train(folder / "own.zarr")
    record = nbp.open_run(own)
    record.location = str(folder / "no" / "own.zarr")
    shelf = Shelf(record, run=at_once)
    shelf.look()
    assert "cannot be listed" in shelf.problem
    record.location = "s3://bucket/own.zarr"
    shelf = Shelf(record, run=at_once)
    shelf.look()
    assert (shelf.folder, shelf.rows(), shelf.problem) == ("", [], "")


def test_a_slow_disk_keeps_nobody_waiting(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own = train(folder / "own.zarr")
    train(folder / "a.zarr")
    asked, let_go = threading.Event(), threading.Event()

    def slowly(location: str) -> list[str]:
        asked.set()
        let_go.wait(60)
        return [str(folder / "a.zarr")]

    monkeypatch.setattr("notebook_probe.explorer.others.shelf.neighbours", slowly)
    shelf = Shelf(nbp.open_run(own))
    shelf.look()
    assert asked.wait(60)
    shelf.look()
    assert (shelf.rows(), shelf.listed) == ([], False)
    let_go.set()
    done = threading.Event()
    shelf.do(done.set)
    assert done.wait(60)
    assert [row["name"] for row in shelf.rows()] == ["a"]
    shelf.close()
