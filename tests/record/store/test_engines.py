"""Other programs read a record while it is written, and when it is closed: the same values."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import tensorstore
import xarray as xr
import zarr

from notebook_probe.record import RecordWriter
from notebook_probe.record.format.chunk_sizes import ChunkSizes
from notebook_probe.record.write.streams.hot_chunks import HotChunks
from tests.record.build import GRAD, new_writer, row
from tests.record.crash import CONTEXT

STREAM = "scalars/every_1"
MODULES = [f"m{i}" for i in range(6)]
Values = npt.NDArray[Any]


def by_tensorstore(folder: Path) -> Values:
    """C++, by the array's own metadata."""
    place = {"driver": "file", "path": str(folder / STREAM / "grad_norm")}
    array = tensorstore.open({"driver": "zarr3", "kvstore": place}, read=True).result()
    return np.asarray(array.read().result())


def by_zarrs(folder: Path) -> Values:
    """Rust, under zarr's own interface."""
    with zarr.config.set({"codec_pipeline.path": "zarrs.ZarrsCodecPipeline"}):
        return np.asarray(zarr.open_array(folder / STREAM / "grad_norm", mode="r")[:])


def by_root(folder: Path) -> Values:
    """Python, by the root's consolidated metadata."""
    return xr.open_zarr(folder, group=STREAM, consolidated=True).grad_norm.to_numpy()


def by_arrays(folder: Path) -> Values:
    """Python, by the metadata of each array, which are renewed one after the other."""
    while True:
        try:
            return xr.open_zarr(folder, group=STREAM, consolidated=False).grad_norm.to_numpy()
        except ValueError as error:
            if "conflicting sizes" not in str(error):
                raise


ENGINES: dict[str, Callable[[Path], Values]] = {
    engine.__name__: engine for engine in (by_tensorstore, by_zarrs, by_root, by_arrays)
}


def read_on(folder: Path, name: str, n_reads: Any, ended: Any, n_rows: Any) -> None:
    """In a process of its own: whatever is there is right, and in the end all of it."""
    while not ended.is_set():
        check(ENGINES[name](folder))
        n_reads.value += 1
    values = ENGINES[name](folder)
    check(values)
    assert len(values) == n_rows.value


def check(values: Values) -> None:
    expected = 100 * np.arange(len(MODULES)) + np.arange(len(values))[:, None]
    assert np.array_equal(values, expected)


@pytest.fixture
def sealing_writer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[RecordWriter]:
    """Of chunks that are full after some flushes: there are tails and sealed ones."""
    monkeypatch.setattr(HotChunks, "sizes", ChunkSizes(2**8, 100))
    with new_writer(tmp_path / "a.zarr") as writer:
        writer.stream("every_1").extend(MODULES, [GRAD])
        record(writer, 10)
        yield writer


def record(writer: RecordWriter, n: int) -> None:
    stream = writer.stream("every_1")
    for step in range(stream.n_rows, stream.n_rows + n):
        assert stream.record(step, 0, row(stream, step))
    assert writer.flush(60)


@pytest.mark.slow
def test_every_engine_reads_right_values_while_rows_are_written_and_when_they_are(
    tmp_path: Path, sealing_writer: RecordWriter
) -> None:
    ended, n_rows = CONTEXT.Event(), CONTEXT.Value("q", 0)
    counts = {name: CONTEXT.Value("q", 0) for name in ENGINES}
    readers = [
        CONTEXT.Process(target=read_on, args=(tmp_path / "a.zarr", name, n, ended, n_rows))
        for name, n in counts.items()
    ]
    for reader in readers:
        reader.start()
    try:
        while (
            any(n.value < 3 for n in counts.values())
            or sealing_writer.published_rows("every_1") < 300
        ):
            assert all(reader.is_alive() for reader in readers)
            record(sealing_writer, 7)
            time.sleep(0.01)  # two cores are shared with the readers
    finally:
        n_rows.value = sealing_writer.published_rows("every_1")
        sealing_writer.close()
        ended.set()
        for reader in readers:
            reader.join(60)
    assert [reader.exitcode for reader in readers] == [0] * len(readers)
