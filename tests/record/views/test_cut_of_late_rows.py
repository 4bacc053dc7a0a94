"""Where a branch begins, rows that were written late are cut like all others."""

from __future__ import annotations

from pathlib import Path

import pytest

from notebook_probe.record import OpenedRecord, open_record
from tests.record.build import GRAD, fill, new_writer


def recorded(folder: Path) -> Path:
    """Steps 0 to 9, two late rows among them; a branch at step 6, with two more."""
    for resume, steps, late in ((None, range(10), [2, 8]), ("branch(6)", range(6, 9), [3, 7])):
        with new_writer(folder, resume=resume) as writer:
            stream = writer.stream("every_1")
            stream.extend(["fc"], [GRAD])
            fill(stream, steps)
            writer.backfill("fc", "rank", late, [len(steps)] * 2)
    return folder


def test_late_rows_count_for_a_branch_before_it_began(tmp_path: Path) -> None:
    record = open_record(recorded(tmp_path / "a.zarr"))
    names = {path.removeprefix("scalars/") for path in record.paths}
    assert names == {"every_1", "every_1.r2", "late.1", "late.2.r2"}
    rank = record.series("fc", "rank")
    assert dict(zip(rank.step.values.tolist(), rank.values.tolist(), strict=True)) == {
        2: 10,
        3: 3,
        7: 3,
    }
    first = OpenedRecord(tmp_path / "a.zarr", branch=1).series("fc", "rank")
    assert first.step.values.tolist() == [2, 8]


@pytest.mark.slow
def test_going_on_at_an_earlier_step_removes_the_late_rows_of_the_branch(tmp_path: Path) -> None:
    with new_writer(recorded(tmp_path / "a.zarr"), resume=7):
        pass
    rank = open_record(tmp_path / "a.zarr").series("fc", "rank")
    assert rank.step.values.tolist() == [2, 3]
    first = OpenedRecord(tmp_path / "a.zarr", branch=1).series("fc", "rank")
    assert first.step.values.tolist() == [2, 8]
