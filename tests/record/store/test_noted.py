"""Whoever begins to write a record leaves word of where it is, and nothing depends on that."""

import json
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import notebook_probe as nbp
from notebook_probe.home import HOME, home
from notebook_probe.record import RecordWriter
from notebook_probe.record.store.location import Location, RemoteStore
from notebook_probe.record.store.noted import note_place, noted, read_note


@pytest.fixture(autouse=True)
def own_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv(HOME, str(tmp_path / "home"))
    return tmp_path / "home"


def places() -> list[Location | None]:
    return [read_note(name) for name in noted()]


def test_a_watched_model_is_noted_by_its_whole_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with nbp.watch(torch.nn.Linear(2, 2), store="a b.zarr") as run:
        assert places() == [str(tmp_path / "a b.zarr")]
        assert Path(run.location).resolve() == tmp_path / "a b.zarr"


def test_a_record_that_is_gone_on_with_is_noted_once(tmp_path: Path) -> None:
    for _ in range(2):
        with RecordWriter(tmp_path / "r.zarr", title="r", modules=[]):
            pass
    assert len(places()) == 1


def test_a_record_that_is_shipped_is_noted_where_it_is_shipped_to(tmp_path: Path) -> None:
    store = RemoteStore((tmp_path / "far.zarr").as_uri(), spool=tmp_path / "spool")
    with RecordWriter(store, title="r", modules=[]):
        assert places() == [(tmp_path / "far.zarr").as_uri()]


def test_no_secret_of_a_store_is_noted_and_memory_is_not_at_all(own_home: Path) -> None:
    options = {"endpoint": "https://minio.example", "secret_access_key": "s3cret", "token": "t0k"}
    note_place(RemoteStore("s3://bucket/run.zarr", options=options))
    note_place("memory://here")
    (place,) = places()
    assert place == RemoteStore(
        "s3://bucket/run.zarr", options={"endpoint": "https://minio.example"}
    )
    text = "".join(one.read_text() for one in (own_home / "records").iterdir())
    assert "s3cret" not in text
    assert "t0k" not in text


@pytest.mark.parametrize("what", ["a file", "read-only", "no home"])
def test_a_home_that_cannot_be_written_does_not_reach_the_writer(
    what: str, own_home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if what == "a file":
        own_home.write_text("")
    elif what == "read-only":
        monkeypatch.setenv(HOME, "/proc/1/nothing")
    else:
        monkeypatch.delenv(HOME)
        monkeypatch.setattr(Path, "home", raised)
    with RecordWriter(tmp_path / "r.zarr", title="r", modules=[]) as writer:
        writer.event(0, "note", "it goes on")
    assert places() == []


def raised() -> Path:
    raise RuntimeError("Could not determine home directory.")


def test_the_folder_is_where_the_environment_says(
    own_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert home() == own_home
    monkeypatch.delenv(HOME)
    assert home() == Path.home() / ".notebook_probe"


@pytest.mark.slow
def test_processes_that_the_tests_begin_note_where_the_tests_do(tmp_path: Path) -> None:
    program = (
        "import sys; from notebook_probe.record import RecordWriter\n"
        "RecordWriter(sys.argv[1], title='r', modules=[]).close()"
    )
    where = str(tmp_path / "other.zarr")
    subprocess.run([sys.executable, "-c", program, where], check=True, env=dict(os.environ))
    assert places() == [where]


def test_many_writers_of_one_place_leave_one_whole_note(own_home: Path) -> None:
    threads = [threading.Thread(target=note_place, args=("s3://bucket/r",)) for _ in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    (file,) = (own_home / "records").iterdir()
    assert json.loads(file.read_text()) == {"location": "s3://bucket/r"}


@given(content=st.binary(max_size=60))
def test_a_damaged_note_is_no_place(content: bytes) -> None:
    folder = home() / "records"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "x.json").write_bytes(content)
    read_note("x.json")  # whatever it says, nothing is raised
    (folder / "x.json").write_text('{"location": 3}')
    assert read_note("x.json") is None
