"""Vectors of every module's own length, and arrays of every module's own shape."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray as xr
from hypothesis import given, settings
from hypothesis import strategies as st

from notebook_probe.errors import QuantityError, RecordFormatError, UnknownNameError
from notebook_probe.record import RecordWriter, Variable, open_record
from notebook_probe.record.format.kinds import blob_name
from notebook_probe.record.format.missing import measured
from notebook_probe.record.views.xarray_views import XarrayViews
from notebook_probe.record.write.streams import stream as stream_module
from notebook_probe.record.write.streams.shaped import RaggedWriter
from tests.record.build import BINS, COUNTS, GRAD, LAW, fill, new_writer

MEAN, VAR = Variable("channel_mean", "1", "mean of each channel"), Variable("channel_var")
IMAGE = Variable("image", "1", "first input")


def vector(step: int, module: str, size: int) -> np.ndarray:
    return np.arange(size, dtype=np.float32) + 100 * step + 10_000 * len(module)


def ragged_of(writer: RecordWriter, name: str) -> RaggedWriter:
    ragged = writer.ragged(name)
    ragged.extend([MEAN, VAR])
    return ragged


def both(folder: Path, live: XarrayViews) -> tuple[XarrayViews, XarrayViews]:
    return live, open_record(folder)


def test_a_modules_vectors_are_its_series(tmp_path: Path) -> None:
    sizes = {"conv1": 16, "conv2": 300, "(root)": 1}
    with new_writer(tmp_path / "a.zarr") as writer:
        ragged = ragged_of(writer, "every_2")
        for step in range(0, 20, 2):
            row = {("channel_mean", name): vector(step, name, size) for name, size in sizes.items()}
            if step >= 10:
                row["channel_var", "conv1"] = vector(step, "conv1", 16) ** 2
            assert ragged.record(step, 0, row)
        assert writer.flush(60)
        for source in both(tmp_path / "a.zarr", writer.source):
            for name, size in sizes.items():
                series = source.series(name, "channel_mean")
                assert series.dims == ("step", "index")
                assert series.step.values.tolist() == list(range(0, 20, 2))
                expected = [vector(step, name, size) for step in range(0, 20, 2)]
                np.testing.assert_array_equal(series, expected)
            assert source.series("conv1", "channel_var").step.values.tolist() == [*range(10, 20, 2)]
            assert source.series("", "channel_mean").sizes == {"step": 10, "index": 1}
            with pytest.raises(UnknownNameError, match="conv1"):
                source.series("conv", "channel_var")


def test_plain_xarray_reads_them_with_their_coordinates(tmp_path: Path) -> None:
    with new_writer(tmp_path / "a.zarr") as writer:
        ragged = ragged_of(writer, "every_1")
        ragged.record(0, 7, {("channel_mean", "a"): [1, 2], ("channel_mean", "b"): [3, 4, 5]})
        ragged.record(1, 8, {("channel_mean", "b"): [6, 7, 8], ("channel_mean", "c"): [9]})
        writer.arrays(IMAGE, "a.b", (2, 2)).record(3, 0, np.eye(2))
        numbers = writer.stream("every_1")
        numbers.extend(["a"], [GRAD])
        fill(numbers, range(3))
    data = xr.open_zarr(tmp_path / "a.zarr", group="vectors/every_1")
    assert data.channel_mean.dims == ("step", "element")
    assert data.channel_mean.attrs["long_name"] == "mean of each channel"
    assert data.module_of_element.values.tolist() == ["a", "a", "b", "b", "b", "c"]
    assert data.index_in_module.values.tolist() == [0, 1, 0, 1, 2, 0]
    nan = np.nan
    expected = [[1, 2, 3, 4, 5, nan], [nan, nan, 6, 7, 8, 9]]
    np.testing.assert_array_equal(data.channel_mean, expected)
    tree = xr.open_datatree(tmp_path / "a.zarr", engine="zarr")
    assert tree["blobs/image/a%2Eb"].attrs["module"] == "a.b"
    np.testing.assert_array_equal(tree["blobs/image/a%2Eb/image"], [np.eye(2)])


def test_the_dataset_has_them_beside_the_numbers(tmp_path: Path) -> None:
    with new_writer(tmp_path / "a.zarr") as writer:
        numbers = writer.stream("every_1")
        numbers.extend(["conv1"], [GRAD])
        fill(numbers, range(4))
        ragged_of(writer, "every_2").record(2, 0, {("channel_mean", "conv1"): [1, 2]})
        ragged_of(writer, "every_3").record(
            3, 0, {("channel_mean", "conv1"): [5, 6], ("channel_mean", "fc"): [7]}
        )
        assert writer.flush(60)
        for source in both(tmp_path / "a.zarr", writer.source):
            data = source.data
            assert data.channel_mean.dims == ("element", "step")
            assert data.grad_norm.dims == ("module", "step")
            assert data.module.values.tolist() == ["conv1"]
            one = data.channel_mean.isel(element=data.module_of_element == "conv1")
            np.testing.assert_array_equal(one.sel(step=[2, 3]), [[1, 5], [2, 6]])
            assert source.to_xarray("cube").quantity.values.tolist() == ["grad_norm"]
            assert source.to_xarray("tree")["vectors/every_3"].channel_mean.dims == (
                "step",
                "element",
            )


def test_a_module_whose_vectors_change_length_keeps_both(tmp_path: Path) -> None:
    with new_writer(tmp_path / "a.zarr") as writer:
        ragged = ragged_of(writer, "every_1")
        ragged.record(0, 0, {("channel_mean", "a"): [1, 2]})
        ragged.record(1, 0, {("channel_mean", "a"): [3, 4, 5]})
    nan = np.nan
    series = open_record(tmp_path / "a.zarr").series("a", "channel_mean")
    np.testing.assert_array_equal(series, [[1, 2, nan], [3, 4, 5]])


@pytest.mark.slow
@given(
    rows=st.lists(
        st.dictionaries(
            st.tuples(
                st.sampled_from(["channel_mean", "channel_var"]),
                st.sampled_from(["a", "b[0]", "c\n"]),
            ),
            st.lists(st.floats(width=32), min_size=1, max_size=4),
            max_size=4,
        ),
        max_size=12,
    ),
    cuts=st.sets(st.integers(0, 11)),
)
@settings(LAW, max_examples=20)
def test_what_is_recorded_is_what_is_read(
    tmp_path_factory: pytest.TempPathFactory, rows: list[dict[Any, list[float]]], cuts: set[int]
) -> None:
    """Continued at every cut, from another writer."""
    folder = tmp_path_factory.mktemp("ragged") / "a.zarr"
    writer = new_writer(folder)
    for step, row in enumerate(rows):
        if step in cuts:
            writer.close()
            writer = new_writer(folder)
        ragged_of(writer, "every_1").record(step, 0, row)
    writer.close()
    record = open_record(folder)
    expected: dict[Any, dict[int, list[float]]] = {}
    for step, row in enumerate(rows):
        for (quantity, module), values in row.items():
            expected.setdefault((module, quantity), {})[step] = values
    for series, steps in expected.items():
        found = record.series(*series)
        assert found.step.values.tolist() == list(steps)
        for read, values in zip(found.values, steps.values(), strict=True):
            np.testing.assert_array_equal(read[: len(values)], np.array(values, np.float32))
            assert not measured(read[len(values) :]).any()


def test_arrays_have_a_step_axis_and_a_shape_of_their_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stream_module, "RECENT_BYTES", 0)
    rng = np.random.default_rng(0)
    shapes = {"conv1": (3, 5), "fc": (70, 100, 2)}
    given = {
        name: rng.normal(size=(40, *shape)).astype(np.float32) for name, shape in shapes.items()
    }
    for first in (0, 20):
        with new_writer(tmp_path / "a.zarr") as writer:
            for step in range(first, first + 20):
                for name, shape in shapes.items():
                    arrays = writer.arrays(IMAGE, name, shape)
                    assert arrays.record(10 * step, 0, given[name][step])
                if step % 7 == 0:
                    assert writer.flush(60)
            for name, values in given.items():
                seen = writer.source.series(name, "image")
                np.testing.assert_array_equal(seen, values[: first + 20])
    images = open_record(tmp_path / "a.zarr").blobs["image"]
    assert set(images) == set(shapes)
    for name, values in given.items():
        assert images[name].step.values.tolist() == list(range(0, 400, 10))
        assert images[name].attrs["long_name"] == "first input"
        np.testing.assert_array_equal(images[name], values)
        np.testing.assert_array_equal(images[name].sel(step=[130, 70])[:, 1], values[[13, 7], 1])


@pytest.mark.parametrize("resume", [5, "branch(5)"])
def test_they_are_cut_and_branched_like_numbers(tmp_path: Path, resume: int | str) -> None:
    for sign, start, how in ((1, 0, None), (-1, 5, resume)):
        with RecordWriter(tmp_path / "a.zarr", title="a", modules=[], resume=how) as writer:
            ragged, images = ragged_of(writer, "every_1"), writer.arrays(IMAGE, "a.r2", (2,))
            for step in range(start, 10):
                value = [sign * step, 1]
                ragged.record(step, 0, {("channel_mean", "a"): value})
                images.record(step, 0, value)
    record = open_record(tmp_path / "a.zarr")
    expected = [0, 1, 2, 3, 4, -5, -6, -7, -8, -9]
    assert record.series("a", "channel_mean")[:, 0].values.tolist() == expected
    assert record.series("a.r2", "image")[:, 0].values.tolist() == expected
    assert record.blobs["image"]["a.r2"].sel(step=[4, 5])[:, 0].values.tolist() == [4, -5]


@given(st.lists(st.text(min_size=1, max_size=300), unique=True, max_size=20))
@LAW
def test_every_modules_name_is_a_folder_of_its_own(names: list[str]) -> None:
    folders = [blob_name(name) for name in names]
    assert len({folder.casefold() for folder in folders}) == len(names)
    for folder in folders:
        assert folder.isascii()
        assert len(folder) <= 200
        assert not set(folder) & set('./\\:*?"<>| ')


@pytest.mark.parametrize(
    "name", ["../../x", "..", "a/b", "<b>", "C:", "x" * 500, "é\ud800", "late.3.r2"]
)
def test_hostile_names_stay_in_the_record(tmp_path: Path, name: str) -> None:
    with new_writer(tmp_path / "in" / "a.zarr") as writer:
        writer.arrays(IMAGE, name, (2,)).record(0, 0, [1, 2])
        assert writer.flush(60)
        assert writer.source.series(name, "image").values.tolist() == [[1, 2]]
    assert [path.name for path in tmp_path.iterdir()] == ["in"]
    assert open_record(tmp_path / "in" / "a.zarr").series(name, "image").values.tolist() == [[1, 2]]


def test_what_cannot_be_recorded_is_refused_with_the_reason(tmp_path: Path) -> None:
    with new_writer(tmp_path / "a.zarr") as writer:
        numbers = writer.stream("every_1")
        numbers.extend(["a"], [GRAD])
        ragged = ragged_of(writer, "every_1")
        with pytest.raises(QuantityError, match="is a number in this record"):
            ragged.extend([GRAD])
        with pytest.raises(UnknownNameError, match="channel_mean"):
            ragged.record(0, 0, {("channel_men", "a"): [1.0]})
        with pytest.raises(ValueError, match=r"shape \(\); a vector is expected"):
            ragged.record(0, 0, {("channel_mean", "a"): 1.0})
        with pytest.raises(QuantityError, match="index_in_module"):
            numbers.extend([], [Variable("index_in_module")])
        images = writer.arrays(IMAGE, "a", (2, 2))
        with pytest.raises(ValueError, match=r"\(2, 3\) in 'blobs/image/a'; \(2, 2\) is recorded"):
            images.record(0, 0, np.zeros((2, 3)))
        with pytest.raises(QuantityError, match=r"shape \(2, 2\) in this record, not \(3,\)"):
            writer.arrays(IMAGE, "a", (3,))
        with pytest.raises(QuantityError, match="differs from 'blobs/image' by case only"):
            writer.arrays(Variable("Image"), "a", (3,))
        with pytest.raises(ValueError, match="at least one element"):
            writer.arrays(Variable("empty"), "a", (3, 0))
        with pytest.raises(QuantityError, match="is a number"):
            writer.arrays(GRAD, "a", (3,))
        writer.stream("every_1", axis=BINS).extend(["a"], [COUNTS])
        with pytest.raises(QuantityError, match="is a vector along 'bin'"):
            writer.arrays(COUNTS, "a", (3,))


def test_a_record_whose_elements_are_muddled_is_left_out_by_name(tmp_path: Path) -> None:
    with new_writer(tmp_path / "a.zarr") as writer:
        ragged_of(writer, "every_1").record(0, 0, {("channel_mean", "a"): [1, 2]})
        numbers = writer.stream("every_1")
        numbers.extend(["a"], [GRAD])
        fill(numbers, range(3))
    index = tmp_path / "a.zarr/vectors/every_1/index_in_module/c/0"
    index.write_bytes(index.read_bytes()[:-3])
    with pytest.warns(UserWarning, match="index_in_module"):
        record = open_record(tmp_path / "a.zarr")
    assert isinstance(record.problems[0], RecordFormatError)
    assert record.series("a", "grad_norm").values.tolist() == [0, 1, 2]
