"""Every run that was recorded is found again, whatever became of it and of its index."""

import multiprocessing
import os
import shutil
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

import notebook_probe as nbp
from notebook_probe.catalogues import Runs
from notebook_probe.catalogues.query import condition
from notebook_probe.errors import UnknownNameError
from notebook_probe.home import HOME
from notebook_probe.record import RecordWriter
from notebook_probe.record.store.lock import is_locked
from notebook_probe.record.store.noted import noted
from tests.catalogues.build import log, names, recorded, writing


def test_the_record_of_a_bare_watch_is_found(tmp_path: Path) -> None:
    model = torch.nn.Linear(2, 2)
    with nbp.watch(model, store=tmp_path / "bare.zarr", config={"lr": 0.1}) as run:
        run.flush()
        (row,) = nbp.runs("params.lr == 0.1")
        assert (row["state"], row["run"]) == ("running", str(tmp_path / "bare.zarr"))
    (row,) = nbp.runs()
    assert row["state"] == "finished"


def test_runs_are_asked_sorted_and_cut(tmp_path: Path) -> None:
    for n, lr in enumerate([0.1, 0.001, 0.0001]):
        recorded(tmp_path / f"{n}.zarr", [1.0, float(n)], lr=lr)
    assert names(nbp.runs("params.lr < 1e-2 and state == 'finished'")) == ["1", "2"]
    assert names(nbp.runs({"params.lr": {"$gte": 0.001}})) == ["0", "1"]
    assert names(nbp.runs(lambda row: row["last.loss"] == 2)) == ["2"]
    assert nbp.runs(sort="best.loss")["name"] == ["0", "1", "2"]
    assert nbp.runs(sort="params.lr", descending=True, limit=2)["name"] == ["0", "1"]
    table = nbp.runs()
    assert table["params.lr"] == table["config.lr"]
    assert table.sort("params.lr")["name"] == ["2", "1", "0"]
    assert "config.lr" in table.select("params.*").columns
    assert len(table.where("params.lr", 0.1)) == 1
    with pytest.raises(ValueError, match=r"limit=-1; allowed: a whole number from 0"):
        nbp.runs(limit=-1)


@pytest.mark.slow
def test_the_table_is_one_of_lineage(tmp_path: Path) -> None:
    for n in range(2):
        recorded(tmp_path / f"{n}.zarr", lr=float(n))
    table = nbp.runs()
    assert isinstance(table.sort("config.lr"), Runs)
    assert table.picture(["config.lr", "last.loss"]).axes
    assert table.explore().children


def test_a_name_that_no_run_has_is_refused_with_those_that_are_close(tmp_path: Path) -> None:
    recorded(tmp_path / "r.zarr", lr=0.1)
    with pytest.raises(UnknownNameError, match=r"close: 'config\.lr'"):
        nbp.runs("params.lrr < 1")
    with pytest.raises(UnknownNameError, match=r"config\.lr"):
        nbp.runs(sort="params.lrr")
    assert len(nbp.runs("params.lr > 1")) == 0


def test_a_machine_without_runs_has_an_empty_table() -> None:
    assert len(nbp.runs()) == len(nbp.runs("params.lr < 1", sort="x")) == 0


KILLED = """
import os, signal, sys, time
sys.path.insert(0, sys.argv[2])
from tests.catalogues.build import writing
with writing(sys.argv[1]) as writer:
    writer.flush()
    print("ready", flush=True)
    time.sleep(100)
"""


@pytest.mark.slow
def test_a_killed_run_is_told_from_one_that_runs_though_no_file_changes(tmp_path: Path) -> None:
    command = [sys.executable, "-c", KILLED, str(tmp_path / "k.zarr"), str(Path.cwd())]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        assert nbp.runs()["state"] == ["running"]
        before = (tmp_path / "k.zarr" / "zarr.json").stat()
        process.send_signal(signal.SIGKILL)
    assert nbp.runs()["state"] == ["killed"]
    assert (tmp_path / "k.zarr" / "zarr.json").stat() == before
    assert nbp.runs("state == 'killed'")["last.loss"] == [1.0]
    with RecordWriter(tmp_path / "k.zarr", title="k", modules=[], resume=True):
        assert nbp.runs()["state"] == ["running"]
    assert nbp.runs()["state"] == ["finished"]


def test_a_writer_begins_while_others_look_whether_it_is_there(tmp_path: Path) -> None:
    place, over = recorded(tmp_path / "r.zarr"), threading.Event()

    def look() -> None:
        while not over.is_set():
            is_locked(place)

    looker = threading.Thread(target=look)
    looker.start()
    try:
        for _ in range(5):
            RecordWriter(place, title="r", modules=[], resume=True).close()
    finally:
        over.set()
        looker.join()


def test_an_unchanged_record_is_not_read_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for n in range(3):
        place = recorded(tmp_path / f"{n}.zarr")
        os.utime(place, (0, 0))
    with nbp.catalogue() as cat:
        assert cat.refresh().added == 3
        with monkeypatch.context() as patch:
            patch.setattr("notebook_probe.catalogues.refreshing.read_document", unwanted)
            assert cat.refresh().changed == 0
            assert len(cat.runs()) == 3
        with RecordWriter(tmp_path / "1.zarr", title="1", modules=[], resume=True) as writer:
            log(writer, [7.0])
        assert cat.runs("last.loss == 7")["name"] == ["1"]


def unwanted(*_: object) -> Any:
    raise AssertionError("it has not changed")


def test_what_another_catalogue_has_written_is_seen(tmp_path: Path) -> None:
    places = [recorded(tmp_path / f"{n}.zarr", lr=float(n)) for n in range(3)]
    with nbp.catalogue() as one, nbp.catalogue() as other:
        assert names(one.runs("params.lr < 2")) == names(other.runs("params.lr < 2")) == ["0", "1"]
        recorded(places[2], lr=0.5)
        assert names(one.runs("params.lr < 2")) == ["0", "1", "2"]
        assert sorted(row["name"] for _, row in other._index.rows(condition("params.lr < 2"))) == [
            "0",
            "1",
            "2",
        ]


def test_an_unchanged_folder_of_notes_is_not_listed_again(
    own_home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    recorded(tmp_path / "a.zarr")
    os.utime(own_home / "records", (0, 0))
    with nbp.catalogue() as cat:
        assert names(cat.runs()) == ["a"]
        with monkeypatch.context() as patch:
            patch.setattr("notebook_probe.catalogues.finding.notes.noted", unwanted)
            assert names(cat.runs()) == ["a"]
        recorded(tmp_path / "b.zarr")
        assert names(cat.runs()) == ["a", "b"]


def test_a_run_that_goes_right_after_it_was_seen_is_gone(tmp_path: Path) -> None:
    place = recorded(tmp_path / "r.zarr")
    assert len(nbp.runs()) == 1
    shutil.rmtree(place)
    assert len(nbp.runs()) == 0


def test_a_damaged_record_is_told_and_keeps_nothing_else_away(tmp_path: Path) -> None:
    recorded(tmp_path / "good.zarr")
    bad = recorded(tmp_path / "bad.zarr")
    with nbp.catalogue() as cat:
        assert names(cat.runs()) == ["bad", "good"]
        (bad / "zarr.json").unlink()
        (bad / "zarr.json").write_text("{")
        assert names(cat.runs()) == ["good"]
        assert [*cat.refresh().unreadable] == [str(bad)]


def test_records_below_a_root_are_found_with_ranks_and_not_within_each_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(HOME, str(tmp_path / "of others"))
    for place in ("a.zarr", "deep/er/b.zarr", "job.zarr/rank_00000", "job.zarr/rank_00001"):
        recorded(tmp_path / "shared" / place, title="r")
    recorded(tmp_path / "shared" / ".hidden" / "c.zarr")
    monkeypatch.setenv(HOME, str(tmp_path / "mine"))
    assert len(nbp.runs()) == 0
    with nbp.catalogue(root=tmp_path / "shared") as cat:
        places = cat.runs(ranks=True)["run"]
        found = {str(Path(one).relative_to(tmp_path / "shared")) for one in places}
        assert found == {"a.zarr", "deep/er/b.zarr", "job.zarr/rank_00000", "job.zarr/rank_00001"}


def test_a_root_that_cannot_be_read_is_told(tmp_path: Path) -> None:
    recorded(tmp_path / "r.zarr")
    with nbp.catalogue(root=tmp_path / "nowhere") as cat:
        assert len(cat.runs()) == 1
        assert [*cat.refresh().unreadable] == [str(tmp_path / "nowhere")]


# ---------------------------------------------------------------- the index


def write_some(folder: str, n: int) -> None:
    for i in range(5):
        with writing(f"{folder}/{n}-{i}.zarr"):
            pass


def look(_: int) -> int:
    with nbp.catalogue() as cat:
        return len([cat.runs() for _ in range(4)])


@pytest.mark.slow
def test_eight_processes_write_and_two_look_and_no_run_is_lost(tmp_path: Path) -> None:
    context = multiprocessing.get_context("fork")
    works = [context.Process(target=write_some, args=(str(tmp_path), n)) for n in range(8)]
    works += [context.Process(target=look, args=(n,)) for n in range(2)]
    for one in works:
        one.start()
    for one in works:
        one.join()
    assert [one.exitcode for one in works] == [0] * 10
    assert len([*noted()]) == 40
    with nbp.catalogue() as cat:
        assert names(cat.runs()) == sorted(f"{n}-{i}" for n in range(8) for i in range(5))


def lying(cat: Any) -> set[tuple[Any, ...]]:
    """Every entry of an index, by the place of its run."""
    asked = (
        "SELECT place, field, n, kind, number, text FROM notebook_probe_entries "
        "LEFT JOIN notebook_probe_runs ON id = run"
    )
    with cat._index._engine.connect() as connection:
        found = [tuple(one) for one in connection.exec_driver_sql(asked)]
    assert len({*found}) == len(found)
    return {*found}


class Changes(RuleBasedStateMachine):
    """Whatever is written, gone on with, damaged and removed: a look tells what a rebuild tells.

    Two catalogues share the index, and one of them looks now and then.
    """

    folder: Path
    number = st.integers(0, 3)

    def __init__(self) -> None:
        super().__init__()
        file = self.folder / f"{id(self)}.sqlite"
        self.cat = nbp.catalogue(file, root=self.folder)
        self.other = nbp.catalogue(file, root=self.folder)

    def place(self, n: int) -> Path:
        return self.folder / f"{n}.zarr"

    @rule(n=number, loss=st.sampled_from([1.0, 2.0, float("nan")]))
    def write(self, n: int, loss: float) -> None:
        place = self.place(n)
        if (place / "zarr.json").exists() and (place / "zarr.json").stat().st_size < 3:
            shutil.rmtree(place)
        with RecordWriter(place, title=str(n), modules=[]) as writer:
            log(writer, [loss])

    @rule(n=number)
    def remove(self, n: int) -> None:
        shutil.rmtree(self.place(n), ignore_errors=True)

    @rule(n=number)
    def damage(self, n: int) -> None:
        if self.place(n).exists():
            (self.place(n) / "new").write_text("{")
            (self.place(n) / "new").replace(self.place(n) / "zarr.json")

    @rule()
    def look(self) -> None:
        self.other.refresh()

    @invariant()
    def tells_what_a_rebuild_tells(self) -> None:
        told = self.cat.runs().rows
        with nbp.catalogue("sqlite://", root=self.folder) as fresh:
            assert [*map(repr, told)] == [*map(repr, fresh.runs().rows)]
            assert lying(self.cat) == lying(fresh)

    def teardown(self) -> None:
        self.cat.close()
        self.other.close()
        for n in range(4):
            shutil.rmtree(self.place(n), ignore_errors=True)


@pytest.mark.slow
def test_a_look_after_any_changes_tells_what_a_rebuild_tells(tmp_path: Path) -> None:
    from hypothesis.stateful import run_state_machine_as_test

    Changes.folder = tmp_path
    run_state_machine_as_test(
        Changes,
        settings=settings(
            max_examples=6, stateful_step_count=6, suppress_health_check=[*HealthCheck]
        ),
    )


def test_the_same_question_again_has_the_runs_that_have_begun_since(
    tmp_path: Path,
) -> None:
    recorded(tmp_path / "a.zarr", lr=1)
    with nbp.catalogue(tmp_path / "index.sqlite") as cat:
        found = cat.runs("config.lr < 3", sort="config.lr")
        assert found.asked_again is not None
        (before,) = found.asked_again()
        recorded(tmp_path / "b.zarr", lr=2)
        recorded(tmp_path / "c.zarr", lr=3)
        first, second = found.asked_again()
        assert first == before
        assert second["name"] == "b"
        assert found.sort("config.lr").asked_again is not None
        assert found.where("config.lr", 1).asked_again is None, "what was chosen by hand stays"


def test_a_folder_is_no_catalogue_and_the_message_says_what_is(tmp_path: Path) -> None:
    with pytest.raises(nbp.errors.CatalogueError, match=r"that is a folder, .*catalogue\.sqlite"):
        nbp.catalogue(tmp_path)
