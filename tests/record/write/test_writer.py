"""The life of a writer: making, continuing, locking, forking, closing."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import threading
import weakref
from pathlib import Path

import numpy as np
import pytest
import xarray as xr

from notebook_probe.errors import (
    RecordFormatError,
    RecordLockedError,
    RecordWriteError,
)
from notebook_probe.record import RecordWriter, open_record
from tests.record.build import GRAD, MODULES, WEIGHT, fill, new_writer, row


def writer_threads() -> set[threading.Thread]:
    return {thread for thread in threading.enumerate() if thread.name == "notebook_probe record"}


def test_a_continued_record_goes_on_where_it_ended(tmp_path: Path) -> None:
    with new_writer(tmp_path / "a.zarr") as first:
        stream = first.stream("every_1", "every(1)")
        stream.extend(["conv1"], [WEIGHT, GRAD])
        fill(stream, range(10))
        first.event(0, "attach", "all")
        assert (first.continued, first.last_step) == (False, 9)
    with new_writer(tmp_path / "a.zarr") as second:
        assert (second.continued, second.last_step, second.run_id) == (True, 9, first.run_id)
        stream = second.stream("every_1")
        assert stream.long_name == "every(1)"
        assert dict(stream.variable_index) == {"weight_norm": 0, "grad_norm": 1}
        with pytest.raises(ValueError, match="after step 9"):
            stream.record(9, 0, row(stream, 9))
        stream.extend(["fc"])
        fill(stream, range(20, 25))
        second.event(20, "resume", "again")
        live = second.source.streams["every_1"]
        assert live.steps(8).tolist() == [8, 9, 20, 21, 22, 23, 24]
        assert live.values("weight_norm", 9, 11, ["fc", "conv1"]).tolist()[1] == [120, 20]
        assert not open_record(tmp_path / "a.zarr").finished
    record = open_record(tmp_path / "a.zarr")
    assert record.finished
    assert [event.kind for event in record.events] == ["attach", "resume"]
    assert record.series("conv1", "weight_norm").step.values.tolist() == [
        *range(10),
        *range(20, 25),
    ]
    assert record.series("fc", "grad_norm").values.tolist() == [1120, 1121, 1122, 1123, 1124]


def test_foreign_files_are_never_touched(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "notes.txt").write_text("mine")
    xr.Dataset({"x": ("t", [1, 2])}).to_zarr(
        tmp_path / "other.zarr", zarr_format=3, consolidated=False
    )
    before = sorted(path for path in tmp_path.rglob("*"))
    for name in ("notes.txt", "folder", "other.zarr"):
        with pytest.raises(RecordFormatError, match=name):
            new_writer(tmp_path / name)
    assert sorted(path for path in tmp_path.rglob("*")) == before
    assert (tmp_path / "notes.txt").read_text() == "mine"


def test_an_empty_folder_and_one_left_before_the_first_commit_are_used(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    new_writer(tmp_path / "empty").close()
    (tmp_path / "begun" / "modules").mkdir(parents=True)
    (tmp_path / "begun" / ".lock").touch()
    new_writer(tmp_path / "begun").close()
    assert open_record(tmp_path / "begun").finished


def test_what_cannot_be_made_is_one_clear_error(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(RecordWriteError, match=r"file/a\.zarr"):
        new_writer(tmp_path / "file" / "a.zarr")
    with pytest.raises(RecordWriteError, match=r"s3://bucket/a\.zarr"):
        RecordWriter("s3://bucket/a.zarr", title="run", modules=MODULES)


def test_a_second_writer_of_the_same_process_is_refused(tmp_path: Path) -> None:
    with (
        new_writer(tmp_path / "a.zarr"),
        pytest.raises(RecordLockedError, match=rf"process {os.getpid()} on .*, since 20"),
    ):
        new_writer(tmp_path / "a.zarr")


WRITE_IN_PROCESS = """
import sys
from pathlib import Path
from tests.record.build import *
writer = new_writer(Path(sys.argv[1]))
stream = writer.stream("every_1")
stream.extend(["conv1"], [GRAD])
fill(stream, range(7))
"""


def in_process(code: str, folder: Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", WRITE_IN_PROCESS + code, str(folder)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


@pytest.mark.slow
def test_a_second_process_is_refused_until_the_first_dies(tmp_path: Path) -> None:
    with in_process("print('ready', flush=True); sys.stdin.read()", tmp_path / "a.zarr") as child:
        assert child.stdout is not None
        assert child.stdout.readline() == "ready\n"
        with pytest.raises(RecordLockedError, match=f"process {child.pid} on"):
            new_writer(tmp_path / "a.zarr")
        child.kill()
        child.wait()
    new_writer(tmp_path / "a.zarr").close()


@pytest.mark.slow
def test_the_interpreters_exit_writes_the_rest_and_closes(tmp_path: Path) -> None:
    with in_process("", tmp_path / "a.zarr") as child:
        assert child.wait(60) == 0
    record = open_record(tmp_path / "a.zarr")
    assert record.finished
    assert record.streams["every_1"].n_rows == 7


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="there is no fork on Windows")
def test_a_forked_child_neither_writes_nor_keeps_nor_takes_the_lock(tmp_path: Path) -> None:
    """The child outlives its parent, as an orphaned DataLoader worker does."""
    code = """
import os
reading, writing = os.pipe()
if os.fork() == 0:
    fill(stream, range(100, 103))
    writer.flush(1)
    writer.close()
    os.close(reading)
    os.write(writing, b"x")
    os.close(1)
    sys.stdin.read()  # until the test ends
    os._exit(0)
os.read(reading, 1)
fill(stream, range(7, 9))
try:
    new_writer(Path(sys.argv[1]))
except BlockingIOError:
    print("still locked", flush=True)
writer.close()
"""
    with in_process(code, tmp_path / "a.zarr") as parent:
        assert parent.stdout is not None
        assert parent.stdout.readline() == "still locked\n"
        assert parent.wait(60) == 0
        new_writer(tmp_path / "a.zarr").close()
        assert open_record(tmp_path / "a.zarr").streams["every_1"].steps().tolist() == [*range(9)]


def test_closing_ends_the_thread_and_may_be_done_twice(tmp_path: Path) -> None:
    before = writer_threads()
    writer = new_writer(tmp_path / "a.zarr")
    stream = writer.stream("every_1")
    stream.extend(["conv1"], [GRAD])
    fill(stream, range(3))
    assert len(writer_threads() - before) == 1
    writer.close()
    writer.close()
    assert writer_threads() <= before
    assert writer.source.finished
    assert writer.source.series("conv1", "grad_norm").values.tolist() == [0, 1, 2]
    assert not stream.record(3, 0, row(stream, 3))
    assert writer.dropped_rows == 1
    assert not writer.flush(1)


def test_a_forgotten_writer_is_closed(tmp_path: Path) -> None:
    before = writer_threads()
    writer = new_writer(tmp_path / "a.zarr")
    stream = writer.stream("every_1")
    stream.extend(["conv1"], [GRAD])
    fill(stream, range(3))
    gone = weakref.ref(writer)
    del writer
    gc.collect()
    assert gone() is None
    assert writer_threads() <= before
    assert open_record(tmp_path / "a.zarr").finished


def test_a_record_without_rows_and_events_can_be_discarded(tmp_path: Path) -> None:
    empty = new_writer(tmp_path / "runs" / "empty.zarr")
    empty.stream("every_1").extend(["conv1"], [GRAD])
    assert empty.discard_if_empty()
    assert list((tmp_path / "runs").iterdir()) == []
    with new_writer(tmp_path / "a.zarr") as told:
        told.event(0, "attach", "x")
    assert not told.discard_if_empty()
    assert open_record(tmp_path / "a.zarr").events


def test_rows_reach_the_disk_by_time_and_by_number(tmp_path: Path) -> None:
    for name, flush_s, flush_rows in (("time", 0.01, 10**9), ("rows", 3600.0, 1)):
        writer = RecordWriter(
            tmp_path / name, title="run", modules=[], flush_s=flush_s, flush_rows=flush_rows
        )
        stream = writer.stream("every_1")
        stream.extend(["conv1"], [GRAD])
        step = 0
        while not writer.published_rows("every_1"):
            stream.record(step, 0, np.zeros((1, 1), np.float32))
            step += 1
        assert writer.flushed_at is not None
        writer.close()


def test_the_size_is_that_of_the_files(tmp_path: Path) -> None:
    with new_writer(tmp_path / "a.zarr") as writer:
        stream = writer.stream("every_1")
        stream.extend(["conv1"], [GRAD])
        fill(stream, range(3))
    files = [path for path in (tmp_path / "a.zarr").rglob("*") if path.is_file()]
    assert writer.nbytes == sum(path.stat().st_size for path in files)
    again = new_writer(tmp_path / "a.zarr")
    again.close()
    assert again.nbytes == sum(path.stat().st_size for path in files)
