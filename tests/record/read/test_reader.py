"""Opening: what is there, what is not a record, and what grows meanwhile."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import xarray as xr
from zarr.storage import LocalStore, MemoryStore

import notebook_probe as nbp
from notebook_probe.errors import RecordFormatError
from notebook_probe.record import open_record
from notebook_probe.record.format.metadata import Nodes, root_text
from notebook_probe.record.format.schema import FORMAT_VERSION
from notebook_probe.record.store.location import Location
from tests.record.build import GRAD, fill, new_writer


def make(folder: Path) -> Path:
    with new_writer(folder) as writer:
        stream = writer.stream("every_1")
        stream.extend(["conv1"], [GRAD])
        fill(stream, range(4))
    return folder


def test_a_path_a_url_and_a_store_open_the_same_record(tmp_path: Path) -> None:
    folder = make(tmp_path / "a b.zarr")
    locations: list[Location] = [
        folder,
        str(folder),
        folder.as_uri(),
        LocalStore(folder, read_only=True),
    ]
    for location in locations:
        record = open_record(location)
        assert record.series("conv1", "grad_norm").values.tolist() == [0, 1, 2, 3]
        assert record.name == "run"
        assert "finished; every_1: 4 rows" in repr(record)


def test_a_growing_record_grows_under_its_reader(tmp_path: Path) -> None:
    with new_writer(tmp_path / "a.zarr") as writer:
        stream = writer.stream("every_1")
        stream.extend(["conv1"], [GRAD])
        fill(stream, range(4))
        assert writer.flush(60)
        record = open_record(tmp_path / "a.zarr")
        first = record.revision
        assert record.revision == first
        fill(stream, range(4, 9))
        assert record.revision == first
        assert writer.flush(60)
        old = record.streams["every_1"]
        assert (old.n_rows, record.revision > first) == (4, True)
        assert record.streams["every_1"].n_rows == 9
        assert old.values("grad_norm").size == 4  # one commit, for whoever still holds it
        assert not record.finished
    assert record.revision > first
    assert record.finished


def test_a_record_removed_while_open_says_so_only_when_read_again(tmp_path: Path) -> None:
    record = open_record(make(tmp_path / "a.zarr"))
    (tmp_path / "a.zarr").rename(tmp_path / "b.zarr")
    assert record.revision == 1
    with pytest.raises(RecordFormatError, match="no record at"):
        record.refresh()


def test_what_is_no_record_is_refused(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "file").write_text("x")
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "zarr.json").write_text("{")
    xr.Dataset({"x": ("t", [1])}).to_zarr(tmp_path / "plain", zarr_format=3, consolidated=False)
    for name in ("missing", "empty", "file", "broken", "plain"):
        with pytest.raises(RecordFormatError, match=name):
            open_record(tmp_path / name)
    with pytest.raises(RecordFormatError):
        open_record(MemoryStore())


def test_of_a_place_without_a_record_it_is_said_what_lies_there_or_beside(tmp_path: Path) -> None:
    runs = tmp_path / "runs"
    for name in ("first.zarr", "second.zarr"):
        make(runs / name)
    (runs / "notes").mkdir()
    said = {
        runs / "frist.zarr": rf"no record at .*frist\.zarr in {runs}; close: 'first\.zarr'",
        runs / "x": rf"no record at .*x in {runs}; known: 'first\.zarr', 'second\.zarr'$",
        runs: rf"no record at {runs}; it contains '{runs}/first\.zarr', '{runs}/second\.zarr'$",
        runs / "notes": rf"no record at {runs}/notes$",
        runs / "notes" / "x": rf"no record at {runs}/notes/x in {runs}/notes$",
        tmp_path / "rnus" / "x": rf"no record at .*: there is no folder {tmp_path}/rnus$",
    }
    for place, words in said.items():
        with pytest.raises(RecordFormatError, match=words):
            open_record(place)


def test_a_zip_file_without_a_record_at_its_top_says_what_is_wrong(tmp_path: Path) -> None:
    record = make(tmp_path / "first.zarr")
    around = shutil.make_archive(str(tmp_path / "around"), "zip", tmp_path, record.name)
    with pytest.raises(RecordFormatError, match=r"contains the folder 'first\.zarr': unpack it"):
        open_record(around)
    half = tmp_path / "half.zip"
    half.write_bytes(Path(around).read_bytes()[:500])
    with pytest.raises(RecordFormatError, match="it is no zip file, or an incomplete one"):
        open_record(half)


def test_a_newer_format_is_refused_and_unknown_parts_are_ignored(tmp_path: Path) -> None:
    document = json.loads((make(tmp_path / "a.zarr") / "zarr.json").read_text())
    document["attributes"]["from_the_future"] = True
    nodes = document["consolidated_metadata"]["metadata"]
    document["consolidated_metadata"]["metadata"] = {"spectra": nodes["scalars"], **nodes}
    (tmp_path / "a.zarr" / "zarr.json").write_text(json.dumps(document))
    assert open_record(tmp_path / "a.zarr").series("conv1", "grad_norm").size == 4
    document["attributes"]["format_version"] = FORMAT_VERSION + 1
    (tmp_path / "a.zarr" / "zarr.json").write_text(json.dumps(document))
    with pytest.raises(RecordFormatError, match=r"record of format 3; .* up to 2: .*a\.zarr"):
        open_record(tmp_path / "a.zarr")


def test_the_root_lists_neighbours_together() -> None:
    """Order by depth, then parent, then name, whatever the order of arrival."""
    paths = ["b", "a", "b/x/q", "a/y", "b/x", "b/x/p", "a/y/r", "b/w", "b/w/z"]
    nodes = Nodes()
    for path in paths:
        nodes.group(path)
    listed = json.loads(root_text({}, nodes.inline()))["consolidated_metadata"]["metadata"]
    assert list(listed) == ["a", "b", "a/y", "b/w", "b/x", "a/y/r", "b/w/z", "b/x/p", "b/x/q"]


@pytest.mark.parametrize("given", [42, None, 1.5, ["a.zarr"]])
def test_what_is_no_location_is_not_opened(given: Any) -> None:
    with pytest.raises(TypeError, match=r"open_run\(.*a path, a URL, a zarr Store"):
        nbp.open_run(given)
