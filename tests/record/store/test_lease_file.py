"""Where no file can be locked, a lease keeps the second writer away."""

from __future__ import annotations

import errno
import json
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from notebook_probe.errors import RecordLockedError, RecordWarning, RecordWriteError
from notebook_probe.record import RecordWriter, open_record
from notebook_probe.record.store import lease_file, lock
from notebook_probe.record.store.lease_file import LEASE_S
from tests.record.build import GRAD, fill, new_writer


@pytest.fixture(params=["ENOLCK", "ENOSYS", "EOPNOTSUPP"])
def without_locks(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """A file system that says this when a file is to be locked."""

    def refuse(_: int) -> None:
        code = getattr(errno, request.param)
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(lock, "_lock", refuse)
    return str(os.strerror(getattr(errno, request.param)))


@pytest.fixture
def later(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Let so many seconds pass for whoever looks at a lease."""
    passed, now = [0.0], time.time
    monkeypatch.setattr(time, "time", lambda: now() + passed[0])
    return lambda seconds: passed.__setitem__(0, passed[0] + seconds)


def begun(folder: Path) -> RecordWriter:
    with pytest.warns(RecordWarning, match="is where files cannot be locked"):
        writer = new_writer(folder)
    writer.stream("every_1").extend(["conv1"], [GRAD])
    return writer


@pytest.fixture
def leasing_writer(without_locks: str, tmp_path: Path) -> Iterator[RecordWriter]:
    writer = begun(tmp_path / "a.zarr")
    yield writer
    writer.close()


def test_a_record_is_written_where_no_file_can_be_locked(
    without_locks: str, tmp_path: Path
) -> None:
    with pytest.warns(RecordWarning, match=rf"\({without_locks}\); its file \.lease keeps other"):
        writer = new_writer(tmp_path / "a.zarr")
    with writer:
        writer.stream("every_1").extend(["conv1"], [GRAD])
        fill(writer.stream("every_1"), range(5))
        assert writer.flush(60)
        assert (tmp_path / "a.zarr/.lease").exists()
    assert not (tmp_path / "a.zarr/.lease").exists()
    assert open_record(tmp_path / "a.zarr").series("conv1", "grad_norm").size == 5
    begun(tmp_path / "a.zarr").close()


def test_a_second_writer_is_told_who_has_the_lease(
    leasing_writer: RecordWriter, tmp_path: Path
) -> None:
    words = rf"another writer: process {os.getpid()} on .*; if it has died, its lease ends in \d+ s"
    with pytest.raises(RecordLockedError, match=words):
        new_writer(tmp_path / "a.zarr")
    fill(leasing_writer.stream("every_1"), range(5))
    assert leasing_writer.flush(60)


def test_a_lease_is_renewed_by_writing(
    leasing_writer: RecordWriter, tmp_path: Path, later: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lease_file, "RENEW_S", 0.0)
    for first in (0, 5, 10):
        later(LEASE_S * 0.7)
        fill(leasing_writer.stream("every_1"), range(first, first + 5))
        assert leasing_writer.flush(60)
    with pytest.raises(RecordLockedError, match="has another writer"):
        new_writer(tmp_path / "a.zarr")


def test_a_dead_writers_lease_is_taken_over_and_one_that_only_slept_writes_no_more(
    leasing_writer: RecordWriter, tmp_path: Path, later: Any
) -> None:
    fill(leasing_writer.stream("every_1"), range(5))
    assert leasing_writer.flush(60)
    later(LEASE_S + 1)
    second = begun(tmp_path / "a.zarr")
    fill(leasing_writer.stream("every_1"), range(5, 10))
    assert not leasing_writer.flush(60)
    assert "another writer: process" in leasing_writer.last_error
    fill(second.stream("every_1"), range(5, 7))
    assert second.flush(60)
    with pytest.raises(RecordWriteError, match="5 rows could not be written"):
        leasing_writer.close()
    second.close()
    assert open_record_quietly(tmp_path / "a.zarr") == [0, 1, 2, 3, 4, 5, 6]


def open_record_quietly(folder: Path) -> list[int]:
    with pytest.warns(RecordWarning, match="lacks rows"):
        record = open_record(folder)
    steps: list[int] = record.series("conv1", "grad_norm").step.values.tolist()
    return steps


def test_a_machine_with_locks_respects_the_lease_of_one_without(
    leasing_writer: RecordWriter, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lock, "_lock", lambda _: None)
    with pytest.raises(RecordLockedError, match="its lease ends in"):
        new_writer(tmp_path / "a.zarr")


@pytest.mark.parametrize("content", [b"", b"{", b"[1]", b'{"ends": "soon"}'])
def test_a_lease_that_cannot_be_read_ends_like_any_other(
    without_locks: str, tmp_path: Path, later: Any, content: bytes
) -> None:
    begun(tmp_path / "a.zarr").close()
    (tmp_path / "a.zarr/.lease").write_bytes(content)
    with pytest.raises(RecordLockedError, match="another writer"):
        new_writer(tmp_path / "a.zarr")
    later(LEASE_S + 1)
    begun(tmp_path / "a.zarr").close()


def test_of_two_who_take_over_one_gets_the_lease(tmp_path: Path) -> None:
    old = json.dumps({"ends": 0}).encode()
    (tmp_path / ".lease").write_bytes(old)
    first = lease_file.LeaseFile(tmp_path, {})
    late = lease_file.LeaseFile.__new__(lease_file.LeaseFile)  # who had looked before
    late.path, late._aside = tmp_path / ".lease", tmp_path / ".lease.late"
    with pytest.raises(RecordLockedError, match="has another writer"):
        late._take_over(old)
    first.keep()


def test_trouble_that_is_no_lock_of_another_is_not_called_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(_: int) -> None:
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(lock, "_lock", broken)
    with pytest.raises(RecordWriteError, match=r"cannot write the record .* Input/output error"):
        new_writer(tmp_path / "a.zarr")
