"""A run whose record cannot be written: who closes it is told, and so is nobody's caller."""

from __future__ import annotations

import gc
import shutil
import threading
from pathlib import Path

import pytest

import notebook_probe as nbp
from notebook_probe.errors import RecordWarning, RecordWriteError
from notebook_probe.record.write.flusher import Flusher
from notebook_probe.run.rows.layout import Row
from tests.models import floats, made, mlp, sgd, train
from tests.run.traces import n_hooks

batch = floats(5, 4)


def lost_run(folder: Path) -> nbp.Run:
    """A run of three steps, whose folder is gone before they are written."""
    model = made(mlp)
    run = nbp.watch(model, store=folder, probes={"*": ["output_norm"]})
    run.model = model  # type: ignore[attr-defined]  # as long as the run
    shutil.rmtree(folder)
    train(model, sgd(model), batch, range(3))
    return run


def test_who_closes_a_run_is_told_what_was_not_written(tmp_path: Path) -> None:
    run = lost_run(tmp_path / "r.zarr")
    with pytest.raises(RecordWriteError, match=r"3 rows could not be written: .* was removed"):
        run.close()
    run.close()
    assert run.closed
    assert n_hooks(run.model) == 0  # type: ignore[attr-defined]
    status = run.status()
    assert status.dropped_rows == 3
    assert "lost: 3 rows did not get into the record" in str(status)
    [kept] = tmp_path.iterdir()
    assert str(kept) in status.problem
    assert nbp.open_run(kept).data.sizes["step"] == 3


def test_a_run_that_ends_by_itself_warns(tmp_path: Path) -> None:
    run = lost_run(tmp_path / "r.zarr")
    run.itself = run  # type: ignore[attr-defined]  # so that the collector has to find it
    del run
    with pytest.warns(RecordWarning, match="3 rows could not be written"):
        gc.collect()


def test_a_run_that_replaces_another_is_not_to_blame_for_its_losses(tmp_path: Path) -> None:
    earlier = lost_run(tmp_path / "r.zarr")
    with pytest.warns(RecordWarning, match="3 rows could not be written"):
        run = nbp.watch(earlier.model, store=tmp_path / "r.zarr")  # type: ignore[attr-defined]
    assert earlier.closed
    run.close()


def test_rows_that_cannot_be_made_are_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = made(mlp)
    run = nbp.watch(model, store=tmp_path / "r.zarr", probes={"*": ["output_norm"]})

    def no_memory(_: Row) -> None:
        raise MemoryError("Unable to allocate")

    with monkeypatch.context() as patched:
        patched.setattr(Row, "record", no_memory)
        train(model, sgd(model), batch, range(7))
        run.controls.settle()
    assert run.status().dropped_rows == 7
    with pytest.warns(RecordWarning, match="7 rows were lost: step 6: MemoryError: Unable"):
        run.close()
    assert nbp.open_run(run.location).attrs["dropped_rows"] == 7


def test_who_flushes_a_run_is_told_what_cannot_be_written(tmp_path: Path) -> None:
    run = lost_run(tmp_path / "r.zarr")
    said = r"r\.zarr: 2 rows in memory cannot be written: .* was removed"  # the last step is open
    with pytest.raises(RecordWriteError, match=said):
        run.flush()
    assert run.status().dropped_rows == 0, "they wait, and may be written yet"
    with pytest.raises(RecordWriteError, match="3 rows could not be written"):
        run.close()
    assert run.status().dropped_rows == 3
    run.flush()


def test_a_flush_that_takes_long_warns_and_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = made(mlp)
    run = nbp.watch(model, store=tmp_path / "r.zarr", probes={"*": ["output_norm"]})
    go_on, commit = threading.Event(), Flusher._commit

    def slow(self: Flusher, **how: bool) -> bool:
        assert go_on.wait(60)
        return commit(self, **how)

    monkeypatch.setattr(Flusher, "_commit", slow)
    train(model, sgd(model), batch, range(3))
    run.controls.settle()
    with pytest.warns(RecordWarning, match=r"3 rows in memory; writing takes longer than 0\.1"):
        run._parts.writer.flush_or_raise(0.1)
    go_on.set()
    run.flush()
    assert nbp.open_run(run.location).data.sizes["step"] == 3
    run.close()
