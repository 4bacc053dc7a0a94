"""A record in chunks of dask: where they are cut, and that they hold the same."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import xarray as xr

import notebook_probe as nbp
from notebook_probe.errors import MissingExtraError, UnknownNameError
from notebook_probe.record import RecordWriter, Variable
from notebook_probe.record.format.chunk_sizes import ChunkSizes
from notebook_probe.record.read.checked_store import CheckedStore
from notebook_probe.record.read.stored_array import StoredArray
from notebook_probe.record.store.plain_files import PlainFiles
from notebook_probe.record.write.streams import stream as stream_module
from notebook_probe.record.write.streams.hot_chunks import HotChunks
from tests.record.build import BINS, COUNTS, GRAD, WEIGHT, fill, fill_vectors, new_writer

N_STEPS = 100
ROWS = 16
"""Rows of a chunk of four modules."""
MEAN = Variable("channel_mean")


@pytest.fixture(autouse=True)
def small_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(HotChunks, "sizes", ChunkSizes(4 * ROWS, ROWS))


def written(folder: Path, **options: Any) -> RecordWriter:
    """Two quantities at ten modules, one at every third step; vectors of both kinds."""
    writer = new_writer(folder, **options)
    every = writer.stream("every_1")
    every.extend([f"m{n}" for n in range(10)], [GRAD])
    fill(every, range(N_STEPS))
    third = writer.stream("every_3")
    third.extend(["m0"], [WEIGHT])
    fill(third, range(0, N_STEPS, 3))
    hist = writer.stream("every_3", axis=BINS)
    hist.extend(["m0"], [COUNTS])
    fill_vectors(hist, range(0, N_STEPS, 3))
    ragged = writer.ragged("every_3")
    ragged.extend([MEAN])
    ragged.record(0, 0, {("channel_mean", "m1"): [1, 2], ("channel_mean", "m3"): [3]})
    return writer


@pytest.fixture
def place(tmp_path: Path) -> Path:
    with written(tmp_path / "run.zarr"):
        pass
    return tmp_path / "run.zarr"


def looks(place: Path) -> Iterator[xr.Dataset]:
    yield nbp.open_run(place, chunks={}).data
    yield nbp.open_run(place).to_xarray(chunks={})
    yield xr.open_dataset(place, engine="notebook_probe", chunks={})


@pytest.mark.slow
def test_every_way_to_ask_for_chunks_gives_the_same_values_unread(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = nbp.open_run(place).data.load()
    for data in looks(place):
        assert all(data[name].chunks is not None for name in data.data_vars)
        assert data.load().identical(plain)
    reads: list[str] = []
    read = StoredArray._read_directly  # which every reading tries first

    def noted(self: StoredArray, key: Any) -> Any:
        reads.append(self.name)
        return read(self, key)

    monkeypatch.setattr(StoredArray, "_read_directly", noted)
    for data in looks(place):
        reads.clear()
        lazy = data.grad_norm.sel(module="m3").max("step")
        assert not {GRAD.name, WEIGHT.name, COUNTS.name} & {*reads}
        assert lazy.compute() == plain.grad_norm.sel(module="m3").max()
        assert GRAD.name in reads


def test_chunks_are_cut_where_they_are_on_disk(place: Path) -> None:
    on_disk = xr.open_zarr(place, group="scalars/every_1").grad_norm.encoding["chunks"]
    assert on_disk == (ROWS, 4)
    for data in looks(place):
        assert data.grad_norm.chunks == ((4, 4, 2), (16, 16, 16, 16, 16, 16, 4))
        assert data.weight_norm.chunks == ((10,), (48, 48, 4)), "of 16 rows of every third step"
        assert data.counts.chunks[2] == (3,)
        assert data.time.chunks is not None


@pytest.mark.slow
def test_every_chunk_on_disk_is_read_for_one_chunk_of_dask_alone(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    keys: list[str] = []
    get, bytes_of = CheckedStore.get, PlainFiles.bytes_of

    async def counted(self: CheckedStore, key: str, *rest: Any, **named: Any) -> Any:
        keys.append(key)
        return await get(self, key, *rest, **named)

    def counted_directly(self: PlainFiles, key: str) -> bytes | None:
        keys.append(key)
        return bytes_of(self, key)

    monkeypatch.setattr(CheckedStore, "get", counted)
    monkeypatch.setattr(PlainFiles, "bytes_of", counted_directly)
    for data in looks(place):
        keys.clear()
        data.grad_norm.compute()
        data.weight_norm.compute()
        of_quantities = [key for key in keys if "norm/c/" in key]
        assert len(of_quantities) == 3 * 7 + 3
        assert len({*of_quantities}) == len(of_quantities)


@pytest.mark.slow
def test_sizes_that_are_named_hold_and_others_are_those_on_disk(place: Path) -> None:
    run = nbp.open_run(place, chunks={"step": 50})
    assert run.data.grad_norm.chunks == ((4, 4, 2), (50, 50))
    assert run.to_xarray(chunks={"module": -1}).grad_norm.chunks == (
        (10,),
        (16, 16, 16, 16, 16, 16, 4),
    )
    assert run.to_xarray().grad_norm.chunks is None
    assert run.data.load().identical(run.to_xarray().load())
    assert run.to_xarray("cube").sel(module="m2", quantity="grad_norm").values.tolist() == [
        200 + step for step in range(N_STEPS)
    ]


def test_a_record_that_is_being_written_is_cut_as_well(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stream_module, "RECENT_BYTES", 0)
    with written(tmp_path / "run.zarr") as writer:
        assert writer.flush(60)
        data = writer.source.to_xarray(chunks={})
        assert data.grad_norm.chunks == ((4, 4, 2), (16, 16, 16, 16, 16, 16, 4))
        late = writer.stream("every_1")
        fill(late, range(N_STEPS, N_STEPS + 5))
        longer = writer.source.to_xarray(chunks={})
        assert longer.grad_norm.sizes["step"] == N_STEPS + 5
        assert longer.load().identical(writer.source.data.load())
        assert data.load().identical(longer.isel(step=slice(N_STEPS)))


def test_what_was_attached_later_is_cut_as_all_others(tmp_path: Path) -> None:
    with new_writer(tmp_path / "a.zarr") as writer:
        every = writer.stream("every_1")
        every.extend(["fc"], [GRAD])
        fill(every, range(12))
        hist = writer.stream("every_3", axis=BINS)
        hist.extend(["fc"], [COUNTS])
        fill_vectors(hist, range(6, 12, 3))
    data = nbp.open_run(tmp_path / "a.zarr", chunks={}).data
    assert data.chunks["step"] == (12,)
    assert data.load().identical(nbp.open_run(tmp_path / "a.zarr").data.load())


def test_modules_in_another_order_than_on_disk_are_one_chunk(tmp_path: Path) -> None:
    with new_writer(tmp_path / "a.zarr") as writer:
        every = writer.stream("every_1")
        every.extend(["x0", "x1", "x2", "x3", "fc", "conv1"], [GRAD])
        fill(every, range(20))
    data = nbp.open_run(tmp_path / "a.zarr", chunks={}).data
    assert data.module.values.tolist() == ["conv1", "fc", "x0", "x1", "x2", "x3"]
    assert data.grad_norm.chunks == ((6,), (16, 4))
    assert data.load().identical(nbp.open_run(tmp_path / "a.zarr").data.load())


def test_branches_begin_chunks_of_their_own(tmp_path: Path) -> None:
    with new_writer(tmp_path / "a.zarr") as writer:
        every = writer.stream("every_1")
        every.extend(["fc"], [GRAD])
        fill(every, range(20))
    with new_writer(tmp_path / "a.zarr", resume="branch(10)") as writer:
        every = writer.stream("every_1")
        every.extend(["fc"], [GRAD])
        fill(every, range(10, 40))
    data = nbp.open_run(tmp_path / "a.zarr", chunks={}).data
    assert data.grad_norm.chunks == ((1,), (10, 16, 14))
    assert data.load().identical(nbp.open_run(tmp_path / "a.zarr").data.load())


@pytest.mark.slow
def test_the_ranks_of_a_job_are_cut_rank_by_rank(tmp_path: Path) -> None:
    for rank in range(2):
        with written(tmp_path / "job" / f"rank_0000{rank}"):
            pass
    plain = nbp.open_run(tmp_path / "job").data.load()
    for data in looks(tmp_path / "job"):
        assert data.grad_norm.chunks is not None
        assert data.grad_norm.chunks[0] == (1, 1)
        assert data.load().identical(plain)


def test_what_is_no_dict_and_what_is_no_dimension_are_refused(place: Path) -> None:
    for wrong in (10, "auto", [("step", 1)]):
        with pytest.raises(ValueError, match="a dict is expected, of sizes along dimensions"):
            nbp.open_run(place, chunks=wrong)  # type: ignore[arg-type]
    with pytest.raises(UnknownNameError, match=r"no dimension 'stpe'; close: 'step'"):
        nbp.open_run(place).to_xarray(chunks={"stpe": 10})


def test_without_dask_the_extra_is_named(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def none(library: str) -> None:
        raise ImportError(library)

    monkeypatch.setattr("notebook_probe.record.store.destination.import_module", none)
    run = nbp.open_run(place)
    assert run.data.grad_norm.chunks is None
    with pytest.raises(MissingExtraError, match=r"chunks needs dask.*\[analysis\]"):
        run.to_xarray(chunks={})
    with pytest.raises(MissingExtraError, match=r"chunks needs dask.*\[analysis\]"):
        nbp.open_run(place, chunks={})
