"""Values written into steps out of order: the last write of a cell is read, none is changed."""

from __future__ import annotations

import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray as xr

from notebook_probe.errors import QuantityError, RecordLockedError, UnknownNameError
from notebook_probe.opened import open_run
from notebook_probe.record import OpenedRecord, RecordWriter, Variable, open_record
from notebook_probe.record.write.backfill import leftovers
from notebook_probe.record.write.streams import stream as stream_module
from tests.record.build import BINS, COUNTS, GRAD, fill, new_writer, row, vectors

N_STEPS = 100


def recorded(folder: Path, steps: range = range(N_STEPS)) -> RecordWriter:
    """A writer that has recorded the values that tell their step, at conv1 and fc."""
    writer = new_writer(folder)
    stream = writer.stream("every_1")
    stream.extend(["conv1", "fc"], [GRAD])
    fill(stream, steps)
    return writer


def late_streams(folder: Path) -> list[str]:
    return [path for path in open_record(folder).paths if "late" in path or "early" in path]


@pytest.mark.parametrize("flushed", [True, False])
def test_a_value_written_later_is_read_from_then_on(tmp_path: Path, flushed: bool) -> None:
    with recorded(tmp_path) as writer:
        if flushed:
            assert writer.flush(60)
        writer.backfill("fc", "grad_norm", 7, -1.0)
        writer.backfill("fc", "grad_norm", [3, 90, 7], [-2.0, -3.0, -4.0])
        expected = 100.0 + np.arange(N_STEPS)
        expected[[3, 7, 90]] = -2, -4, -3
        live = writer.source.series("fc", "grad_norm")
        np.testing.assert_array_equal(live, expected)
        np.testing.assert_array_equal(
            writer.source.to_xarray("cube").sel(module="conv1")[0], range(N_STEPS)
        )
    np.testing.assert_array_equal(open_record(tmp_path).series("fc", "grad_norm"), expected)
    data = open_record(tmp_path).data
    np.testing.assert_array_equal(data.grad_norm.sel(module="fc"), expected)
    assert data.sizes["step"] == N_STEPS


def test_what_was_recorded_lies_on_disk_as_it_was(tmp_path: Path) -> None:
    with recorded(tmp_path) as writer:
        writer.backfill("fc", "grad_norm", range(N_STEPS), np.zeros(N_STEPS))
    raw = xr.open_zarr(tmp_path, group="scalars/every_1").grad_norm
    np.testing.assert_array_equal(raw.sel(module="fc"), 100 + np.arange(N_STEPS))
    assert (xr.open_zarr(tmp_path, group="scalars/late.1").grad_norm == 0).all()
    assert (open_record(tmp_path).series("fc", "grad_norm") == 0).all()


def test_a_new_quantity_is_written_with_its_unit(tmp_path: Path) -> None:
    with recorded(tmp_path) as writer:
        writer.backfill("", "accuracy", [0, 50, 100], [0.1, 0.5, np.nan], "1", "test accuracy")
        assert writer.first_step == 0
    series = open_record(tmp_path).series("", "accuracy")
    assert series.step.values.tolist() == [0, 50, 100]
    np.testing.assert_array_equal(series, np.array([0.1, 0.5, np.nan], np.float32))
    assert series.attrs == {"units": "1", "long_name": "test accuracy"}


def test_vectors_are_written_into_passed_steps_too(tmp_path: Path) -> None:
    with new_writer(tmp_path) as writer:
        bins = writer.stream("every_1", axis=BINS)
        bins.extend(["fc"], [COUNTS])
        for step in range(5):
            bins.record(step, step, vectors(bins, step))
        writer.backfill("fc", "counts", [1, 4], [[7, 8, 9], [4, 5, 6]])
        with pytest.raises(
            QuantityError, match=r"shape \(2,\); a vector of 3 along 'bin' per step"
        ):
            writer.backfill("fc", "counts", [1, 4], [1.0, 2.0])
    series = open_record(tmp_path).series("fc", "counts")
    assert series[[1, 4]].values.tolist() == [[7, 8, 9], [4, 5, 6]]
    assert series[2].values.tolist() == pytest.approx([2, 2 + 1 / 1024, 2 + 2 / 1024])
    assert [*open_record(tmp_path).paths] == ["hist/every_1", "hist/late.1"]


def test_a_step_still_to_come_is_overwritten_when_it_comes(tmp_path: Path) -> None:
    with recorded(tmp_path) as writer:
        for value in (-1.0, -2.0):
            writer.backfill("fc", "grad_norm", [N_STEPS, N_STEPS + 1], [value, value])
        assert writer.source.series("fc", "grad_norm")[-2:].values.tolist() == [-2, -2]
        stream = writer.stream("every_1")
        stream.record(N_STEPS, 0, row(stream, N_STEPS))
        assert writer.source.series("fc", "grad_norm")[-2:].values.tolist() == [200, -2]
        writer.backfill("fc", "grad_norm", N_STEPS, -3.0)
        assert writer.source.series("fc", "grad_norm")[-2:].values.tolist() == [-3, -2]
    with new_writer(tmp_path) as writer:
        assert writer.first_step == N_STEPS + 1


@pytest.mark.slow
def test_many_backfills_are_few_streams(tmp_path: Path) -> None:
    with recorded(tmp_path) as writer:
        for step in reversed(range(N_STEPS)):
            writer.backfill("fc", "grad_norm", step, -step)
            if step % 10 == 0:
                assert writer.flush(60)
        assert len([path for path in writer._flusher.streams if "late" in path]) <= 7
    record = open_record(tmp_path)
    assert record.series("fc", "grad_norm").values.tolist() == [-step for step in range(N_STEPS)]
    assert len(late_streams(tmp_path)) <= 7


def test_growing_steps_are_one_stream(tmp_path: Path) -> None:
    with recorded(tmp_path) as writer:
        for step in range(N_STEPS):
            writer.backfill("fc", "checkpoint_loss", step, step)
    assert late_streams(tmp_path) == ["scalars/late.1"]


@pytest.mark.slow
def test_a_view_of_streams_that_were_merged_can_still_be_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stream_module, "RECENT_BYTES", 0)
    with recorded(tmp_path) as writer:
        for first in (1, 0):
            writer.backfill("fc", "mine", range(first, 50_000, 2), np.arange(first, 50_000, 2))
            assert writer.flush(60)
            if first:
                before = writer.source.data.mine  # unread
        assert writer.flush(60)
        assert [name for name in writer.source.streams if "late" in name]
        seen = before.sel(module="fc").to_series().dropna()
        np.testing.assert_array_equal(seen, range(1, 50_000, 2))
        whole = writer.source.series("fc", "mine")
        np.testing.assert_array_equal(whole, range(50_000))


def test_the_files_of_merged_streams_are_removed_by_the_next_writer(tmp_path: Path) -> None:
    with recorded(tmp_path) as writer:
        for step in (50, 40, 30, 20):
            writer.backfill("fc", "mine", step, step)
            assert writer.flush(60)
        lost = leftovers(tmp_path, writer._flusher.streams)
        assert len(lost) >= 2
    assert open_record(tmp_path).series("fc", "mine").values.tolist() == [20, 30, 40, 50]
    with new_writer(tmp_path) as writer:
        assert not any((tmp_path / path).exists() for path in lost)
        writer.backfill("fc", "mine", 10, 10)
    assert open_record(tmp_path).series("fc", "mine").values.tolist() == [10, 20, 30, 40, 50]
    assert leftovers(tmp_path, open_record(tmp_path).paths) == []


@pytest.mark.slow
def test_late_rows_belong_to_the_branch_on_which_they_were_written(tmp_path: Path) -> None:
    with recorded(tmp_path) as writer:
        writer.backfill("fc", "mine", [10, 60], [1, 1])
    with new_writer(tmp_path, resume="branch(50)") as writer:
        stream = writer.stream("every_1")
        stream.extend(["conv1", "fc"], [GRAD])
        fill(stream, range(50, 80))
        writer.backfill("fc", "mine", [20, 70], [2, 2])
        writer.backfill("fc", "grad_norm", [20], [-5])
        live = writer.source.series("fc", "mine")
        assert dict(zip(live.step.values.tolist(), live.values.tolist(), strict=True)) == {
            10: 1,
            20: 2,
            70: 2,
        }
    new, old = open_record(tmp_path), OpenedRecord(tmp_path, branch=1)
    assert new.series("fc", "mine").step.values.tolist() == [10, 20, 70]
    assert old.series("fc", "mine").step.values.tolist() == [10, 60]
    assert new.series("fc", "grad_norm").sel(step=20) == -5
    assert old.series("fc", "grad_norm").sel(step=20) == 120
    with new_writer(tmp_path, resume=30) as writer:  # cuts what was written late as well
        assert writer.source.series("fc", "mine").step.values.tolist() == [10, 20]


def test_several_threads_may_write_at_once(tmp_path: Path) -> None:
    with recorded(tmp_path) as writer:

        def write(number: int) -> None:
            for step in range(number, N_STEPS, 4):
                writer.backfill("fc", "mine", step, step)

        threads = [threading.Thread(target=write, args=(number,)) for number in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
    assert open_record(tmp_path).series("fc", "mine").values.tolist() == [*range(N_STEPS)]


def test_more_rows_than_memory_holds_are_written_all(tmp_path: Path) -> None:
    with new_writer(tmp_path, ring_bytes=1 << 20) as writer:
        steps = np.arange(100_000)
        writer.backfill("fc", "mine", steps, steps)
        assert writer.dropped_rows == 0
    np.testing.assert_array_equal(open_record(tmp_path).series("fc", "mine"), steps)


# ---------------------------------------------------------------- a finished run


@pytest.mark.slow
def test_a_finished_run_is_written_into_without_torch(tmp_path: Path) -> None:
    recorded(tmp_path).close()
    code = (
        "import sys\n"
        "import notebook_probe as nbp\n"
        "run = nbp.open_run(sys.argv[1])\n"
        "run.backfill('fc', 'grad_norm', 7, -1)\n"
        "assert run.series('fc', 'grad_norm').sel(step=7) == -1\n"
        "assert run.finished\n"
        "assert 'torch' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", code, tmp_path], check=True, timeout=60)
    record = open_run(tmp_path)
    record.backfill("fc", "grad_norm", 3, -2)
    assert record.series("fc", "grad_norm")[[3, 7]].values.tolist() == [-2, -1]


def test_a_run_that_is_being_recorded_is_written_into_by_its_writer_only(tmp_path: Path) -> None:
    with recorded(tmp_path), pytest.raises(RecordLockedError, match="has another writer: process"):
        open_run(tmp_path).backfill("fc", "grad_norm", 7, -1)


# ---------------------------------------------------------------- what is refused


@pytest.mark.parametrize(
    ("given", "error", "message"),
    [
        (("fcc", "mine", 1, 1), UnknownNameError, "no module 'fcc' in the model .* close: 'fc'"),
        (("fc", "my quantity", 1, 1), QuantityError, "quantity name 'my quantity': letters"),
        (("fc", "mine", 1.5, 1), ValueError, "steps=1.5; a whole number or a list"),
        (("fc", "mine", [1, -1], [1, 2]), ValueError, "step -1; steps are counted from 0"),
        (("fc", "mine", [1, 2], [1]), ValueError, "2 steps and 1 values of mine"),
        (("fc", "mine", 1, "x"), QuantityError, "values of mine of type .*; real numbers"),
        (("fc", "mine", [1], [[1, 2]]), QuantityError, r"shape \(1, 2\); a number per step"),
    ],
)
def test_what_cannot_be_written_is_one_clear_error(
    tmp_path: Path, given: Any, error: type[Exception], message: str
) -> None:
    with recorded(tmp_path) as writer:
        with pytest.raises(error, match=message):
            writer.backfill(*given)
        n_rows = writer.source.data.sizes["step"]
    assert n_rows == N_STEPS
    assert late_streams(tmp_path) == []


def test_a_closed_writer_says_that_nothing_was_written(tmp_path: Path) -> None:
    writer = recorded(tmp_path)
    writer.close()
    with pytest.raises(OSError, match="step 1 was not written: the record is closed"):
        writer.backfill("fc", "grad_norm", 1, 1)


def test_a_schedule_cannot_be_called_like_late_rows(tmp_path: Path) -> None:
    with recorded(tmp_path) as writer:
        for name in ("late.1", "early.1", "every_1.r2"):
            with pytest.raises(ValueError, match="letters, digits and _ only"):
                writer.stream(name)
        writer.stream("late").extend(["fc"], [Variable("other")])


def test_a_branch_is_written_into_before_its_first_step(tmp_path: Path) -> None:
    recorded(tmp_path).close()
    with new_writer(tmp_path, resume="branch(50)") as writer:
        writer.backfill("fc", "grad_norm", [20], [-5])
        assert writer.source.series("fc", "grad_norm").sel(step=20) == -5
    assert open_record(tmp_path).series("fc", "grad_norm").sel(step=20) == -5
