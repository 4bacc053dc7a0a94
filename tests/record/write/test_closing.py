"""What closing cannot write is counted, said, and kept where the next writer finds it."""

from __future__ import annotations

import errno
import gc
import re
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from notebook_probe.errors import RecordWarning, RecordWriteError
from notebook_probe.record import RecordWriter, Variable, open_record
from notebook_probe.record.store.files import Files
from notebook_probe.record.write import flusher
from notebook_probe.record.write.streams import rows, stream
from tests.record.build import BINS, COUNTS, GRAD, WEIGHT, fill, fill_vectors, new_writer


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The user's cache and the folder for temporary files, in the test's own folder."""
    places = tmp_path / "elsewhere"
    (places / "temporary").mkdir(parents=True)
    monkeypatch.setenv("HOME", str(places / "home"))
    monkeypatch.setattr(tempfile, "tempdir", str(places / "temporary"))
    return places


def recording(folder: Path, n_rows: int = 5) -> RecordWriter:
    """A writer with so many rows on disk."""
    writer = new_writer(folder)
    writer.stream("every_1").extend(["conv1", "fc"], [GRAD, WEIGHT])
    fill(writer.stream("every_1"), range(n_rows))
    assert writer.flush(60)
    return writer


def close_in_vain(writer: RecordWriter) -> Path:
    """Close a writer that cannot write; returns where its rows are kept, as the error says."""
    with pytest.raises(RecordWriteError) as said:
        writer.close()
    assert str(said.value).endswith(writer.last_error)
    kept = re.search(r"are kept in (\S+), a separate record", str(said.value))
    assert kept is not None, said.value
    return Path(kept[1])


def fill_disk(monkeypatch: pytest.MonkeyPatch, *folders: Path) -> None:
    """Nothing can be written below these folders any more."""
    written = Files.write_sparse

    def write(self: Files, key: str, content: bytes, size: int) -> None:
        if any(self.folder.is_relative_to(folder) for folder in folders):
            raise OSError(errno.ENOSPC, "No space left on device")
        written(self, key, content, size)

    monkeypatch.setattr(Files, "write_sparse", write)


def steps_of(folder: Path) -> list[int]:
    found: list[int] = open_record(folder).series("fc", "weight_norm").step.values.tolist()
    return found


Spoil = Callable[[RecordWriter, pytest.MonkeyPatch], Path]


def full(writer: RecordWriter, monkeypatch: pytest.MonkeyPatch) -> Path:
    fill_disk(monkeypatch, Path(writer.location))
    return Path(writer.location)


def renamed(writer: RecordWriter, monkeypatch: pytest.MonkeyPatch) -> Path:
    return Path(writer.location).rename(Path(writer.location).with_name("b.zarr"))


def out_of_memory(writer: RecordWriter, monkeypatch: pytest.MonkeyPatch) -> Path:
    def concatenate(*_: object, **__: object) -> None:
        raise MemoryError("no room for a copy")

    monkeypatch.setattr(rows.BufferedRows, "times", concatenate, raising=True)
    return Path(writer.location)


@pytest.mark.slow
@pytest.mark.parametrize("spoil", [full, renamed], ids=lambda spoil: spoil.__name__)
def test_rows_that_closing_cannot_write_are_said_counted_kept_and_taken_in_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, spoil: Spoil
) -> None:
    writer = recording(tmp_path / "a.zarr")
    folder = spoil(writer, monkeypatch)
    fill(writer.stream("every_1"), range(5, 1025))
    kept = close_in_vain(writer)
    assert writer.dropped_rows == 1020
    assert "1020 rows could not be written: " in writer.last_error
    assert kept.parent == tmp_path
    monkeypatch.undo()
    with pytest.warns(RecordWarning, match=rf"lacks rows that could not be written: .* {kept}, a"):
        assert steps_of(folder) == [0, 1, 2, 3, 4]
    rest = open_record(kept).series("fc", "weight_norm")
    assert rest.step.values.tolist() == [*range(5, 1025)]
    assert np.array_equal(rest.values, 1100.0 + np.arange(5, 1025))
    with new_writer(folder) as again:
        assert again.first_step == 1025
        fill(again.stream("every_1"), range(1025, 1030))
    whole = open_record(folder)  # without a warning
    assert np.array_equal(whole.series("fc", "weight_norm").values, 1100.0 + np.arange(1030))
    assert whole.attrs["dropped_rows"] == 0
    assert not kept.exists()


def test_rows_go_elsewhere_when_there_is_no_room_beside_the_record(
    tmp_path: Path, elsewhere: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "disk" / "a.zarr"
    full = [tmp_path / "disk"]
    for place in (elsewhere / "home/.cache/notebook_probe", elsewhere / "temporary"):
        with new_writer(folder) as writer:  # takes in what was kept in the place before
            first = writer.first_step
            every = writer.stream("every_1")
            every.extend(["conv1", "fc"], [GRAD, WEIGHT])
            assert first == 5 * len(full) - 5
            fill(every, range(first, first + 5))
            with monkeypatch.context() as patched:
                fill_disk(patched, *full)
                assert close_in_vain(writer).parent == place
        full.append(place)
    new_writer(folder).close()
    assert steps_of(folder) == [*range(10)]


def test_rows_that_can_be_kept_nowhere_are_said_to_be_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    writer = recording(tmp_path / "a.zarr")
    fill(writer.stream("every_1"), range(5, 8))
    fill_disk(monkeypatch, tmp_path)
    with pytest.raises(RecordWriteError, match=r"3 rows .* No space left .* They are lost, as no"):
        writer.close()
    assert writer.dropped_rows == 3
    assert [path.name for path in tmp_path.iterdir() if "unwritten" in path.name] == []


def test_an_account_without_a_home_keeps_and_opens_records(
    tmp_path: Path, elsewhere: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_home() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(Path, "home", no_home)
    with recording(tmp_path / "disk" / "a.zarr") as writer:
        writer.event(5, "note", "the last words")
        with monkeypatch.context() as patched:
            fill_disk(patched, tmp_path / "disk")
            assert close_in_vain(writer).parent == elsewhere / "temporary"
    assert "events could not be written: " in writer.last_error
    with new_writer(tmp_path / "disk" / "a.zarr") as again:
        assert [event.text for event in again.source.events] == ["the last words"]


def test_closing_says_what_was_lost_before_as_well(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    writer = recording(tmp_path / "a.zarr")
    writer.lose(7, "for no reason")
    fill(writer.stream("every_1"), range(5, 8))
    fill_disk(monkeypatch, tmp_path / "a.zarr")
    kept = close_in_vain(writer)
    assert "3 rows could not be written" in writer.last_error
    assert "(7 rows were lost before: for no reason)" in writer.last_error
    assert writer.dropped_rows == 10
    assert open_record(kept).attrs["dropped_rows"] == 7
    monkeypatch.undo()
    new_writer(tmp_path / "a.zarr").close()
    assert open_record(tmp_path / "a.zarr").attrs["dropped_rows"] == 7


def test_closing_that_takes_too_long_keeps_what_is_not_there_by_then(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    others = {*threading.enumerate()}
    writer = recording(tmp_path / "a.zarr")
    [thread] = (one for one in {*threading.enumerate()} - others if "record" in one.name)
    fill(writer.stream("every_1"), range(5, 15))
    may_write, write = threading.Event(), Files.write_sparse

    def slow(self: Files, key: str, content: bytes, size: int) -> None:
        if self.folder.name == "a.zarr":
            may_write.wait()
        write(self, key, content, size)

    monkeypatch.setattr(Files, "write_sparse", slow)
    monkeypatch.setattr(flusher, "CLOSE_TIMEOUT_S", 0.05)
    kept = close_in_vain(writer)
    assert "10 rows could not be written: closing took longer than 0.05 s" in writer.last_error
    assert writer.dropped_rows == 10
    assert steps_of(kept) == [*range(5, 15)]
    may_write.set()  # and the disk answers after all
    thread.join()
    monkeypatch.undo()
    assert (writer.dropped_rows, writer.last_error) == (0, "")
    with new_writer(tmp_path / "a.zarr") as again:
        assert again.first_step == 15
    assert steps_of(tmp_path / "a.zarr") == [*range(15)]
    assert not kept.exists()


def test_rows_for_which_there_is_no_memory_are_counted_and_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    writer = recording(tmp_path / "a.zarr")

    def no_memory(*_: object) -> None:
        raise MemoryError("Unable to allocate 1 MiB")

    writer.stream("every_1").extend(["conv2"])  # the next row needs another block
    table = np.zeros((2, 3), np.float32)
    with monkeypatch.context() as patched:
        patched.setattr(stream, "RowBlock", no_memory)
        writer.stream("every_1").seal = lambda: None  # type: ignore[method-assign]
        assert not any(writer.stream("every_1").record(step, 0, table) for step in range(5, 875))
    assert writer.dropped_rows == 870
    assert writer.stream("every_1").record(875, 0, table)
    with pytest.warns(RecordWarning, match="870 rows were lost: MemoryError: Unable to allocate"):
        writer.close()
    assert open_record(tmp_path / "a.zarr").attrs["dropped_rows"] == 870
    new_writer(tmp_path / "a.zarr").close()  # whose own count is another
    assert open_record(tmp_path / "a.zarr").attrs["dropped_rows"] == 870


def test_no_memory_while_writing_leaves_the_rows_to_be_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    writer = recording(tmp_path / "a.zarr")
    fill(writer.stream("every_1"), range(5, 9))
    out_of_memory(writer, monkeypatch)
    with pytest.raises(RecordWriteError, match=r"4 rows .* MemoryError: no room for a copy. They "):
        writer.close()
    assert writer.dropped_rows == 4


def test_rows_that_come_after_closing_are_counted(tmp_path: Path) -> None:
    writer = recording(tmp_path / "a.zarr")
    writer.close()
    every = writer.stream("every_1")
    assert not any(every.record(step, 0, np.zeros(every.shape, np.float32)) for step in (5, 6))
    assert writer.dropped_rows == 2


def test_the_count_outlives_the_stream_whose_rows_were_lost(tmp_path: Path) -> None:
    with new_writer(tmp_path / "a.zarr") as writer:
        fill(_begun(writer), range(10, 12))
        writer.backfill("conv1", "grad_norm", [1, 2], [0.0, 0.0])
        writer.lose(3, "for no reason")
        writer.backfill("conv1", "grad_norm", [0, 1, 2], [0.0, 0.0, 0.0])  # merged with the first
        assert writer.dropped_rows == 3
        assert writer.flush(60)
        assert open_record(tmp_path / "a.zarr").attrs["dropped_rows"] == 3
        with pytest.warns(RecordWarning, match="3 rows were lost: for no reason"):
            writer.close()


def _begun(writer: RecordWriter) -> stream.StreamWriter:
    every = writer.stream("every_1")
    every.extend(["conv1"], [GRAD])
    return every


@pytest.mark.slow
def test_values_of_every_shape_and_events_are_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    image, channels = Variable("image"), Variable("channel_mean")

    def fill_all(writer: RecordWriter, steps: range) -> None:
        hist = writer.stream("every_1", axis=BINS)
        hist.extend(["fc"], [COUNTS])
        fill_vectors(hist, steps)
        ragged = writer.ragged("every_1")
        ragged.extend([channels])
        images = writer.arrays(image, "conv1", (2, 2))
        for step in steps:
            assert ragged.record(step, 0, {("channel_mean", "fc"): [step, step + 1]})
            assert images.record(step, 0, np.full((2, 2), step))
        writer.event(steps.stop, "note", f"after {steps.stop - 1}")

    writer = recording(tmp_path / "a.zarr")
    fill_all(writer, range(3))
    assert writer.flush(60)
    fill_all(writer, range(3, 6))
    fill_disk(monkeypatch, tmp_path / "a.zarr")
    kept = open_record(close_in_vain(writer))
    monkeypatch.undo()
    assert writer.dropped_rows == 9
    assert kept.series("conv1", "image")[:, 0, 0].values.tolist() == [3, 4, 5]
    with new_writer(tmp_path / "a.zarr"):
        pass
    whole = open_record(tmp_path / "a.zarr")
    assert whole.series("conv1", "image")[:, 1, 1].values.tolist() == [0, 1, 2, 3, 4, 5]
    assert whole.series("fc", "channel_mean").values.tolist() == [[i, i + 1] for i in range(6)]
    assert whole.series("fc", "counts").shape == (6, 3)
    assert [event.text for event in whole.events] == ["after 2", "after 5"]


@pytest.mark.parametrize(
    ("resume", "steps", "before"),
    [(7, [*range(8)], None), ("branch(7)", [*range(8)], [*range(10)]), (None, [*range(11)], None)],
)
def test_going_on_elsewhere_begins_with_what_was_kept(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    resume: int | str | None,
    steps: list[int],
    before: list[int] | None,
) -> None:
    writer = recording(tmp_path / "a.zarr")
    fill(writer.stream("every_1"), range(5, 10))
    fill_disk(monkeypatch, tmp_path / "a.zarr")
    close_in_vain(writer)
    monkeypatch.undo()
    with new_writer(tmp_path / "a.zarr", resume=resume) as again:
        every = again.stream("every_1")
        every.extend(["conv1", "fc"], [GRAD, WEIGHT])
        fill(every, range(again.first_step, again.first_step + 1))
    assert steps_of(tmp_path / "a.zarr") == steps
    if before is not None:
        first = type(open_record(tmp_path / "a.zarr"))(tmp_path / "a.zarr", 1)
        assert first.series("fc", "weight_norm").step.values.tolist() == before


def test_kept_rows_that_are_damaged_do_not_keep_anybody_from_going_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    writer = recording(tmp_path / "a.zarr")
    fill(writer.stream("every_1"), range(5, 10))
    fill_disk(monkeypatch, tmp_path / "a.zarr")
    kept = close_in_vain(writer)
    monkeypatch.undo()
    (kept / "zarr.json").write_text("{")
    with pytest.warns(RecordWarning, match="left where it is: .* is not a record"):
        again = new_writer(tmp_path / "a.zarr")
    assert again.first_step == 5
    again.close()
    assert kept.exists()


def test_a_writer_that_is_forgotten_warns(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    writer = recording(tmp_path / "a.zarr")
    writer.itself = writer  # type: ignore[attr-defined]  # so that the collector has to find it
    fill(writer.stream("every_1"), range(5, 8))
    fill_disk(monkeypatch, tmp_path / "a.zarr")
    del writer
    with pytest.warns(RecordWarning, match="3 rows could not be written.* are kept in"):
        gc.collect()


def test_an_error_inside_with_is_not_replaced_by_that_of_closing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail() -> None:
        with recording(tmp_path / "a.zarr") as writer:
            fill(writer.stream("every_1"), range(5, 8))
            fill_disk(monkeypatch, tmp_path / "a.zarr")
            raise KeyError("the user's")

    said = pytest.warns(RecordWarning, match="3 rows could not be written")
    with said, pytest.raises(KeyError, match="the user's"):
        fail()


AT_EXIT = """
import shutil, sys
from pathlib import Path
from tests.record.build import GRAD, fill, new_writer

writer = new_writer(Path(sys.argv[1]))
writer.stream("every_1").extend(["conv1"], [GRAD])
shutil.rmtree(sys.argv[1])
fill(writer.stream("every_1"), range(7))
"""


@pytest.mark.slow
def test_a_program_that_ends_warns_and_keeps_the_rows(tmp_path: Path) -> None:
    program = [sys.executable, "-c", AT_EXIT, str(tmp_path / "runs/a.zarr")]
    done = subprocess.run(program, capture_output=True, text=True, timeout=120)
    assert "RecordWarning" in done.stderr
    assert "7 rows could not be written: the record" in done.stderr
    [kept] = (tmp_path / "runs").iterdir()
    assert open_record(kept).series("conv1", "grad_norm").size == 7


@pytest.mark.usefixtures("interruptible")
def test_closing_that_was_interrupted_on_a_slow_disk_completes_when_called_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    writer = recording(tmp_path / "a.zarr", 3)
    fill(writer.stream("every_1"), range(3, 5))
    written, waits, goes_on = Files.write_sparse, threading.Event(), threading.Event()

    def write(self: Files, key: str, content: bytes, size: int) -> None:
        waits.set()
        goes_on.wait(30)
        written(self, key, content, size)

    monkeypatch.setattr(Files, "write_sparse", write)

    def interrupt() -> None:
        waits.wait(30)
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)

    interrupting = threading.Thread(target=interrupt)
    interrupting.start()
    with pytest.raises(KeyboardInterrupt):
        writer.close()
    interrupting.join()
    goes_on.set()
    writer.close()
    assert writer.last_error == ""
    assert open_record(tmp_path / "a.zarr").streams["every_1"].n_rows == 5
