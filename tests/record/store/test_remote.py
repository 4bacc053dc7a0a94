"""A record on its way to stores of every kind reads as one on a local disk."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import xarray as xr

import notebook_probe as nbp
from notebook_probe.errors import (
    MissingExtraError,
    RecordFormatError,
    RecordLockedError,
    RecordWriteError,
    UnknownNameError,
)
from notebook_probe.record import open_record
from notebook_probe.record.store.location import RemoteStore
from notebook_probe.record.store.opener import opener
from notebook_probe.record.store.remote.engine import top_of
from notebook_probe.record.write.streams import levels
from tests.record.build import fill
from tests.record.stores import KINDS, check_rows, engine_at, location_of, new_store, recording


@pytest.fixture(params=KINDS)
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    return new_store(request.param, tmp_path, request)


def test_a_shipped_record_equals_a_local_one(store: Any, tmp_path: Path) -> None:
    with recording(location_of(store, tmp_path / "spool")) as writer:
        stream = writer.stream("every_1")
        fill(stream, range(5))
        assert writer.flush(60)
        assert check_rows(store) == 5
        assert not open_record(store).finished
        fill(stream, range(5, 300))
    assert writer.last_error == ""
    assert check_rows(store) == 300
    with recording(tmp_path / "local.zarr") as local:
        fill(local.stream("every_1"), range(300))
    remote, there = open_record(store), open_record(tmp_path / "local.zarr")
    assert remote.finished
    xr.testing.assert_identical(remote.data.load().drop_attrs(), there.data.load().drop_attrs())
    assert remote.modules == there.modules
    assert writer.source.series("fc", "grad_norm").size == 300


def test_nothing_but_the_record_is_left(
    store: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(levels, "FEWEST_BLOCKS", (1, 1, 1))
    with recording(location_of(store, tmp_path / "spool")) as writer:
        fill(writer.stream("every_1"), range(100))
    assert list((tmp_path / "spool").iterdir()) == []
    engine = engine_at(store)
    assert engine.lease() is None
    groups = {key.partition("/")[0] for key in list(engine.keys())}
    assert groups == {"zarr.json", "scalars", "pyramid", "modules", "events"}


def test_a_second_writer_is_told_who_has_the_store(store: Any, tmp_path: Path) -> None:
    with recording(location_of(store, tmp_path / "here")) as writer:
        fill(writer.stream("every_1"), range(5))
        with pytest.raises(RecordLockedError, match=r"has another writer: process \d+ on .+, si"):
            recording(location_of(store, tmp_path / "current_values"))
        assert writer.flush(60)
    assert check_rows(store) == 5
    assert not list((tmp_path / "current_values").glob("*/record.zarr"))


def test_a_second_writer_of_the_same_machine_is_told_as_well(tmp_path: Path) -> None:
    location = location_of(f"memory://{tmp_path.name}", tmp_path / "spool")
    with recording(location), pytest.raises(RecordLockedError, match=r"memory://.*process \d+"):
        recording(location)


@pytest.mark.parametrize("kind", ["memory", "directory", "zarr"])
def test_other_objects_are_left_as_they_are(kind: str, tmp_path: Path) -> None:
    store = new_store(kind, tmp_path)
    engine: Any = engine_at(store)
    engine.put("thesis/chapter1.tex", b"...")
    with pytest.raises(RecordFormatError, match="holds other objects; nothing was changed"):
        recording(location_of(store, tmp_path / "spool"))
    assert engine.keys() == ["thesis/chapter1.tex"]
    assert engine.lease() is None


@pytest.mark.parametrize("kind", ["memory", "directory", "zarr"])
def test_the_mailbox_of_a_killed_training_is_no_other_object(kind: str, tmp_path: Path) -> None:
    store = new_store(kind, tmp_path)
    engine: Any = engine_at(store)
    engine.put(".control/run.json", b"{}")
    engine.put(".control/in/x.json", b"{}")
    assert engine.keys() == []
    assert engine.sizes(".control/in/") == {".control/in/x.json": 2}
    assert top_of(engine) == {}
    recording(location_of(store, tmp_path / "spool")).close()


@pytest.mark.slow
def test_another_machine_goes_on_at_any_step(store: Any, tmp_path: Path) -> None:
    with recording(location_of(store, tmp_path / "here")) as writer:
        fill(writer.stream("every_1"), range(100))
    with recording(location_of(store, tmp_path / "current_values"), resume=40) as writer:
        assert check_rows(store) == 40
        assert writer.continued
        assert writer.last_step == 39
        assert writer.source.series("fc", "grad_norm").size == 40
        fill(writer.stream("every_1"), range(40, 60))
    assert check_rows(store) == 60


@pytest.mark.slow
def test_every_shipment_to_icechunk_is_a_commit_that_can_be_opened(tmp_path: Path) -> None:
    import icechunk

    repository = icechunk.Repository.create(icechunk.in_memory_storage())
    with recording(location_of(repository, tmp_path / "spool")) as writer:
        for start in (0, 10, 20):
            fill(writer.stream("every_1"), range(start, start + 10))
            assert writer.flush(60)
    snapshots = [commit.id for commit in repository.ancestry(branch="main")]
    stores = [repository.readonly_session(snapshot_id=key).store for key in snapshots[:-2]]
    assert [check_rows(store) for store in stores] == [30, 30, 20, 10]  # the last one: closed
    assert [open_record(store).finished for store in stores] == [True, False, False, False]
    assert repository.list_branches() == {"main"}


def test_what_a_crashed_commit_has_written_is_not_seen(tmp_path: Path) -> None:
    import icechunk

    repository = icechunk.Repository.create(icechunk.in_memory_storage())
    with recording(location_of(repository, tmp_path / "spool")) as writer:
        fill(writer.stream("every_1"), range(10))
    session = repository.writable_session("main")
    engine: Any = engine_at(session.store)
    engine.put("scalars/every_1/grad_norm/c/0/0", b"half a chunk")
    assert check_rows(opener(RemoteStore(repository))()) == 10


def test_a_url_of_no_known_scheme_is_refused() -> None:
    with pytest.raises(UnknownNameError, match="no scheme of a store 's4'; known: 's3', "):
        recording("s4://bucket/run.zarr")


def test_an_option_that_the_store_does_not_have_is_refused() -> None:
    with pytest.raises(
        RecordFormatError, match=r"cannot open s3://.*'endpiont' is not valid [^\n]*$"
    ):
        recording(RemoteStore("s3://bucket/run.zarr", options={"endpiont": "http://127.0.0.1"}))


def test_what_is_no_store_is_refused() -> None:
    with pytest.raises(RecordWriteError, match="cannot record to a int; a path, a URL, a zarr St"):
        recording(RemoteStore(3))


@pytest.mark.parametrize(
    ("url", "library", "extra"),
    [("s3://bucket/a", "obstore", "cloud"), ("icechunk:///tmp/a", "icechunk", "icechunk")],
)
def test_a_library_that_is_missing_is_named_with_its_extra(
    monkeypatch: pytest.MonkeyPatch, url: str, library: str, extra: str
) -> None:
    monkeypatch.setitem(__import__("sys").modules, library, None)
    with pytest.raises(MissingExtraError, match=rf"needs {library}: .*notebook-probe\[{extra}\]"):
        nbp.open_run(url)


def test_a_store_that_is_not_there_is_no_record(tmp_path: Path) -> None:
    for kind in ("memory", "icechunk"):
        with pytest.raises(RecordFormatError, match="no record at"):
            open_record(new_store(kind, tmp_path))


def test_a_folder_url_alone_is_written_as_a_folder(tmp_path: Path) -> None:
    with recording((tmp_path / "a.zarr").as_uri()) as writer:
        assert writer.location == str(tmp_path / "a.zarr")
    assert open_record(tmp_path / "a.zarr").finished
