"""A store that cannot be written: training goes on, nothing is silent, and it heals."""

from __future__ import annotations

import os
import resource
import shutil
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

from notebook_probe.errors import RecordWarning, RecordWriteError
from notebook_probe.record import RecordWriter, StreamWriter, open_record
from tests.record.build import GRAD, fill, new_writer, row


@contextmanager
def full_disk() -> Iterator[None]:
    """No file may grow beyond some bytes, which is how a full disk looks to a writer."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    ignored = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (16, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        signal.signal(signal.SIGXFSZ, ignored)


@contextmanager
def removed(folder: Path) -> Iterator[None]:
    away = folder.with_suffix(".away")
    folder.rename(away)
    yield
    away.rename(folder)


@contextmanager
def replaced(folder: Path) -> Iterator[None]:
    with removed(folder):
        new_writer(folder).close()
        yield
        shutil.rmtree(folder)


@contextmanager
def denied(folder: Path) -> Iterator[None]:
    """Nobody but the superuser may look into the folder, and that is not us."""
    mode, superuser = folder.stat().st_mode, os.geteuid() == 0
    folder.chmod(0)
    if superuser:
        os.seteuid(65534)
    try:
        yield
    finally:
        if superuser:
            os.seteuid(0)
        folder.chmod(mode)


@contextmanager
def fault(kind: str, folder: Path) -> Iterator[None]:
    faults = {"full": full_disk(), "denied": denied(folder)}
    faults |= {"removed": removed(folder), "replaced": replaced(folder)}
    with faults[kind]:
        yield


@pytest.fixture
def small_writer(tmp_path: Path) -> Iterator[RecordWriter]:
    with new_writer(tmp_path / "a.zarr", ring_bytes=300_000) as writer:
        stream = writer.stream("every_1")
        stream.extend(["conv1"], [GRAD])
        fill(stream, range(5))
        assert writer.flush(60)
        yield writer


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        ("full", "File too large"),
        ("denied", "Permission denied"),
        ("removed", "was removed"),
        ("replaced", "removed or replaced"),
    ],
)
def test_rows_wait_until_the_fault_is_gone(
    small_writer: RecordWriter, tmp_path: Path, kind: str, words: str
) -> None:
    stream = small_writer.stream("every_1")
    with fault(kind, tmp_path / "a.zarr"):
        fill(stream, range(5, 2000))
        assert not small_writer.flush(10)
        assert words in small_writer.last_error
        assert small_writer.published_rows("every_1") == 5
        assert small_writer.source.series("conv1", "grad_norm").size == 2000
    assert small_writer.flush(60)
    assert small_writer.last_error == ""
    fill(stream, range(2000, 2010))
    small_writer.close()
    assert small_writer.dropped_rows == 0
    assert open_record(tmp_path / "a.zarr").series("conv1", "grad_norm").size == 2010


def test_a_published_record_stays_readable_while_the_disk_is_full(
    small_writer: RecordWriter, tmp_path: Path
) -> None:
    stream = small_writer.stream("every_1")
    with full_disk():
        fill(stream, range(5, 10))
        assert not small_writer.flush(10)
        record = open_record(tmp_path / "a.zarr")
        assert record.series("conv1", "grad_norm").values.tolist() == [0, 1, 2, 3, 4]


def record_many(stream: StreamWriter, steps: range) -> list[bool]:
    return [stream.record(step, 0, row(stream, step)) for step in steps]


@pytest.mark.slow
def test_rows_beyond_the_memory_are_dropped_and_counted(
    small_writer: RecordWriter, tmp_path: Path
) -> None:
    stream = small_writer.stream("every_1")
    with full_disk():
        kept = record_many(stream, range(5, 50_000))
        assert not small_writer.flush(10)
        n_lost = kept.count(False)
        assert 0 < n_lost < 50_000
        assert small_writer.dropped_rows == n_lost
        assert stream.n_rows == 50_000 - n_lost
    assert small_writer.flush(60)
    assert all(record_many(stream, range(50_000, 50_010)))
    with pytest.warns(RecordWarning, match=f"{n_lost} rows were lost: OSError.* File too large"):
        small_writer.close()
    record = open_record(tmp_path / "a.zarr")
    assert record.attrs["dropped_rows"] == n_lost
    series = record.series("conv1", "grad_norm")
    assert series.size == 50_010 - n_lost
    assert np.array_equal(series.values, series.step.values)


def test_closing_on_a_full_disk_counts_what_is_lost(tmp_path: Path) -> None:
    writer = new_writer(tmp_path / "a.zarr")
    stream = writer.stream("every_1")
    stream.extend(["conv1"], [GRAD])
    fill(stream, range(7))
    lost = "7 rows could not be written: OSError.* File too large. They are lost, as no other"
    with full_disk(), pytest.raises(RecordWriteError, match=lost):
        writer.close()
    assert writer.dropped_rows == 7
    assert "File too large" in writer.last_error
    assert not open_record(tmp_path / "a.zarr").finished


def test_a_record_removed_for_good_does_not_come_back(
    small_writer: RecordWriter, tmp_path: Path
) -> None:
    shutil.rmtree(tmp_path / "a.zarr")
    fill(small_writer.stream("every_1"), range(5, 10))
    with pytest.raises(RecordWriteError, match=r"5 rows could not be written: .* was removed"):
        small_writer.close()
    assert "was removed" in small_writer.last_error
    [kept] = tmp_path.iterdir()  # beside it, what was never written
    assert open_record(kept).series("conv1", "grad_norm").step.values.tolist() == [*range(5, 10)]
