"""``kill -9`` of real writers while plain xarray reads: nothing torn, nothing published lost."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pytest
import xarray as xr

from notebook_probe.record import open_record
from notebook_probe.record.write.streams import levels
from tests.record.build import new_writer, row
from tests.record.crash import EVERY, Life, Reader, check


@pytest.mark.slow
@pytest.mark.parametrize(
    ("n_lives", "most_rows"),
    [(5, 300), pytest.param(30, 600, marks=[pytest.mark.crash, pytest.mark.timeout(900)])],
)
def test_a_killed_writer_leaves_a_readable_record_that_can_be_continued(
    tmp_path: Path, n_lives: int, most_rows: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every fifth life begins at an earlier step, and removes what was there from it on."""
    folder, moments = tmp_path / "a.zarr", random.Random(7)
    life, n_rows = Life(folder), 0
    life.wait_for_rows(100)
    reader = Reader(folder)
    for number in range(1, n_lives):
        told = life.kill()
        n_rows = xr.open_zarr(folder, group="scalars/every_1", chunks=None).sizes["step"]
        assert n_rows >= told  # what was once published stays
        assert not open_record(folder).finished
        if number % 5 == 4:
            n_rows = moments.randrange(n_rows)
            reader.expect_cut(n_rows)
            life = Life(folder, resume=n_rows)
            life.wait_for_rows(n_rows)
            reader.cut_is_done()
        else:
            life = Life(folder)
        life.wait_for_rows(n_rows + moments.randrange(most_rows))
    reader.wait_for_reads(1)
    told = life.kill()
    reader.stop()
    monkeypatch.setattr(levels, "FEWEST_BLOCKS", (1, 1, 1))
    with new_writer(folder) as last:
        stream = last.stream("every_1")
        n_rows = stream.n_rows
        assert n_rows >= told
        assert stream.record(n_rows, n_rows, row(stream, n_rows))
    for path in EVERY:
        check(path, xr.open_zarr(folder, group=path).load())
    check_pyramid(folder, n_rows + 1)


def check_pyramid(folder: Path, n_rows: int) -> None:
    """Of the first column, whose value is the step."""
    level = xr.open_zarr(folder, group="pyramid/every_1/by64", chunks=None).load()
    firsts = 64 * np.arange(n_rows // 64)
    assert level.step.values.tolist() == firsts.tolist()
    assert level.grad_norm_min.values[:, 0].tolist() == firsts.tolist()
    assert level.grad_norm_max.values[:, 0].tolist() == (firsts + 63).tolist()
