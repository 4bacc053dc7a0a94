"""A record that may only get so large."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from notebook_probe.record import RecordWriter, open_record
from tests.record.build import GRAD, MODULES, new_writer

ROOM = 2_000_000


def filled(writer: RecordWriter) -> int:
    """Record noise, flushed now and then, until no row is taken; returns the rows taken."""
    stream = writer.stream("every_1")
    stream.extend([f"m{i}" for i in range(50)], [GRAD])
    rng, step = np.random.default_rng(0), 0
    while stream.record(step, 0, rng.normal(size=(1, 50)).astype(np.float32)):
        step += 1
        if step % 100 == 0:
            assert writer.flush(60)
    return step


@pytest.mark.slow
def test_recording_stops_at_its_size_and_says_so_everywhere(tmp_path: Path) -> None:
    with RecordWriter(tmp_path / "a.zarr", title="a", modules=MODULES, max_bytes=ROOM) as writer:
        n_rows = filled(writer)
        why = f"nothing is recorded after step {n_rows - 1}: the record has its max_bytes={ROOM}"
        assert writer.stopped == why
        assert writer.dropped_rows == 1
        assert not writer.stream("every_2").record(0, 0, np.empty((0, 0), np.float32))
        assert writer.source.events[-1].kind == "full"
    record = open_record(tmp_path / "a.zarr")
    assert record.streams["every_1"].n_rows == n_rows
    assert record.attrs["recording_stopped"] == why
    assert record.attrs["dropped_rows"] == 2
    assert (record.events[-1].step, record.events[-1].text) == (n_rows - 1, why)
    on_disk = sum(path.stat().st_size for path in (tmp_path / "a.zarr").rglob("*"))
    assert ROOM / 2 < on_disk < ROOM + 50 * 100 * 4
    with new_writer(tmp_path / "a.zarr") as again:
        assert again.stopped == ""
        stream = again.stream("every_1")
        assert stream.record(n_rows, 0, np.zeros(stream.shape, np.float32))
    record = open_record(tmp_path / "a.zarr")
    assert record.streams["every_1"].n_rows == n_rows + 1
    assert "recording_stopped" not in record.attrs


def test_a_stopped_record_is_not_written_again_and_again(tmp_path: Path) -> None:
    with RecordWriter(
        tmp_path / "a.zarr", title="a", modules=MODULES, max_bytes=1, flush_s=0.001
    ) as writer:
        stream = writer.stream("every_1")
        stream.extend(["fc"], [GRAD])
        step = 0
        while stream.record(step, 0, np.zeros((1, 1), np.float32)):
            step += 1
        assert writer.flush(60)
        written = (tmp_path / "a.zarr" / "zarr.json").stat().st_mtime_ns
        for late in range(step, step + 50_000):
            assert not stream.record(late, 0, np.zeros((1, 1), np.float32))
        assert (tmp_path / "a.zarr" / "zarr.json").stat().st_mtime_ns == written
    assert open_record(tmp_path / "a.zarr").attrs["dropped_rows"] == 50_001


@pytest.mark.parametrize("size", [0, -1])
def test_a_size_that_is_none_is_refused(tmp_path: Path, size: int) -> None:
    with pytest.raises(ValueError, match=f"max_bytes={size}; a positive number"):
        RecordWriter(tmp_path / "a.zarr", title="a", modules=MODULES, max_bytes=size)
    assert not (tmp_path / "a.zarr").exists()
