"""One packed file holds the whole record, and opens here and in plain xarray."""

from __future__ import annotations

import os
import zipfile
from pathlib import Path

import pytest
import xarray as xr
from zarr.storage import ZipStore

from notebook_probe.errors import RecordFormatError, RecordLockedError, RecordWriteError
from notebook_probe.record import RecordWriter, open_record
from notebook_probe.record.store import zipped
from tests.record.build import BINS, COUNTS, GRAD, fill, vectors


def begin_record(writer: RecordWriter) -> None:
    stream = writer.stream("every_1")
    stream.extend(["conv1", "fc"], [GRAD])
    fill(stream, range(8))
    hist = writer.stream("every_1", axis=BINS)
    hist.extend(["fc"], [COUNTS])
    assert hist.record(3, 3, vectors(hist, 3))


def test_a_packed_record_is_the_record(writer: RecordWriter, tmp_path: Path) -> None:
    writer.close()
    record = open_record(tmp_path / "a.zarr")
    path = record.pack(tmp_path / "out" / "a.zarr.zip")
    packed = open_record(path)
    xr.testing.assert_identical(packed.data.load(), record.data.load())
    xr.testing.assert_identical(packed.to_xarray("cube").load(), record.to_xarray("cube").load())
    xr.testing.assert_identical(packed.to_xarray("tree").load(), record.to_xarray("tree").load())
    assert (packed.events, packed.modules) == (record.events, record.modules)
    assert packed.finished
    assert packed.revision == 1


def test_plain_xarray_opens_it(writer: RecordWriter, tmp_path: Path) -> None:
    writer.close()
    path = writer.source.pack(tmp_path / "a.zarr.zip")
    with xr.open_zarr(ZipStore(path, mode="r"), group="scalars/every_1", chunks=None) as read:
        assert read["grad_norm"].sel(module="fc").values.tolist() == [100.0 + i for i in range(8)]


def test_members_are_stored_as_they_are_the_root_first(
    writer: RecordWriter, tmp_path: Path
) -> None:
    writer.close()
    first, again = (writer.source.pack(tmp_path / f"{i}.zip") for i in range(2))
    assert first.read_bytes() == again.read_bytes()
    with zipfile.ZipFile(first) as archive:
        assert archive.namelist()[0] == "zarr.json"
        assert not [name for name in archive.namelist() if name.startswith(".")]
        for member in archive.infolist():
            assert member.compress_type == zipfile.ZIP_STORED
            assert archive.read(member) == (tmp_path / "a.zarr" / member.filename).read_bytes()


def test_a_run_that_is_recorded_has_to_be_closed_first(
    writer: RecordWriter, tmp_path: Path
) -> None:
    assert writer.flush(60)
    for source in (writer.source, open_record(tmp_path / "a.zarr")):
        with pytest.raises(RecordLockedError, match=f"close the run .* process {os.getpid()} "):
            source.pack(tmp_path / "run.zip")
    assert not list(tmp_path.glob("*.zip*"))


def test_what_is_there_is_not_overwritten_unasked(writer: RecordWriter, tmp_path: Path) -> None:
    writer.close()
    (tmp_path / "run.zip").write_text("mine")
    with pytest.raises(RecordWriteError, match="exists already"):
        writer.source.pack(tmp_path / "run.zip")
    path = writer.source.pack(tmp_path / "run.zip", overwrite=True)
    with pytest.raises(RecordWriteError, match="no folder with a single record"):
        open_record(path).pack(tmp_path / "again.zip")


def test_links_out_of_the_record_are_not_packed(writer: RecordWriter, tmp_path: Path) -> None:
    writer.close()
    (tmp_path / "secret").write_text("secret")
    (tmp_path / "a.zarr/scalars/every_1/key").symlink_to(tmp_path / "secret")
    with pytest.raises(RecordFormatError, match="key is a link or a device"):
        writer.source.pack(tmp_path / "run.zip")
    assert not (tmp_path / "run.zip").exists()


def test_a_hostile_archive_is_refused_and_nothing_is_extracted(
    writer: RecordWriter, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    writer.close()
    path = writer.source.pack(tmp_path / "run.zip")
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr("../outside", b"x")
        archive.writestr("/absolute", b"x")
    before = sorted(tmp_path.rglob("*"))
    assert open_record(path).series("fc", "grad_norm").size == 8  # never asked for, never written
    assert sorted(tmp_path.rglob("*")) == before
    monkeypatch.setattr(zipped, "MOST_BYTES", 1000)
    with zipfile.ZipFile(path, "a", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("bomb", bytes(100_000))
    with pytest.raises(RecordFormatError, match=r"member .* larger than 1000 bytes"):
        open_record(path)


def test_a_name_that_is_there_twice_is_refused(writer: RecordWriter, tmp_path: Path) -> None:
    writer.close()
    path = writer.source.pack(tmp_path / "run.zip")
    with zipfile.ZipFile(path, "a") as archive, pytest.warns(UserWarning, match="Duplicate name"):
        archive.writestr("zarr.json", b"{}")
    with pytest.raises(RecordFormatError, match=r"'zarr\.json' is .* there twice"):
        open_record(path)


def test_a_damaged_archive_is_one_clear_error(writer: RecordWriter, tmp_path: Path) -> None:
    writer.close()
    path = writer.source.pack(tmp_path / "run.zip")
    content = bytearray(path.read_bytes())
    with zipfile.ZipFile(path) as archive:
        chunk = archive.getinfo("scalars/every_1/grad_norm/c/0/0")
    content[chunk.header_offset + 80] ^= 0xFF
    path.write_bytes(content)
    with pytest.raises(RecordFormatError, match="every_1/grad_norm"):
        open_record(path).series("fc", "grad_norm")
    path.write_bytes(content[: len(content) // 2])
    with pytest.raises(RecordFormatError, match=r"run\.zip"):
        open_record(path)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("readme.txt", "hello")
    with pytest.raises(RecordFormatError, match="no record at"):
        open_record(path)


def test_a_file_name_with_another_ending_is_refused(writer: RecordWriter, tmp_path: Path) -> None:
    writer.close()
    for name in ("a.pdf", "a", "a.zarr"):
        with pytest.raises(ValueError, match=rf"path='.*/{name}'; allowed: .* ends with \.zip$"):
            writer.source.pack(tmp_path / name)
        with pytest.raises(ValueError, match=rf"{name}'; allowed: .* \.nc, \.nc4 or \.h5$"):
            writer.source.to_netcdf(tmp_path / name)
        assert not (tmp_path / name).is_file()
