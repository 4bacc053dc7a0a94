"""Tags, notes and what is put aside lie in the record, whoever is writing it."""

from __future__ import annotations

import json
import os
import threading
import warnings
import zipfile
from pathlib import Path
from typing import Any

import pytest
import xarray as xr
import zarr
from hypothesis import given
from hypothesis import strategies as st
from zarr.storage import MemoryStore

import notebook_probe as nbp
from notebook_probe.catalogues.marks import Marks, change, read
from notebook_probe.errors import RecordFormatError, RecordWriteError
from tests.catalogues.marks.recorded import begun, recorded

NONE = {"tags": [], "note": "", "archived": False}


def tag(place: Any, *tags: str) -> dict[str, Any]:
    return change(place, lambda marks: marks.tagged(tags))


@pytest.mark.slow
def test_a_run_is_marked_while_it_is_written_and_goes_on(tmp_path: Path) -> None:
    folder = tmp_path / "run.zarr"
    run = begun(folder)
    assert read(folder) == NONE
    tag(folder, "good")
    change(folder, lambda marks: marks.noted("the third\nof many"))
    run.log({"other": 1.0})
    assert read(folder)["note"] == "the third\nof many"
    run.close()
    change(str(folder), lambda marks: marks.tagged(["paper"]).untagged(["good", "never"]))
    assert read(str(folder)) == {"tags": ["paper"], "note": "the third\nof many", "archived": False}
    begun(folder, resume=True).close()
    assert read(folder)["tags"] == ["paper"]
    assert len(nbp.open_run(folder).data.step) > 3


def test_a_mark_changes_the_time_of_the_record_s_own_folder(tmp_path: Path) -> None:
    folder = recorded(tmp_path / "run.zarr")
    tag(folder, "a")
    os.utime(folder, (1, 1))
    tag(folder, "b")
    assert folder.stat().st_mtime > 1


def test_other_readers_see_a_group_and_warn_of_nothing_new(tmp_path: Path) -> None:
    folder = recorded(tmp_path / "run.zarr")
    (folder / ".lock").unlink()  # of which they warn, where they list files
    tag(folder, "good")
    for consolidated in (True, False):
        group = zarr.open_group(folder, mode="r", use_consolidated=consolidated)
        assert "scalars" in dict(group.members())
        xr.open_datatree(folder, engine="zarr", consolidated=consolidated).close()
    assert zarr.open_group(folder / "marks", mode="r").attrs.asdict()["tags"] == ["good"]
    assert nbp.open_run(folder).to_xarray().equals(xr.open_dataset(folder, engine="notebook_probe"))


def test_what_is_packed_keeps_its_marks_and_takes_no_others(tmp_path: Path) -> None:
    folder = recorded(tmp_path / "run.zarr")
    tag(folder, "good")
    packed = nbp.open_run(folder).pack(tmp_path / "run.zip")
    assert "marks/zarr.json" in zipfile.ZipFile(packed).namelist()
    assert read(packed)["tags"] == ["good"]
    with pytest.raises(RecordWriteError, match="is packed and is not changed"):
        tag(packed, "bad")


@pytest.mark.parametrize("kind", ["url", "store"])
def test_a_record_in_a_store_is_marked_by_an_object_beside(tmp_path: Path, kind: str) -> None:
    store: Any = f"memory://{tmp_path.name}-marks" if kind == "url" else MemoryStore()
    place = nbp.RemoteStore(store, spool=tmp_path / "spool")
    run = begun(place)
    tag(store, "far")
    run.log({"other": 1.0})
    run.close()
    assert read(store) == {"tags": ["far"], "note": "", "archived": False}
    assert len(nbp.open_run(store).data.step) >= 3


def test_of_many_who_mark_at_once_none_is_lost(tmp_path: Path) -> None:
    folder = recorded(tmp_path / "run.zarr")
    names = [f"tag {n}" for n in range(24)]
    threads = [threading.Thread(target=tag, args=(folder, name)) for name in names]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert sorted(read(folder)["tags"]) == sorted(names)
    assert [path.name for path in (folder / "marks").iterdir()] == ["zarr.json"]
    assert not [*folder.glob(".marks.*")]


def test_a_job_of_several_ranks_is_marked_as_one(tmp_path: Path) -> None:
    job = tmp_path / "job.zarr"
    for rank in range(2):
        recorded(job / f"rank_0000{rank}")
    tag(job, "both")
    assert [read(job / f"rank_0000{rank}")["tags"] for rank in range(2)] == [["both"], ["both"]]


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b"[]",
        b'{"attributes": 3}',
        b'{"attributes": {"tags": 3}}',
        b"[" * 100_000,
        b"\xff",
    ],
)
def test_damaged_marks_say_nothing_and_are_replaced(tmp_path: Path, content: bytes) -> None:
    folder = tmp_path / "run.zarr"
    (folder / "marks").mkdir(parents=True)
    (folder / "zarr.json").write_text("{}")
    (folder / "marks" / "zarr.json").write_bytes(content)
    assert read(folder) == NONE
    assert tag(folder, "a")["tags"] == ["a"]
    assert read(folder)["tags"] == ["a"]


def test_nothing_is_written_through_a_link_or_where_no_record_is(tmp_path: Path) -> None:
    folder = recorded(tmp_path / "run.zarr")
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (folder / "marks").symlink_to(elsewhere)
    with pytest.raises(RecordFormatError, match="is a link"):
        tag(folder, "a")
    (folder / "marks").unlink()
    (folder / "marks").mkdir()
    precious = tmp_path / "precious.json"
    precious.write_text("precious")
    (folder / "marks" / "zarr.json").symlink_to(precious)
    tag(folder, "a")
    assert precious.read_text() == "precious"
    assert not [*elsewhere.iterdir()]
    with pytest.raises(RecordFormatError, match="no record in"):
        tag(elsewhere, "a")
    assert not [*elsewhere.iterdir()]


def test_a_pipe_in_the_place_of_marks_is_not_waited_for(tmp_path: Path) -> None:
    folder = tmp_path / "run.zarr"
    (folder / "marks").mkdir(parents=True)
    os.mkfifo(folder / "marks" / "zarr.json")
    assert read(folder) == NONE


@pytest.mark.parametrize("wrong", ["", "  ", "a\nb", "x" * 101, 3, None])
def test_what_is_no_tag_is_refused(wrong: Any) -> None:
    with pytest.raises(ValueError, match="a line of at most 100 characters"):
        Marks().tagged([wrong])


@pytest.mark.parametrize("wrong", [None, "x" * 10_001])
def test_what_is_no_note_is_refused(wrong: Any) -> None:
    with pytest.raises(ValueError, match="text of at most 10000 characters"):
        Marks().noted(wrong)


@given(st.lists(st.text(min_size=1, max_size=5)), st.text(max_size=20), st.booleans())
def test_marks_read_back_as_they_were(tags: list[str], note: str, archived: bool) -> None:
    marks = Marks(tuple(tags), note, archived)
    assert Marks.parsed(marks.text()) == marks
    assert json.loads(marks.text())["node_type"] == "group"


def test_nothing_is_lost_of_a_record_that_cannot_be_marked(tmp_path: Path) -> None:
    folder = recorded(tmp_path / "run.zarr")
    tag(folder, "a")

    def fail(marks: Marks) -> Marks:
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        change(folder, fail)
    with warnings.catch_warnings():
        assert read(folder)["tags"] == ["a"]
