"""Modules, quantities and streams that come while the run goes on."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import xarray as xr

from notebook_probe.record import Variable, open_record
from notebook_probe.record.format.missing import measured
from tests.record.build import GRAD, WEIGHT, fill, new_writer, row


@pytest.mark.parametrize("flushing", [True, False])
def test_columns_added_mid_run_are_nan_before(tmp_path: Path, flushing: bool) -> None:
    with new_writer(tmp_path / "a.zarr") as writer:
        stream = writer.stream("every_1")
        stream.extend(["conv1"], [GRAD])
        fill(stream, range(10))
        if flushing:
            assert writer.flush(60)
        stream.extend(["conv2"])
        fill(stream, range(10, 20))
        stream.extend(["conv1", "fc"], [GRAD, WEIGHT])
        fill(stream, range(20, 30))
        live = writer.source.streams["every_1"].values("grad_norm")
    data = xr.open_zarr(tmp_path / "a.zarr", group="scalars/every_1", chunks=None)
    steps = np.arange(30)
    expected = np.full((30, 3), np.nan)
    expected[:, 0] = steps
    expected[10:, 1] = 100 + steps[10:]
    expected[20:, 2] = 200 + steps[20:]
    assert np.array_equal(data.grad_norm, expected, equal_nan=True)
    assert np.array_equal(live, expected, equal_nan=True)
    assert data.module.values.tolist() == ["conv1", "conv2", "fc"]
    assert data.weight_norm.isel(step=slice(None, 20)).isnull().all()
    assert data.weight_norm.sel(step=25).values.tolist() == [1025, 1125, 1225]


def test_a_quantity_added_after_another_stream_stays_visible(tmp_path: Path) -> None:
    """Siblings that are not neighbours in the consolidated metadata are lost by zarr before 3.2."""
    with new_writer(tmp_path / "a.zarr") as writer:
        for name in ("every_1", "every_2", "every_1"):
            stream = writer.stream(name)
            quantity = f"quantity_{stream.shape[0]}"
            stream.extend(["conv1"], [Variable(quantity)])
            fill(stream, range(stream.last_step + 1, stream.last_step + 4))
            assert writer.flush(60)
    tree = xr.open_datatree(tmp_path / "a.zarr", engine="zarr")
    assert set(tree["scalars/every_1"].data_vars) == {"quantity_0", "quantity_1"}
    assert set(tree["scalars/every_2"].data_vars) == {"quantity_0"}


def test_extending_by_what_is_there_changes_nothing(tmp_path: Path) -> None:
    with new_writer(tmp_path / "a.zarr") as writer:
        stream = writer.stream("every_1")
        stream.extend(["fc", "conv1"], [WEIGHT, GRAD])
        stream.extend(["conv1"], [Variable("grad_norm", "kg")])
        assert dict(stream.module_index) == {"fc": 0, "conv1": 1}
        assert dict(stream.variable_index) == {"weight_norm": 0, "grad_norm": 1}
        assert stream.variables == (WEIGHT, GRAD)
        assert stream.shape == (2, 2)
        assert writer.stream("every_1") is stream


def test_a_row_made_before_the_axes_grew_is_still_taken(tmp_path: Path) -> None:
    with new_writer(tmp_path / "a.zarr") as writer:
        stream = writer.stream("every_1")
        stream.extend(["conv1"], [GRAD])
        early, later = row(stream, 0), row(stream, 1)
        stream.extend(["fc"], [WEIGHT])
        assert stream.record(0, 0, early)
        assert stream.record(1, 0, later)
        values = writer.source.streams["every_1"].values("grad_norm")
        assert values[:, 0].tolist() == [0, 1]
        assert not measured(values[:, 1]).any()


@pytest.mark.parametrize("shape", [(2, 1), (1, 2), (1,), (1, 1, 1)])
def test_a_row_of_another_shape_is_refused(tmp_path: Path, shape: tuple[int, ...]) -> None:
    with new_writer(tmp_path / "a.zarr") as writer:
        stream = writer.stream("every_1")
        stream.extend(["conv1"], [GRAD])
        with pytest.raises(ValueError, match=r"\(n_variables, n_modules\) is \(1, 1\)"):
            stream.record(0, 0, np.zeros(shape, np.float32))
        assert stream.n_rows == 0


def test_a_step_that_does_not_grow_is_refused(tmp_path: Path) -> None:
    with new_writer(tmp_path / "a.zarr") as writer:
        stream = writer.stream("every_1")
        stream.extend(["conv1"], [GRAD])
        fill(stream, range(5, 6))
        for step in (5, 4):
            with pytest.raises(ValueError, match=f"step {step} .* after step 5"):
                stream.record(step, 0, row(stream, step))
        assert writer.last_step == 5


def test_recording_copies_the_row(tmp_path: Path) -> None:
    with new_writer(tmp_path / "a.zarr") as writer:
        stream = writer.stream("every_1")
        stream.extend(["conv1"], [GRAD])
        values = row(stream, 0)
        stream.record(0, 0, values)
        values[:] = -1
    assert open_record(tmp_path / "a.zarr").series("conv1", "grad_norm").values.tolist() == [0]
