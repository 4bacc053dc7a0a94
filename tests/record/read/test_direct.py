"""Chunks that are read on the calling thread are those that zarr reads."""

from __future__ import annotations

import json
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray as xr
import zarr
import zarr.core.sync
from hypothesis import given
from hypothesis import strategies as st
from zarr.codecs import BloscCodec
from zarr.storage import MemoryStore, StorePath

from notebook_probe.errors import RecordFormatError
from notebook_probe.record import open_record
from notebook_probe.record.format import codec
from notebook_probe.record.read import direct
from notebook_probe.record.read.checked_store import CheckedStore
from notebook_probe.record.read.direct import DirectReader
from notebook_probe.record.read.stored_array import StoredArray
from notebook_probe.record.store.plain_files import PlainFiles
from tests.readers.sample_record import begin, finish
from tests.record.build import LAW

SHAPE, CHUNKS = (10, 7), (4, 3)
DTYPES = ("float32", "float64", "int64", "string")
NUMBERS = np.arange(70.0).reshape(SHAPE)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An array of each type, written by zarr, in which two chunks are missing."""
    folder = tmp_path_factory.mktemp("direct")
    for dtype in DTYPES:
        is_text = dtype == "string"
        array = zarr.create_array(
            folder / dtype,
            shape=SHAPE,
            chunks=CHUNKS,
            dtype=str if is_text else dtype,
            fill_value="" if is_text else -1,
            compressors=BloscCodec(cname="zstd", typesize=1 if is_text else 4),
            dimension_names=("row", "column"),
        )
        array[:] = np.char.mod("%g é", NUMBERS) if is_text else NUMBERS
        for number in ("0/0", "1/2"):
            (folder / dtype / "c" / number).unlink()
    return folder


def document(folder: Path, dtype: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / dtype / "zarr.json").read_text("utf-8"))
    return {**found, "storage_transformers": []}


def reader(folder: Path, dtype: str, **changes: Any) -> DirectReader | None:
    at = StorePath(CheckedStore(PlainFiles(folder, read_only=True)), dtype)
    return DirectReader.of(at, SHAPE, CHUNKS, {**document(folder, dtype), **changes})


def keys(length: int) -> st.SearchStrategy[int | slice]:
    ends = st.none() | st.integers(-length - 2, length + 2)
    return st.integers(0, length - 1) | st.builds(slice, ends, ends)


@LAW
@given(
    dtype=st.sampled_from(DTYPES),
    key=st.tuples(keys(SHAPE[0])) | st.tuples(*map(keys, SHAPE)) | keys(SHAPE[0]),
)
def test_each_part_of_an_array_is_read_as_zarr_reads_it(folder: Path, dtype: str, key: Any) -> None:
    expected = np.asarray(zarr.open_array(folder / dtype, mode="r")[key])
    ordinary = reader(folder, dtype)
    assert ordinary is not None
    found = ordinary.read(key)
    assert found is not None
    assert (found.dtype, found.shape) == (expected.dtype, expected.shape)
    assert found.tolist() == expected.tolist()


@LAW
@given(
    dtype=st.sampled_from(DTYPES),
    rows=st.lists(st.integers(0, SHAPE[0] - 1), min_size=1),
    columns=st.lists(st.integers(0, SHAPE[1] - 1), min_size=1),
)
def test_rows_and_columns_in_any_order_are_read_as_zarr_reads_them(
    folder: Path, dtype: str, rows: list[int], columns: list[int]
) -> None:
    store = CheckedStore(PlainFiles(folder, read_only=True))
    array = StoredArray.parse(store, dtype, dtype, document(folder, dtype))
    stored = zarr.open_array(folder / dtype, mode="r")
    for key in ((slice(2, 9), np.array(columns)), (np.array(rows), np.array(columns))):
        expected = np.asarray(stored.oindex[key])
        found = array.outer(*key)
        assert (found.dtype, found.shape) == (expected.dtype, expected.shape)
        assert found.tolist() == expected.tolist()


@pytest.mark.parametrize(
    "key", [slice(None, None, 2), -1, 10, np.array([1]), (0, 0, 0), True, Ellipsis], ids=repr
)
def test_other_keys_are_left_to_zarr(folder: Path, key: Any) -> None:
    ordinary = reader(folder, "int64")
    assert ordinary is not None
    assert ordinary.read(key) is None


@pytest.mark.parametrize(
    "changes",
    [
        {"codecs": [{"name": "bytes", "configuration": {"endian": "big"}}, {"name": "blosc"}]},
        {"codecs": [{"name": "bytes", "configuration": {"endian": "little"}}, {"name": "gzip"}]},
        {"codecs": [{"name": "bytes", "configuration": {"endian": "little"}}]},
        {"codecs": ["bytes", "blosc"]},
        {"codecs": None},
        {"data_type": "uint8"},
        {"data_type": "string"},
        {"fill_value": None},
        {"fill_value": "0x7fc00000"},
        {"fill_value": ""},
        {"chunk_key_encoding": {"name": "v2", "configuration": {"separator": "."}}},
        {"storage_transformers": [{"name": "other"}]},
        {"zarr_format": 2},
    ],
    ids=str,
)
def test_an_array_of_another_kind_is_left_to_zarr(folder: Path, changes: dict[str, Any]) -> None:
    assert reader(folder, "float32", **changes) is None


def test_an_array_of_another_store_is_left_to_zarr(folder: Path) -> None:
    at = StorePath(CheckedStore(MemoryStore()), "float32")
    assert DirectReader.of(at, SHAPE, CHUNKS, document(folder, "float32")) is None


def test_many_chunks_and_many_values_are_left_to_zarr(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ordinary = reader(folder, "int64")
    assert ordinary is not None
    monkeypatch.setattr(direct, "MOST_CHUNKS", 8)
    assert ordinary.read(slice(None)) is None
    assert ordinary.read((slice(0, 8), slice(0, 6))) is not None
    monkeypatch.setattr(direct, "MOST_CELLS", 10)
    assert ordinary.read((slice(0, 4), slice(0, 3))) is None


@pytest.mark.parametrize("fill", ["NaN", "Infinity", "-Infinity", 0, 1.5], ids=str)
def test_a_missing_chunk_is_the_fill_value(folder: Path, fill: float | str) -> None:
    ordinary = reader(folder, "float32", fill_value=fill)
    assert ordinary is not None
    found = ordinary.read((slice(0, 1), slice(0, 1)))
    assert found is not None
    np.testing.assert_array_equal(found, [[float(fill)]])


def test_a_damaged_chunk_is_named_by_the_error(folder: Path) -> None:
    spoiled = document(folder, "float32")
    path = folder / "spoiled" / "c" / "0" / "0"
    path.parent.mkdir(parents=True)
    path.write_bytes(b"no blosc frame at all")
    store = CheckedStore(PlainFiles(folder, read_only=True))
    array = StoredArray.parse(store, "spoiled", "a.zarr/spoiled", spoiled)
    with pytest.raises(RecordFormatError, match=r"cannot read a\.zarr/spoiled/c/0/0: "):
        array[0:1]


def test_a_chunk_that_claims_a_billion_strings_gets_no_room() -> None:
    frame = bytes(codec._text.encode(struct.pack("<I", 1_000_000_000)))
    with pytest.raises(ValueError, match="1000000000 strings; 4 are expected"):
        codec.decoded_text(frame, (4,), 1024)
    with pytest.raises(ValueError, match="1024 are expected"):
        codec.decoded_text(codec.encode_text(["a" * 5000], 4), (4,), 1024)


def all_of(folder: Path) -> list[xr.Dataset]:
    return [node.to_dataset().load() for node in open_record(folder).to_xarray("tree").subtree]


def test_a_closed_record_is_read_without_an_event_loop(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    finish(begin(tmp_path / "a.zarr"))
    with monkeypatch.context() as patch:
        patch.setattr(DirectReader, "of", lambda *_: None)
        expected = all_of(tmp_path / "a.zarr")

    def refuse() -> None:
        raise AssertionError("an event loop is asked for")

    monkeypatch.setattr(zarr.core.sync, "_get_loop", refuse)
    found = all_of(tmp_path / "a.zarr")
    assert all(one.identical(other) for one, other in zip(found, expected, strict=True))


@LAW
@given(n_rows=st.integers(0, 9_000), filled=st.integers(0, 9_000))
def test_the_first_rows_are_those_of_the_whole_chunk(n_rows: int, filled: int) -> None:
    """Compressed by blocks with values, compressed as a whole, and as a chunk that grows."""
    shape = (9_000, 3)
    values = np.random.default_rng(filled).normal(size=(filled, 3)).astype(np.float32)
    whole = np.full(shape, np.nan, np.float32)
    whole[:filled] = values
    frames = [codec.encode_rows(values, shape, np.nan), codec.encode(whole)]
    frames.append(codec.stored_header("float32", shape) + whole.tobytes())
    for frame in frames:
        found = codec.decoded_rows(frame, "float32", shape, n_rows, 2**28)
        np.testing.assert_array_equal(found, whole[:n_rows])
