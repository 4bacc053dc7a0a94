"""Damaged, hostile and huge files: one clear error, or all up to a named place."""

import json
import shutil
import sqlite3
import struct
import zlib
from collections.abc import Callable
from pathlib import Path

import pytest

import notebook_probe as nbp
from notebook_probe.errors import RecordFormatError
from notebook_probe.old_runs import allowance, find_old_run
from notebook_probe.old_runs.allowance import Allowance, SpentError
from notebook_probe.old_runs.formats import lines, tfrecord
from notebook_probe.old_runs.formats.leveldb_log import BLOCK, entries_of
from notebook_probe.old_runs.points import Points
from tests.old_runs.files_of_tools import (
    TENSORBOARD,
    WANDB,
    database,
    read,
    trainer_state,
    values,
)

(RUN_FILE,) = WANDB.glob("*.wandb")
EVENT_FILE = min(TENSORBOARD.iterdir())


def copied(source: Path, folder: Path, change: Callable[[bytes], bytes]) -> Path:
    target = folder / source.name
    target.write_bytes(change(source.read_bytes()))
    return target


@pytest.mark.parametrize(("source", "name"), [(RUN_FILE, "loss"), (EVENT_FILE, "train/loss")])
def test_a_file_that_is_cut_anywhere_is_read_up_to_there(
    tmp_path: Path, source: Path, name: str
) -> None:
    whole = values(read(source), name)
    size, counts = source.stat().st_size, set()
    for end in range(40, size, 97):
        cut = copied(source, tmp_path, lambda data, end=end: data[:end])  # type: ignore[misc]
        run = read(cut)
        found = values(run, name) if any(one.name == name for one in run.series) else {}
        assert str(found) == str(dict([*whole.items()][: len(found)]))
        counts.add(len(found))
        assert all("is not complete" in one for one in run.remarks)
    assert {0, len(whole) // 2} < counts


@pytest.mark.parametrize("source", [RUN_FILE, EVENT_FILE])
def test_a_changed_byte_ends_the_reading_with_a_warning(tmp_path: Path, source: Path) -> None:
    def change(data: bytes) -> bytes:
        at = len(data) // 2
        return data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :]

    path = copied(source, tmp_path, change)
    with pytest.warns(
        nbp.RecordWarning, match=r"is read up to .*: the record at byte [\d,]+ is dam"
    ):
        run = nbp.open_run(path)
    assert 0 < run.data.sizes["step"] < 12


def test_a_record_of_wandb_over_several_blocks_is_joined(tmp_path: Path) -> None:
    long = bytes(range(256)) * 300
    path = tmp_path / "long.wandb"
    path.write_bytes(logged(long, b"short"))
    assert [*entries_of(path, Allowance())] == [long, b"short"]


def logged(*entries: bytes) -> bytes:
    """Entries in the blocks of a log, by its specification."""
    out = bytearray(b":W&B" + struct.pack("<HB", 0xBEE1, 0))
    for entry in entries:
        first, rest = True, entry
        while first or rest:
            room = BLOCK - len(out) % BLOCK - 7
            if room < 0:
                out += bytes(room + 7)
                continue
            part, rest = rest[:room], rest[room:]
            kind = 1 if first and not rest else 2 if first else 3 if rest else 4
            crc = zlib.crc32(bytes([kind]) + part)
            out += struct.pack("<IHB", crc, len(part), kind) + part
            first = False
    return bytes(out)


def test_a_record_that_claims_a_huge_length_is_not_believed(tmp_path: Path) -> None:
    head = struct.pack("<Q", 1 << 60)
    path = tmp_path / "events.out.tfevents.1"
    path.write_bytes(head + struct.pack("<I", tfrecord._masked(head)))
    assert read(path).remarks == (
        f"{path.name} is read up to its start: its last record, at byte 0, is not complete",
    )


def test_nested_json_is_an_error(tmp_path: Path) -> None:
    path = trainer_state(tmp_path)
    path.write_text('{"log_history": ' + "[" * 100_000 + "]" * 100_000 + "}")
    with pytest.raises(RecordFormatError, match="cannot be read as a run of Hugging Face Trainer"):
        read(path)


def test_another_json_of_the_same_name_is_an_error(tmp_path: Path) -> None:
    path = trainer_state(tmp_path)
    path.write_text(json.dumps({"log_history": 3}))
    with pytest.raises(RecordFormatError, match="has no log_history"):
        read(path)


def test_a_damaged_line_of_json_ends_the_reading(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    path.write_text('{"step": 0, "loss": 1}\n{"step": 1, "lo\n{"step": 2, "loss": 3}\n')
    run = read(path)
    assert values(run, "loss") == {0: 1}
    assert run.remarks == ("log.jsonl is read up to step 0: line 2 is not JSON",)


def test_a_line_that_is_no_csv_ends_the_reading(tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    path.write_bytes(b"step,loss\n0,1\n1,\r2\n2,3\n")
    run = read(path)
    assert values(run, "loss") == {0: 1}
    assert "log.csv is read up to step 0: line 3 is no CSV" in run.remarks[0]


def test_a_damaged_schema_of_a_database_is_an_error(tmp_path: Path) -> None:
    path = database(tmp_path, "trackio")
    path.write_bytes(
        path.read_bytes().replace(b"tablemetrics", b"table\xd7\xd7\xd7\xd7\xd7\xd7\xd7")
    )
    with pytest.raises(RecordFormatError, match="cannot be read: "):
        find_old_run(path / "first")


def test_an_endless_line_takes_no_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lines, "LONGEST_LINE", 64)
    path = tmp_path / "log.csv"
    path.write_text("step,loss\n0,1\n1," + "9" * 100 + "\n")
    run = read(path)
    assert values(run, "loss") == {0: 1}
    assert run.remarks == ("log.csv is read up to step 0: a line is longer than 64 bytes",)


def test_a_database_with_an_endless_view_is_no_run(tmp_path: Path) -> None:
    path = tmp_path / "endless.db"
    with sqlite3.connect(path) as connection:
        connection.execute(
            "CREATE VIEW metrics AS WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i FROM n) "
            "SELECT 'a' run_name, i step, 0 timestamp, '{}' metrics FROM n"
        )
    connection.close()
    assert find_old_run(path) is None


def test_a_damaged_database_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "damaged.db"
    path.write_bytes(b"SQLite format 3\0" + bytes(1000))
    with pytest.raises(RecordFormatError, match="cannot be read: "):
        find_old_run(path)


def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    import os

    place = tmp_path / "version_0"
    place.mkdir()
    os.mkfifo(place / "metrics.csv")
    with pytest.raises(RecordFormatError, match="is no plain file"):
        read(place)


def test_more_numbers_than_are_read_end_the_reading(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(allowance, "MOST_VALUES", 5)
    path = tmp_path / "log.csv"
    path.write_text("step,loss\n" + "".join(f"{step},1\n" for step in range(9)))
    run = read(path)
    assert [*values(run, "loss")] == [0, 1, 2, 3, 4]
    assert run.remarks == ("log.csv is read up to step 4: at most 5 numbers of a run are read",)


def test_reading_stops_after_its_time() -> None:
    now = 0.0
    allowed = Allowance(lambda: now)
    allowed.take_bytes(10)
    now = 9.0
    with pytest.raises(SpentError, match="reading stops after 8 s"):
        allowed.take_bytes(10)


def test_the_clock_is_looked_at_while_values_are_kept() -> None:
    now = 0.0
    points = Points(Allowance(lambda: now))
    points.add("loss", 0, 0.0, 1.0)
    now = 9.0
    with points.reading("log"):
        for step in range(5000):
            points.add("loss", step, 0.0, 1.0)
    assert points.remarks == ["log is read up to step 1021: reading stops after 8 s"]


def test_names_of_a_run_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(allowance, "MOST_NAMES", 2)
    points = Points(Allowance())
    with points.reading("log"):
        points.add_all({"a": 1, "b": 2, "c": 3}, 0, 0.0)
    assert [one.name for one in points.series()] == ["a", "b"]
    assert points.remarks == ["log is read up to step 0: at most 2 names of a run are read"]


def test_long_and_reserved_names_stay_apart() -> None:
    points = Points(Allowance())
    points.add_all({"n" * 300: 1, "n" * 301: 2, "step": 3, "\n": 4}, 0, 0.0)
    first, second, step = points.series()
    assert (first.name, step.name) == ("n" * 200, "logged_step")
    assert second.name == "n" * 192 + "_2"
    assert len(points.remarks) == 1


def test_a_folder_of_copies_is_whole(tmp_path: Path) -> None:
    shutil.copytree(TENSORBOARD, tmp_path / "copy")
    assert read(tmp_path / "copy").remarks == ()
