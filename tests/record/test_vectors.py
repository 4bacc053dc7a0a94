"""Vectors of fixed length beside the numbers, as they are read: live, half written, reopened."""

from __future__ import annotations

import math
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from notebook_probe.axis import Axis
from notebook_probe.errors import UnknownNameError
from notebook_probe.record import (
    ROOT,
    RecordWriter,
    open_record,
)
from notebook_probe.record.format.missing import NOT_MEASURED
from notebook_probe.record.format.source import Floats
from notebook_probe.record.read.reader import OpenedRecord
from notebook_probe.record.write.recorded_source import RecordedSource
from notebook_probe.record.write.streams import stream as stream_module
from tests.record.build import BINS, COUNTS, GRAD, fill, fill_vectors, new_writer


def begin_record(writer: RecordWriter) -> None:
    """Numbers of conv1 and fc at every step; vectors of fc and the root at steps 4, 6, ..., 14."""
    numbers = writer.stream("every_1", "every(1)")
    numbers.extend(["conv1", "fc"], [GRAD])
    fill(numbers, range(12))
    histograms = writer.stream("every_2", "every(2)", BINS)
    histograms.extend(["fc", ""], [COUNTS])
    for step in range(4, 16, 2):
        fill_vectors(histograms, range(step, step + 1))


@pytest.fixture(params=["live", "half on disk", "on disk alone", "opened"])
def recorded(
    writer: RecordWriter, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> RecordedSource | OpenedRecord:
    if request.param == "live":
        return writer.source
    writer.flush(10)
    if request.param == "on disk alone":
        monkeypatch.setattr(stream_module, "RECENT_BYTES", 0)
        histograms = writer.stream("every_2", axis=BINS)
        histograms.extend(["conv2"])  # a new block; the one before is forgotten
        blank = np.full(histograms.shape, NOT_MEASURED, np.float32)
        assert histograms.record(16, 0, blank)
        assert writer.flush(10)
        assert histograms.rows().start > 0
    return writer.source if request.param != "opened" else open_record(writer.location)


def expected(module: str) -> Floats:
    """(step, bin) of a module over the steps 0 to 15."""
    out = np.full((16, 3), np.nan, np.float32)
    for step in range(4, 16, 2):
        out[step] = {"fc": 0, ROOT: 100}[module] + step + np.arange(3) / 1024
    return out


def test_data_has_the_axis_as_third_dimension(recorded: RecordedSource | OpenedRecord) -> None:
    data = recorded.data
    assert data.counts.dims == ("module", "step", "bin")
    assert data.counts.dtype == np.float32
    assert data.grad_norm.dims == ("module", "step")
    assert {*range(12), 12, 14} <= set(data.step.values.tolist())
    for name, values in BINS.coords.items():
        assert data[name].dims == ("bin",)
        assert np.array_equal(data[name], values, equal_nan=True)
    for module in ("fc", ROOT):
        steps = [step for step in range(16) if step in data.step]
        found = data.counts.sel(module=module, step=steps)
        assert np.array_equal(found, expected(module)[steps], equal_nan=True)
    assert data.counts.sel(module="conv1").isnull().all()
    assert data.counts.attrs == {"units": "1", "long_name": "elements per bin"}
    assert data.grad_norm.sel(module="fc", step=11).item() == 111
    milliseconds = data.time.sel(step=14).values.astype("datetime64[ms]").astype(int)
    assert milliseconds == 1_700_000_000_014


@pytest.mark.parametrize(
    "key",
    [
        {"module": "fc"},
        {"module": "fc", "bin": 0.0},
        {"module": ["fc"], "step": [14, 4], "bin": [math.inf, -1.0]},
        {"module": ["fc", ROOT], "step": slice(5, 11), "bin": slice(-1.0, 0.0)},
        {"module": [], "bin": []},
    ],
)
def test_any_selection_is_that_of_the_loaded(
    recorded: RecordedSource | OpenedRecord, key: dict[str, object]
) -> None:
    loaded = recorded.data.counts.load().sel(key)
    assert np.array_equal(recorded.data.counts.sel(key), loaded, equal_nan=True)


def test_a_series_has_the_vectors_that_were_measured(
    recorded: RecordedSource | OpenedRecord,
) -> None:
    series = recorded.series("fc", "counts")
    assert series.dims == ("step", "bin")
    assert series.step.values.tolist() == [*range(4, 16, 2)]
    assert np.array_equal(series, expected("fc")[4::2])
    assert recorded.series("", "counts").shape == (6, 3)
    assert recorded.series("fc", "grad_norm").dims == ("step",)
    with pytest.raises(UnknownNameError, match="no quantity 'count' is recorded; close: 'counts'"):
        recorded.series("fc", "count")


def test_the_tree_has_them_below_their_group(recorded: RecordedSource | OpenedRecord) -> None:
    node = recorded.to_xarray("tree")["hist/every_2"].to_dataset()
    assert node.counts.dims == ("step", "module", "bin")
    assert node.module.values.tolist()[:2] == ["fc", ROOT]
    assert node.counts.sel(step=6, module=ROOT, bin=0.0).item() == 106 + 1 / 1024
    assert recorded.to_xarray("tree")["every_1"].to_dataset().sizes == {"step": 12, "module": 2}


def test_numbers_do_not_notice(recorded: RecordedSource | OpenedRecord) -> None:
    assert set(recorded.streams) == {"every_1"}
    assert [variable.name for variable in recorded.streams["every_1"].variables] == ["grad_norm"]
    assert recorded.to_xarray("cube").dims == ("module", "quantity", "step")
    assert recorded.to_xarray("cube")["quantity"].values.tolist() == ["grad_norm"]
    assert not set(BINS.coords) & set(recorded.to_xarray("cube").coords)
    cube = recorded.to_xarray("cube")
    assert cube.sel(quantity="grad_norm", module="conv1", step=3).item() == 3


def test_a_view_of_vectors_is_read_by_rows_and_modules(
    recorded: RecordedSource | OpenedRecord,
) -> None:
    view = recorded.vectors["hist/every_2"]
    assert (view.name, view.axis) == ("every_2", BINS)
    assert view.steps(0, 6).tolist() == [*range(4, 16, 2)]
    both = view.values("counts", 1, 3, [ROOT, "fc"])
    assert both.shape == (2, 2, 3)
    assert both[:, 0].tolist() == expected(ROOT)[[6, 8]].tolist()
    assert view.values("counts", 1, 3, []).shape == (2, 0, 3)


@pytest.mark.slow
def test_plain_xarray_reads_values_bins_and_edges(writer: RecordWriter) -> None:
    writer.close()
    code = f"""
import sys, warnings
warnings.simplefilter("error")
import numpy as np, xarray as xr, zarr
path = {writer.location!r}
data = xr.open_zarr(path, group="hist/every_2", chunks=None)
assert data.counts.dims == ("step", "module", "bin")
assert data.counts.sel(step=6, module="fc", bin=0).item() == 6 + 1 / 1024
assert data.counts.sel(bin=np.inf).bin_hi.item() == np.float64(1e30)
assert data.bin_lo.values.tolist()[:2] == [-2, -0.5] and np.isnan(data.bin_lo[2])
assert set(data.coords) == {{"step", "time", "module", "bin", "bin_lo", "bin_hi"}}
assert str(data.time.values[0])[:23] == "2023-11-14T22:13:20.004"
assert zarr.open(path)["hist/every_2/counts"][0, 0, 1] == 4 + np.float32(1 / 1024)
assert zarr.open(path + "/hist/every_2/counts")[5, 1, 2] == 114 + np.float32(2 / 1024)
tree = xr.open_datatree(path, engine="zarr")
assert tree["hist/every_2/counts"].shape == (6, 2, 3)
assert not any(name.startswith("notebook_probe") for name in sys.modules)
"""
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


def test_a_continued_record_goes_on_with_its_vectors(writer: RecordWriter, tmp_path: Path) -> None:
    writer.close()
    with new_writer(tmp_path / "a.zarr") as second:
        again = Axis("bin", dict(reversed(list(BINS.coords.items()))), group="hist")
        stream = second.stream("every_2", axis=again)
        assert (stream.long_name, stream.last_step, stream.shape) == ("every(2)", 14, (1, 2, 3))
        stream.extend(["conv1"])
        fill_vectors(stream, range(16, 17))
        assert second.source.vectors["hist/every_2"].steps(5).tolist() == [14, 16]
        assert second.last_step == 16
    record = open_record(tmp_path / "a.zarr")
    assert record.series("fc", "counts").step.values.tolist() == [*range(4, 18, 2)]
    assert record.series("conv1", "counts").values.tolist() == [
        [216, 216 + 1 / 1024, 216 + 2 / 1024]
    ]
    assert "every_1: 12 rows, hist/every_2: 7 rows" in repr(record)
