"""Vectors of fixed length as they are written: bit for bit, grown, continued, refused."""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
import pytest
import xarray as xr
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from notebook_probe.axis import Axis
from notebook_probe.errors import QuantityError, ScheduleError
from notebook_probe.record import (
    Variable,
    open_record,
)
from notebook_probe.record.format.missing import MEASURED_NAN, NOT_MEASURED, measured
from notebook_probe.record.format.source import Floats
from tests.record.build import BINS, COUNTS, GRAD, LAW, fill, fill_vectors, new_writer, vectors

OTHERS = Variable("others")


tables = hnp.arrays(
    np.float32,
    hnp.array_shapes(min_dims=4, max_dims=4, min_side=1, max_side=5),
    elements=st.floats(width=32, allow_nan=True),
)


@pytest.mark.slow
@given(values=tables, data=st.data())
@settings(LAW, max_examples=20)
def test_every_vector_comes_back_bit_for_bit(values: Floats, data: st.DataObject) -> None:
    n_rows, n_variables, n_modules, size = values.shape
    steps = sorted(data.draw(st.sets(st.integers(0, 2**62), min_size=n_rows, max_size=n_rows)))
    flush_at = data.draw(st.integers(0, n_rows), "flush_at")
    coords = data.draw(st.lists(st.floats(), min_size=size, max_size=size), "coords")
    axis = Axis("element", {"element": tuple(range(size)), "at": tuple(coords)}, group="some")
    modules, names = [f"m{i}" for i in range(n_modules)], [f"q{i}" for i in range(n_variables)]
    with tempfile.TemporaryDirectory() as folder:
        with new_writer(Path(folder)) as writer:
            stream = writer.stream("every_1", axis=axis)
            stream.extend(modules, [Variable(name, "m") for name in names])
            for i, step in enumerate(steps):
                if i == flush_at:
                    assert writer.flush(60)
                assert stream.record(step, i, values[i])
        stored = open_record(folder).vectors["some/every_1"]
        assert stored.axis == axis
        assert stored.modules == tuple(modules)
        assert [variable.name for variable in stored.variables] == names
        assert stored.steps().tolist() == steps
        for place, name in enumerate(names):
            got = np.ascontiguousarray(stored.values(name))
            wanted = np.ascontiguousarray(values[:, place])
            assert np.array_equal(got.view(np.uint32), wanted.view(np.uint32))


@pytest.mark.parametrize("flushing", [True, False])
def test_modules_and_quantities_added_mid_run_are_nan_before(
    tmp_path: Path, flushing: bool
) -> None:
    with new_writer(tmp_path / "a.zarr") as writer:
        stream = writer.stream("every_1", axis=BINS)
        stream.extend(["conv1"], [COUNTS])
        fill_vectors(stream, range(100))
        if flushing:
            assert writer.flush(60)
        early = vectors(stream, 100)
        stream.extend([f"m{i}" for i in range(30)], [OTHERS])
        assert stream.record(100, 0, early)
        fill_vectors(stream, range(101, 110))
        live = writer.source.vectors["hist/every_1"].values("counts")
    data = xr.open_zarr(tmp_path / "a.zarr", group="hist/every_1", chunks=None)
    wanted = np.full((110, 31, 3), np.nan, np.float32)
    steps, bins = np.arange(110)[:, None], np.arange(3) / 1024
    wanted[:, 0] = steps + bins
    wanted[101:] = steps[101:, None] + 100 * np.arange(31)[:, None] + bins
    assert np.array_equal(data.counts, wanted, equal_nan=True)
    assert np.array_equal(live, wanted, equal_nan=True)
    assert data.others.isel(step=slice(101)).isnull().all()
    assert data.others.sel(step=105, module="m29", bin=-1).item() == 1000 + 105 + 3000


def test_vectors_alone_make_a_record(tmp_path: Path) -> None:
    with new_writer(tmp_path / "a.zarr") as writer:
        stream = writer.stream("every_1", axis=BINS)
        stream.extend(["conv1"], [COUNTS])
        fill_vectors(stream, range(3))
        seen = writer.source.revision
        fill_vectors(stream, range(3, 4))
        assert writer.source.revision > seen
        assert writer.published_rows("hist/every_1") == 0
        assert writer.flush(60)
        assert writer.published_rows("hist/every_1") == 4
    record = open_record(tmp_path / "a.zarr")
    assert record.data.counts.shape == (1, 4, 3)
    assert record.to_xarray("cube").shape == (1, 0, 4)
    assert dict(record.streams) == {}


def test_a_stream_of_vectors_without_rows_can_be_read(tmp_path: Path) -> None:
    with new_writer(tmp_path / "a.zarr") as writer:
        writer.stream("every_1", axis=BINS).extend(["conv1"], [COUNTS])
        writer.stream("every_9", axis=BINS)
    record = open_record(tmp_path / "a.zarr")
    assert record.data.counts.shape == (1, 0, 3)
    assert record.series("conv1", "counts").shape == (0, 3)
    data = xr.open_zarr(tmp_path / "a.zarr", group="hist/every_1", chunks=None)
    assert data.counts.shape == (0, 1, 3)


def test_vectors_longer_than_a_chunk_are_whole_and_take_no_file_where_unmeasured(
    tmp_path: Path,
) -> None:
    long = Axis("bin", {"bin": tuple(range(64))}, group="hist")
    with new_writer(tmp_path / "a.zarr") as writer:
        stream = writer.stream("every_1", axis=long)
        stream.extend([f"m{i}" for i in range(40)], [COUNTS, OTHERS])
        for step in range(150):
            values = vectors(stream, step)
            values[1] = NOT_MEASURED
            values[0, 16:32] = NOT_MEASURED
            assert stream.record(step, 0, values)
            if step in (3, 64, 65):
                assert writer.flush(60)
    group = tmp_path / "a.zarr" / "hist" / "every_1"
    files = {path.relative_to(group).as_posix() for path in group.rglob("c/*/*/*")}
    assert files == {f"counts/c/{row}/{column}/0" for row in range(3) for column in (0, 2)}
    found = open_record(tmp_path / "a.zarr").vectors["hist/every_1"].values("counts")
    wanted = np.arange(150)[:, None, None] + 100 * np.arange(40)[:, None] + np.arange(64) / 1024
    assert np.array_equal(found[:, 32:], wanted[:, 32:].astype(np.float32))
    assert np.array_equal(found[:, :16], wanted[:, :16].astype(np.float32))
    assert not measured(found[:, 16:32]).any()


def test_a_measured_vector_of_nan_is_in_the_series(tmp_path: Path) -> None:
    with new_writer(tmp_path / "a.zarr") as writer:
        stream = writer.stream("every_1", axis=BINS)
        stream.extend(["conv1"], [COUNTS])
        for step, value in enumerate([NOT_MEASURED, MEASURED_NAN, np.float32(1)]):
            stream.record(step, 0, np.full(stream.shape, value, np.float32))
        assert writer.source.series("conv1", "counts").step.values.tolist() == [1, 2]


@pytest.mark.parametrize("shape", [(1, 1), (1, 1, 2), (1, 1, 4), (2, 1, 3), (1, 2, 3), (3,)])
def test_a_row_of_another_shape_is_refused(tmp_path: Path, shape: tuple[int, ...]) -> None:
    with new_writer(tmp_path / "a.zarr") as writer:
        stream = writer.stream("every_1", axis=BINS)
        stream.extend(["conv1"], [COUNTS])
        with pytest.raises(ValueError, match=r"\(n_variables, n_modules, size\) is \(1, 1, 3\)"):
            stream.record(0, 0, np.zeros(shape, np.float32))
        assert stream.n_rows == 0


def test_a_name_stands_for_one_thing(tmp_path: Path) -> None:
    with new_writer(tmp_path / "a.zarr") as writer:
        numbers, histograms = writer.stream("every_1"), writer.stream("every_1", axis=BINS)
        numbers.extend(["fc"], [GRAD])
        histograms.extend(["fc"], [COUNTS])
        with pytest.raises(QuantityError, match="'grad_norm' is a number in this record"):
            histograms.extend(["fc"], [GRAD])
        with pytest.raises(QuantityError, match="'counts' is a vector along 'bin' in this record"):
            writer.stream("every_5").extend(["fc"], [COUNTS])
        for name in ("bin_lo", "Bin"):
            with pytest.raises(QuantityError, match=f"'{name}' is a coordinate of 'hist'"):
                numbers.extend(["fc"], [Variable(name)])
        assert numbers.variables == (GRAD,)
        assert histograms.variables == (COUNTS,)
        fill(numbers, range(2))
    with (
        new_writer(tmp_path / "a.zarr") as again,
        pytest.raises(QuantityError, match="'grad_norm' is a number"),
    ):
        again.stream("every_7", axis=BINS).extend(["fc"], [GRAD])


def test_a_logged_number_may_have_taken_the_axis_name(tmp_path: Path) -> None:
    with new_writer(tmp_path / "a.zarr") as writer:
        writer.stream("every_1").extend([""], [Variable("bin")])
        with pytest.raises(QuantityError, match="'bin' is a number in this record and cannot be"):
            writer.stream("every_1", axis=BINS)
        assert dict(writer.source.vectors) == {}


def test_one_group_has_one_axis(tmp_path: Path) -> None:
    other = Axis("bin", {**BINS.coords, "bin_lo": (0.0, 1.0, 2.0)}, group="hist")
    for _ in range(2):  # made and continued
        with new_writer(tmp_path / "a.zarr") as writer:
            writer.stream("every_1", axis=BINS).extend(["fc"], [COUNTS])
            for name in ("every_1", "every_2"):
                with pytest.raises(QuantityError, match="'hist' of this record are along another"):
                    writer.stream(name, axis=other)
            assert set(writer.source.vectors) == {"hist/every_1"}


@pytest.mark.parametrize("group", ["scalars", "modules", "events", "a/b", "", "a b"])
def test_a_group_must_have_a_plain_name_of_its_own(tmp_path: Path, group: str) -> None:
    axis = Axis("bin", {"bin": (0.0,)}, group=group)
    with new_writer(tmp_path / "a.zarr") as writer:
        with pytest.raises(QuantityError, match="group"):
            writer.stream("every_1", axis=axis)
        with pytest.raises(ScheduleError, match="stream name"):
            writer.stream("every 1", axis=BINS)


@pytest.mark.parametrize("name", ["step", "a b", "1"])
def test_a_coordinate_must_have_a_plain_name(tmp_path: Path, name: str) -> None:
    axis = Axis("bin", {"bin": (0.0,), name: (0.0,)}, group="hist")
    with new_writer(tmp_path / "a.zarr") as writer, pytest.raises(QuantityError, match="quantity"):
        writer.stream("every_1", axis=axis)


def test_an_axis_needs_coordinates_of_one_length_and_one_of_its_name() -> None:
    with pytest.raises(ValueError, match="'bin' with coordinates of lengths"):
        Axis("bin", {"bin": (1.0,), "lo": (1.0, 2.0)}, group="hist")
    with pytest.raises(ValueError, match="one called 'bin'"):
        Axis("bin", {"lo": (1.0,)}, group="hist")


def test_axes_are_equal_by_what_they_hold() -> None:
    same = Axis("bin", {name: tuple(values) for name, values in BINS.coords.items()}, "hist")
    assert same == BINS
    assert hash(same) == hash(BINS)
    assert Axis("bin", BINS.coords, "other") != BINS
    assert len({BINS, same, Axis("bin", {"bin": (1.0,)}, "hist")}) == 2


def test_lengths_that_keep_changing_are_refused_before_the_record_cannot_be_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("notebook_probe.record.write.streams.shaped.MOST_NAMES", 10)
    with new_writer(tmp_path / "r.zarr") as writer:
        ragged = writer.ragged("every_1")
        ragged.stream.extend([], [GRAD])
        for step, size in enumerate([4, 3, 4]):
            assert ragged.record(step, step, {(GRAD.name, "fc"): np.ones(size)})
        with pytest.raises(ValueError, match=r"a vector of 5 numbers for 'fc'.* at most 10 places"):
            ragged.record(3, 3, {(GRAD.name, "fc"): np.ones(5)})
        assert ragged.record(4, 4, {(GRAD.name, "fc"): np.ones(3)})
