"""Chunks of the sizes that the user of a record chose."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zarr

from notebook_probe.errors import RecordWarning
from notebook_probe.record import RecordWriter, Variable, open_record
from tests.record.build import (
    BINS,
    COUNTS,
    GRAD,
    MODULES,
    NEVER_S,
    WEIGHT,
    fill,
    fill_vectors,
)

MEAN, IMAGE = Variable("channel_mean"), Variable("image")


def begun(place: Path, chunks: Any = None, resume: bool | None = None) -> RecordWriter:
    return RecordWriter(
        place, title="a", modules=MODULES, flush_s=NEVER_S, chunks=chunks, resume=resume
    )


def shape(place: Path, array: str) -> tuple[int, ...]:
    found = zarr.open_array(place / array, mode="r")
    return tuple(found.chunks)


def test_every_kind_of_array_is_cut_as_chosen(tmp_path: Path) -> None:
    place = tmp_path / "a.zarr"
    with begun(place, {"step": 7, "module": 2}) as writer:
        numbers = writer.stream("every_1")
        numbers.extend(["conv1", "conv2", "fc"], [GRAD])
        fill(numbers, range(20))
        hist = writer.stream("every_1", axis=BINS)
        hist.extend(["conv1", "conv2", "fc"], [COUNTS])
        fill_vectors(hist, range(20))
        ragged = writer.ragged("every_1")
        ragged.extend([MEAN])
        named = writer.named()
        named.extend(["a/b"])
        images = writer.arrays(IMAGE, "fc", (2, 2))
        for step in range(20):
            ragged.record(step, step, {("channel_mean", "fc"): [step, 2]})
            named.record(step, step, np.full((1, 1), step, np.float32))
            images.record(step, step, np.full((2, 2), step))
    assert shape(place, "scalars/every_1/grad_norm") == (7, 2)
    assert shape(place, "hist/every_1/counts") == (7, 2, 3)
    assert shape(place, "vectors/every_1/channel_mean")[0] == 7
    assert shape(place, "names/logged/value")[0] == 7
    assert shape(place, "blobs/image/fc/image") == (7, 2, 2)
    files = {path.name for path in (place / "scalars/every_1/grad_norm/c").iterdir()}
    assert files == {"0", "1", "2"}
    record = open_record(place)
    assert record.series("conv2", "grad_norm").values.tolist() == [100 + n for n in range(20)]
    assert record.series("fc", "channel_mean").values[:, 0].tolist() == [*range(20)]
    assert record.series("", "a/b").values.tolist() == [*range(20)]
    assert record.series("fc", "image").values[:, 1, 1].tolist() == [*range(20)]
    assert json.loads(record.attrs["chunks"]) == {"step": 7, "module": 2}


@pytest.mark.parametrize(
    ("chunks", "cut"), [(None, (65536, 4)), ({}, (65536, 4)), ({"module": 8}, (32768, 8))]
)
def test_what_is_not_chosen_is_as_ever(tmp_path: Path, chunks: Any, cut: tuple[int, int]) -> None:
    with begun(tmp_path / "a.zarr", chunks) as writer:
        numbers = writer.stream("every_1")
        numbers.extend(["conv1"], [GRAD])
        fill(numbers, range(3))
    assert shape(tmp_path / "a.zarr", "scalars/every_1/grad_norm") == cut


def test_rows_that_are_long_are_fewer_to_a_chunk(tmp_path: Path) -> None:
    with begun(tmp_path / "a.zarr", {"step": 2**20}) as writer:
        images = writer.arrays(IMAGE, "fc", (2048, 1024))
        images.record(0, 0, np.zeros((2048, 1024)))
    assert shape(tmp_path / "a.zarr", "blobs/image/fc/image") == (8, 2048, 1024)


def test_a_record_that_goes_on_keeps_its_chunks_of_new_quantities_too(tmp_path: Path) -> None:
    place = tmp_path / "a.zarr"
    with begun(place, {"step": 5}) as writer:
        writer.stream("every_1").extend(["conv1"], [GRAD])
        fill(writer.stream("every_1"), range(8))
    with begun(place, {"step": 5}) as writer:
        fill(writer.stream("every_1"), range(8, 9))
    said = r"a\.zarr keeps its chunks, \{'step': 5\}; not \{'step': 100\}"
    with pytest.warns(RecordWarning, match=said):
        writer = begun(place, {"step": 100})
    with writer:
        writer.stream("every_1").extend(["conv1"], [WEIGHT])
        writer.stream("every_2").extend(["conv1"], [Variable("other")])
        fill(writer.stream("every_1"), range(9, 12))
        fill(writer.stream("every_2"), range(9, 12))
    for array in ("every_1/grad_norm", "every_1/weight_norm", "every_2/other"):
        assert shape(place, f"scalars/{array}")[0] == 5
    assert open_record(place).series("conv1", "grad_norm").values.tolist() == [*range(12)]


def test_a_record_of_usual_chunks_says_that_it_keeps_them(tmp_path: Path) -> None:
    begun(tmp_path / "a.zarr").close()
    with pytest.warns(RecordWarning, match=r"keeps its chunks, those of no choice; not"):
        begun(tmp_path / "a.zarr", {"step": 100}).close()
    assert "chunks" not in open_record(tmp_path / "a.zarr").attrs


@pytest.mark.parametrize(
    "wrong",
    [
        10,
        "auto",
        {"step": 0},
        {"step": True},
        {"step": 1.5},
        {"steps": 10},
        {"step": 2**21},
        {0: 1},
    ],
)
def test_sizes_that_cannot_be_are_refused_before_anything_is_made(
    tmp_path: Path, wrong: Any
) -> None:
    with pytest.raises(
        ValueError, match=r"chunks=.*; whole numbers by 'step' \(1 to 1048576\) and"
    ):
        begun(tmp_path / "a.zarr", wrong)
    assert not (tmp_path / "a.zarr").exists()


def test_chunks_that_are_too_large_together_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="are 1073741824 values each; at most 16777216"):
        begun(tmp_path / "a.zarr", {"step": 2**20, "module": 2**10})
