"""Records on disk stay readable: one that an earlier version wrote, of format 1, packed.

Twelve steps of SGD on ``Linear(4, 8), ReLU, Linear(8, 3)``: norms of every step, a histogram and
channel means of every fifth, an evaluation, a series computed afterwards. The numbers below were
read by the version that wrote them.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import xarray as xr
from zarr.storage import ZipStore

import notebook_probe as nbp

RECORD = Path(__file__).with_name("format_1.zarr.zip")
LOSS = [1.07296133, 1.06168985, 1.05131483, 1.04172099, 1.03280807, 1.02449, 1.01667929]
LOSS += [1.00924265, 1.00235963, 0.9958424, 0.98964417, 0.98372442]
WEIGHT_NORM = [1.56144667, 1.56451762, 1.56793058, 1.57165694, 1.57567132, 1.57995188, 1.58447945]
WEIGHT_NORM += [1.58936334, 1.59479117, 1.60040712, 1.60619926, 1.61215675]


@pytest.fixture(scope="module")
def record() -> nbp.OpenedRun:
    return nbp.open_run(RECORD)


def test_its_numbers_are_those_that_were_written(record: nbp.OpenedRun) -> None:
    np.testing.assert_allclose(record.series("(root)", "loss"), LOSS, rtol=1e-7)
    np.testing.assert_allclose(record.series("0", "weight_norm"), WEIGHT_NORM, rtol=1e-7)
    assert record.finished
    assert [row.class_name for row in record.modules] == ["Sequential", "Linear", "ReLU", "Linear"]


def test_its_vectors_evaluation_and_later_series_are_there(record: nbp.OpenedRun) -> None:
    histogram = record.series("2", "output_histogram")
    assert histogram.step.values.tolist() == [0, 5, 10]
    assert histogram.sum("bin").values.tolist() == [48.0, 48.0, 48.0]  # 16 samples of 3 outputs
    assert record.data.output_channel_mean.sizes["element"] == 3
    assert record.data.eval_zero_fraction.sel(module="0", step=12).notnull()
    rank = record.series("0", "rank")
    assert dict(zip(rank.step.values, rank.values, strict=True)) == {0: 4.0, 5: 3.0, 10: 2.0}


def test_plain_xarray_reads_it_too() -> None:
    with (
        ZipStore(RECORD, mode="r") as store,
        xr.open_zarr(store, group="scalars/every_1", consolidated=False) as group,
    ):
        np.testing.assert_allclose(group.loss.sel(module="(root)"), LOSS, rtol=1e-7)
