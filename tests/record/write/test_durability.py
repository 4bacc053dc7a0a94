"""What is left of a record when the power fails: a disk that keeps what was synced, and no more."""

from __future__ import annotations

import os
import stat
import sys
from pathlib import Path
from typing import Any

import pytest

from notebook_probe.record import RecordWriter, open_record
from notebook_probe.record.write import opening
from notebook_probe.record.write.streams.hot_chunks import HotChunks
from notebook_probe.record.write.streams.plain_chunks import PlainChunks
from tests.record.build import GRAD, MODULES, NEVER_S, WEIGHT, fill


class Disk:
    """The bytes of files and the names in folders, as they were when last synced."""

    def __init__(self) -> None:
        self.contents: dict[int, bytes] = {}
        self.names: dict[Path, dict[str, int]] = {}
        self._fsync = os.fsync

    def fsync(self, fd: int) -> None:
        self._fsync(fd)
        path, found = Path(f"/proc/self/fd/{fd}").readlink(), os.fstat(fd)
        if stat.S_ISDIR(found.st_mode):
            self.names[path] = {one.name: one.stat().st_ino for one in path.iterdir()}
        else:
            self.contents[found.st_ino] = path.read_bytes()

    def restore(self, folder: Path, target: Path) -> None:
        """Make ``target`` what ``folder`` is after the power came back."""
        target.mkdir()
        for name, number in self.names.get(folder, {}).items():
            if (folder / name).is_dir():
                self.restore(folder / name, target / name)
            else:
                (target / name).write_bytes(self.contents.get(number, b""))


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch) -> Disk:
    disk = Disk()
    monkeypatch.setattr(os, "fsync", disk.fsync)
    return disk


def recording(folder: Path, **options: Any) -> RecordWriter:
    writer = RecordWriter(folder, title="a", modules=MODULES, flush_s=NEVER_S, **options)
    writer.stream("every_1").extend(["conv1", "fc"], [GRAD, WEIGHT])
    return writer


@pytest.mark.skipif(sys.platform != "linux", reason="a descriptor's path is asked of /proc")
@pytest.mark.parametrize("engine", [HotChunks, PlainChunks])
def test_every_flushed_row_outlives_a_loss_of_power(
    tmp_path: Path, disk: Disk, engine: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(opening, "new_chunks", engine)
    folder = tmp_path / "a.zarr"
    writer = recording(folder, durability="power loss")
    for first in (0, 300, 600):
        fill(writer.stream("every_1"), range(first, first + 300))
        if first == 300:  # arrays that are new
            late = writer.stream("every_2")
            late.extend(["fc"], [GRAD])
            fill(late, range(0, 600, 2))
        assert writer.flush(60), writer.last_error
        disk.restore(folder, tmp_path / f"after {first}")
        record = open_record(tmp_path / f"after {first}")
        series = record.series("fc", "weight_norm")
        assert series.step.values.tolist() == [*range(first + 300)]
        assert series.values.tolist() == [1100 + step for step in range(first + 300)]
        assert ("every_2" in record.streams) == (first > 0)
    writer.close()
    disk.restore(folder, tmp_path / "closed")
    record = open_record(tmp_path / "closed")
    assert record.finished
    assert record.series("fc", "weight_norm").size == 900
    assert record.streams["every_2"].values("grad_norm")[:, 0].tolist() == [*range(0, 600, 2)]
    assert str(folder.name) in disk.names[tmp_path]


def test_nothing_waits_for_the_disk_by_default(tmp_path: Path, disk: Disk) -> None:
    with recording(tmp_path / "a.zarr") as writer:
        fill(writer.stream("every_1"), range(5))
        assert writer.flush(60)
    assert (disk.contents, disk.names) == ({}, {})


def test_a_durability_that_nobody_knows_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="durability='power'; one of kill, power loss"):
        recording(tmp_path / "a.zarr", durability="power")
    assert not (tmp_path / "a.zarr").exists()
