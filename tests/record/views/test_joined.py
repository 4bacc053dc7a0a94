"""The whole run as xarray: joined, stacked, exact, one series."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray as xr

from notebook_probe.errors import UnknownNameError
from notebook_probe.record import ROOT, RecordWriter, Source, Variable
from notebook_probe.record.format.missing import MEASURED_NAN, NOT_MEASURED
from notebook_probe.record.format.source import Floats, StreamView
from notebook_probe.record.views.xarray_views import XarrayViews
from tests.record.build import GRAD, WEIGHT, fill, new_writer

DENSE, SPARSE = range(12), range(0, 30, 5)


def begin_record(writer: RecordWriter) -> None:
    """Dense rows of fc and conv1, then sparse ones of conv1, a parameter and the root."""
    dense = writer.stream("every_1", "every(1)")
    dense.extend(["fc", "conv1"], [GRAD])
    fill(dense, DENSE)
    sparse = writer.stream("every_5", "every(5)")
    sparse.extend(["conv1", "fc.bias", ""], [GRAD, Variable("weight_norm", "m")])
    for step in SPARSE:
        values = np.full(sparse.shape, -step, np.float32)
        values[:, 2] = NOT_MEASURED
        assert sparse.record(step, 1_700_000_000_000 + step, values)


def expected() -> xr.Dataset:
    """The join, cell by cell, from its definition."""
    modules = [ROOT, "conv1", "fc", "fc.bias"]  # definition order, then the rest
    steps = sorted({*DENSE, *SPARSE})
    data = xr.Dataset(coords={"module": modules, "step": steps})
    nothing = np.full((4, len(steps)), np.nan, np.float32)
    for name in ("grad_norm", "weight_norm"):
        data[name] = ("module", "step"), nothing.copy()
    for step in SPARSE:
        for name, module in [("grad_norm", "conv1"), ("grad_norm", "fc.bias")]:
            data[name].loc[module, step] = -step
        for module in ("conv1", "fc.bias"):
            data["weight_norm"].loc[module, step] = -step
    for step in DENSE:
        data["grad_norm"].loc["fc", step] = step
        data["grad_norm"].loc["conv1", step] = 100 + step
    return data


def test_a_deep_copy_of_what_is_unread_is_the_same(source: Source) -> None:
    xr.testing.assert_identical(source.data.copy(deep=True).load(), source.data.load())


def test_data_joins_the_streams_and_prefers_the_one_with_more_rows(source: Source) -> None:
    data, oracle = source.data, expected()
    assert data.grad_norm.dims == ("module", "step")
    assert data.module.values.tolist() == oracle.module.values.tolist()
    assert data.step.values.tolist() == oracle.step.values.tolist()
    for name in ("grad_norm", "weight_norm"):
        assert data[name].dtype == np.float32
        assert np.array_equal(data[name].to_numpy(), oracle[name].to_numpy(), equal_nan=True)
    assert data.weight_norm.attrs == {"units": "m", "long_name": "weight_norm"}
    milliseconds = data.time.values.astype("datetime64[ms]").astype(int)
    assert milliseconds.tolist() == [1_700_000_000_000 + step for step in oracle.step.values]


@pytest.mark.parametrize(
    "key",
    [
        {"module": "conv1"},
        {"step": 10},
        {"module": "fc", "step": slice(3, 21)},
        {"module": ["fc.bias", "conv1"], "step": [25, 0, 11]},
        {"module": [], "step": []},
    ],
)
def test_any_selection_of_the_lazy_data_is_that_of_the_loaded(
    source: Source, key: dict[str, object]
) -> None:
    lazy, loaded = source.data.grad_norm.sel(key), expected().grad_norm.sel(key)
    assert np.array_equal(lazy.to_numpy(), loaded.to_numpy(), equal_nan=True)
    every_third = source.data.grad_norm.isel(step=slice(None, None, -3))
    reference = expected().grad_norm.isel(step=slice(None, None, -3))
    assert np.array_equal(every_third.to_numpy(), reference.to_numpy(), equal_nan=True)


def test_data_reads_only_what_is_looked_at(source: Source, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    view = type(source.streams["every_1"])
    values = view.values

    def spied(self: StreamView, quantity: str, *rest: Any) -> Floats:
        asked.append(quantity)
        return values(self, quantity, *rest)

    monkeypatch.setattr(view, "values", spied)
    data = source.data
    assert "grad_norm" in repr(data)
    assert asked == []
    data.weight_norm.load()
    assert set(asked) == {"weight_norm"}


def test_the_cube_stacks_the_quantities(source: XarrayViews) -> None:
    cube, oracle = source.to_xarray("cube"), expected()
    assert cube.dims == ("module", "quantity", "step")
    assert cube.dtype == np.float32
    for name in ("grad_norm", "weight_norm"):
        stacked = cube.sel(quantity=name).to_numpy()
        assert np.array_equal(stacked, oracle[name].to_numpy(), equal_nan=True)
    assert cube.sel(quantity="weight_norm", module="conv1", step=5).item() == -5
    assert cube.sel(quantity="weight_norm").units.item() == "m"


def test_the_tree_keeps_each_stream_exact(source: XarrayViews) -> None:
    tree = source.to_xarray("tree")
    assert tree["every_1"].to_dataset().step.values.tolist() == list(DENSE)
    sparse = tree["every_5"].to_dataset()
    assert sparse.grad_norm.dims == ("step", "module")
    assert sparse.module.values.tolist() == ["conv1", "fc.bias", ROOT]
    assert sparse.grad_norm.sel(module="conv1").values.tolist() == [-step for step in SPARSE]


def test_a_series_has_the_steps_at_which_it_was_measured(source: Source) -> None:
    series = source.series("conv1", "grad_norm")
    assert series.dims == ("step",)
    assert series.step.values.tolist() == sorted({*DENSE, *SPARSE})
    assert series.sel(step=[5, 15]).values.tolist() == [105, -15]
    assert series.attrs["long_name"] == "norm of the gradient"
    assert source.series("fc.bias", "weight_norm").step.values.tolist() == list(SPARSE)
    assert source.series("", "grad_norm").size == source.series(ROOT, "grad_norm").size == 0


@pytest.mark.parametrize(
    ("module", "quantity", "message"),
    [
        ("conv1", "grad_nrom", "no quantity 'grad_nrom' is recorded; close: 'grad_norm'"),
        ("conv", "grad_norm", "no grad_norm of module 'conv' is recorded; close: 'conv1'"),
        ("conv2", "grad_norm", "no grad_norm of module 'conv2' is recorded"),
    ],
)
def test_an_unknown_name_lists_the_close_ones(
    source: Source, module: str, quantity: str, message: str
) -> None:
    with pytest.raises(UnknownNameError, match=message):
        source.series(module, quantity)


def test_a_stream_names_what_it_does_not_know(source: Source) -> None:
    stream = source.streams["every_1"]
    with pytest.raises(UnknownNameError, match="no quantity 'x' in stream 'every_1'"):
        stream.values("x")
    with pytest.raises(UnknownNameError, match="no module 'conv2' in stream 'every_1'; close"):
        stream.values("grad_norm", modules=["fc", "conv2"])


def test_values_may_be_asked_by_rows_and_modules(source: Source) -> None:
    stream = source.streams["every_1"]
    assert stream.values("grad_norm", 3, 5, ["conv1", "fc"]).tolist() == [[103, 3], [104, 4]]
    assert stream.values("grad_norm", 10).tolist() == [[10, 110], [11, 111]]
    assert stream.values("grad_norm", 3, 5, []).shape == (2, 0)
    assert stream.values("grad_norm", 12).shape == (0, 2)
    assert stream.steps(10).tolist() == [10, 11]
    assert stream.times(11, 12).tolist() == [1_700_000_000_011]


def test_a_measured_nan_is_not_replaced_by_another_streams_value(tmp_path: Path) -> None:
    with new_writer(tmp_path / "a.zarr") as writer:
        for name, values in (("every_1", [MEASURED_NAN, NOT_MEASURED]), ("every_2", [5.0])):
            stream = writer.stream(name)
            stream.extend(["conv1"], [WEIGHT])
            for step, value in enumerate(values):
                stream.record(step, 0, np.full((1, 1), value, np.float32))
        assert np.isnan(writer.source.data.weight_norm.sel(module="conv1", step=0).item())
        assert writer.source.series("conv1", "weight_norm").step.values.tolist() == [0]
