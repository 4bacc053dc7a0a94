"""The pyramid on disk: written as the rows come, continued, rebuilt, read by plain xarray."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest
import xarray as xr

from notebook_probe.record import RecordWriter, StreamWriter, open_record
from notebook_probe.record.format.missing import NOT_MEASURED, measured
from notebook_probe.record.format.source import Floats
from notebook_probe.record.write.streams import levels as levels_module
from tests.record.build import GRAD, MODULES, WEIGHT, new_writer
from tests.record.write.streams.test_pyramid import oracle, same

SIZES = (64, 1024, 16384)


@pytest.fixture(autouse=True)
def short_runs_have_levels_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(levels_module, "FEWEST_BLOCKS", (1, 1, 1))


def noise(n_rows: int, n_variables: int = 2, n_modules: int = 3, seed: int = 0) -> Floats:
    values = np.random.default_rng(seed).normal(size=(n_rows, n_variables, n_modules))
    values[:: n_rows // 7 or 1, 0, 0] = np.nan
    return values.astype(np.float32)


def record(stream: StreamWriter, values: Floats, first_step: int = 0) -> None:
    for i, row in enumerate(values):
        assert stream.record(first_step + i, 0, row)


def check(folder: Path, values: Floats, sizes: tuple[int, ...] = SIZES) -> None:
    """Every level of ``every_1`` is that of ``values``, which begin at step 0."""
    expected = {f"by{size}": oracle(values, size) for size in sizes if len(values) >= size}
    tree = xr.open_datatree(folder, engine="zarr")
    assert set(tree["pyramid/every_1"].children) == expected.keys()
    for name, reductions in expected.items():
        level = xr.open_zarr(folder, group=f"pyramid/every_1/{name}", chunks=None)
        size = int(name.removeprefix("by"))
        assert level.step.values.tolist() == list(range(0, len(values) - size + 1, size))
        for place, quantity in enumerate(["grad_norm", "weight_norm"][: values.shape[1]]):
            found = {one: level[f"{quantity}_{one}"].values for one in reductions}
            same(found, {one: cells[:, place] for one, cells in reductions.items()})


def three_modules(writer: RecordWriter) -> StreamWriter:
    stream = writer.stream("every_1", "every(1)")
    stream.extend(["conv1", "conv2", "fc"], [GRAD, WEIGHT])
    return stream


@pytest.mark.slow
def test_each_level_opens_by_itself_and_says_what_it_is(tmp_path: Path) -> None:
    values = noise(20_000)
    with new_writer(tmp_path / "a.zarr") as writer:
        record(three_modules(writer), values)
    check(tmp_path / "a.zarr", values)
    level = xr.open_zarr(tmp_path / "a.zarr", group="pyramid/every_1/by1024", chunks=None)
    assert level.attrs == {"rows_per_block": 1024}
    assert level.module.values.tolist() == ["conv1", "conv2", "fc"]
    assert level.grad_norm_min.attrs["cell_methods"] == "step: minimum"
    assert level.grad_norm_max.attrs["cell_methods"] == "step: maximum"
    assert level.grad_norm_mean.attrs["cell_methods"] == "step: mean"
    assert level.grad_norm_mean.attrs["units"] == GRAD.units


@pytest.mark.slow
def test_a_level_begins_when_its_blocks_are_so_many_that_it_pays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(levels_module, "FEWEST_BLOCKS", (8, 4, 2))
    values, pyramid = noise(35_000), tmp_path / "a.zarr" / "pyramid"
    expected: list[tuple[int, set[int]]]
    expected = [(511, set()), (512, {64}), (4095, {64}), (4096, {64, 1024}), (35_000, {*SIZES})]
    first = 0
    for last, sizes in expected:  # a writer each: what waited is made of the rows again
        with new_writer(tmp_path / "a.zarr") as writer:
            record(three_modules(writer), values[first:last], first)
            assert writer.flush(60)
        begun = {int(path.name.removeprefix("by")) for path in pyramid.glob("*/by*")}
        assert begun == sizes, last
        first = last
    check(tmp_path / "a.zarr", values)


def test_a_run_shorter_than_a_block_has_no_pyramid(tmp_path: Path) -> None:
    with new_writer(tmp_path / "a.zarr") as writer:
        record(three_modules(writer), noise(63))
    assert not (tmp_path / "a.zarr" / "pyramid").exists()


@pytest.mark.slow
def test_blocks_wait_until_they_are_many_or_a_flush_is_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    values = noise(3000)
    with new_writer(tmp_path / "a.zarr") as writer:
        stream = three_modules(writer)
        for first in range(0, 3000, 700):
            record(stream, values[first : first + 700], first)
            assert writer.flush(60)
            check(tmp_path / "a.zarr", values[: first + 700])
    monkeypatch.setattr(levels_module, "BATCH_BYTES", 2000)
    with RecordWriter(tmp_path / "b.zarr", title="b", modules=[], flush_rows=1) as writer:
        stream = three_modules(writer)
        step = 0
        while not (tmp_path / "b.zarr" / "pyramid").exists():
            stream.record(step, 0, values[0])
            step += 1


@pytest.mark.slow
def test_a_continued_record_has_the_pyramid_of_all_its_rows(tmp_path: Path) -> None:
    values = noise(40_000)
    for first, last in ((0, 100), (100, 100), (100, 20_000), (20_000, 20_010), (20_010, 40_000)):
        with new_writer(tmp_path / "a.zarr") as writer:
            record(three_modules(writer), values[first:last], first)
            if first:
                tree = xr.open_datatree(tmp_path / "a.zarr", engine="zarr")
                assert "by64" in tree["pyramid/every_1"].children
    check(tmp_path / "a.zarr", values)


@pytest.mark.slow
@pytest.mark.parametrize("step", [0, 63, 1500, 17_000])
def test_a_record_cut_at_an_earlier_step_goes_on_with_blocks_of_what_stayed(
    tmp_path: Path, step: int
) -> None:
    values = noise(20_000)
    with new_writer(tmp_path / "a.zarr") as writer:
        record(three_modules(writer), values)
    with RecordWriter(tmp_path / "a.zarr", title="run", modules=MODULES, resume=step) as writer:
        if step >= 64:
            check(tmp_path / "a.zarr", values[:step])
        values[step:] *= -2
        record(three_modules(writer), values[step:18_000], step)
    check(tmp_path / "a.zarr", values[:18_000])


def test_a_pyramid_that_was_never_written_is_made_up_for(tmp_path: Path) -> None:
    """As in a record whose writer was killed, or that an older version wrote."""
    values = noise(3000)
    with new_writer(tmp_path / "a.zarr") as writer:
        stream = three_modules(writer)
        record(stream, values[:2000])
        assert writer.flush(60)
        shutil.copytree(tmp_path / "a.zarr", tmp_path / "b.zarr")
    bare = tmp_path / "b.zarr" / "zarr.json"
    shutil.rmtree(tmp_path / "b.zarr" / "pyramid")
    bare.write_text(bare.read_text().replace('"pyramid', '"gone'))
    with new_writer(tmp_path / "b.zarr") as writer:
        record(three_modules(writer), values[2000:], 2000)
    check(tmp_path / "b.zarr", values)


def test_columns_added_mid_run_are_not_measured_in_earlier_blocks(tmp_path: Path) -> None:
    values = noise(400)
    with new_writer(tmp_path / "a.zarr") as writer:
        stream = writer.stream("every_1")
        stream.extend(["conv1"], [GRAD])
        record(stream, values[:130, :1, :1])
        assert writer.flush(60)
        stream.extend(["conv2", "fc"], [WEIGHT])
        record(stream, values[130:], 130)
    values[:130, 1:] = NOT_MEASURED
    values[:130, :, 1:] = NOT_MEASURED
    check(tmp_path / "a.zarr", values)


def test_a_flush_that_fails_forgets_no_block(tmp_path: Path) -> None:
    values = noise(500)
    with new_writer(tmp_path / "a.zarr") as writer:
        stream = three_modules(writer)
        record(stream, values[:200])
        assert writer.flush(60)
        record(stream, values[200:400], 200)
        lock = tmp_path / "a.zarr" / ".lock"
        lock.rename(tmp_path / "away")
        assert not writer.flush(60)
        (tmp_path / "away").rename(lock)
        record(stream, values[400:], 400)
    check(tmp_path / "a.zarr", values)


def test_what_was_never_measured_takes_no_file(tmp_path: Path) -> None:
    with new_writer(tmp_path / "a.zarr") as writer:
        stream = three_modules(writer)
        record(stream, np.full((200, 2, 3), NOT_MEASURED))
    level = tmp_path / "a.zarr" / "pyramid" / "every_1" / "by64"
    assert not (level / "grad_norm_min" / "c").exists()
    stored = open_record(tmp_path / "a.zarr").streams["every_1"].levels[64]
    assert not measured(stored.reduced("grad_norm", ["fc"], 0, 3)["mean"]).any()
