"""Rounding of the mantissa: how far off it may be, and what it must not touch."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import xarray as xr
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from notebook_probe.record import RecordWriter, Variable, open_record
from notebook_probe.record.format.missing import MEASURED_NAN, NOT_MEASURED
from notebook_probe.record.format.rounding import rounded
from notebook_probe.record.format.source import Floats
from tests.record.build import LAW

patterns = arrays.arrays(np.uint32, 40, elements=st.integers(0, 2**32 - 1))


@given(patterns, st.integers(1, 22))
@LAW
def test_every_number_is_within_the_bound_and_nothing_else_is_touched(
    bits: np.ndarray, keep_bits: int
) -> None:
    values = bits.view(np.float32)
    found = rounded(values, keep_bits)
    special = ~np.isfinite(values) | (values == 0)
    assert np.array_equal(found.view(np.uint32)[special], bits[special])
    exact, near = values[~special].astype(float), found[~special].astype(float)
    largest = float(np.finfo(np.float32).max)
    bound = np.abs(exact) * np.where(
        np.abs(exact) > largest * (1 - 2.0**-keep_bits), 2.0**-keep_bits, 2.0 ** -(keep_bits + 1)
    )
    smallest = float(np.finfo(np.float32).tiny) * 2.0 ** -(keep_bits + 1)
    assert (np.abs(near - exact) <= np.maximum(bound, smallest)).all()
    assert np.isfinite(near).all()
    assert not (found.view(np.uint32)[~special] & np.uint32((1 << (23 - keep_bits)) - 1)).any()
    assert np.array_equal(rounded(found, keep_bits).view(np.uint32), found.view(np.uint32))
    order = np.argsort(exact)
    assert (np.diff(near[order]) >= 0).all()


def test_ties_go_to_even_as_numpy_rounds_to_half_precision() -> None:
    values = np.random.default_rng(0).normal(size=10_000).astype(np.float32)
    values[:100] = 1 + np.arange(100, dtype=np.float32) / 2048  # many of them halfway
    assert np.array_equal(rounded(values, 10), values.astype(np.float16).astype(np.float32))


def norm(n_rows: int) -> Floats:
    values = np.random.default_rng(0).lognormal(size=(n_rows, 2, 3)).astype(np.float32)
    values[5, :, 0], values[6, :, 1], values[7, :, 2] = MEASURED_NAN, NOT_MEASURED, np.inf
    return values


def test_a_rounded_quantity_says_so_and_takes_less_room(tmp_path: Path) -> None:
    values = norm(5000)
    for start, stop, keep_bits in ((0, 3000, {"rough": 7}), (3000, 5000, {})):
        with RecordWriter(
            tmp_path / "a.zarr", title="a", modules=[], keep_bits=keep_bits
        ) as writer:
            stream = writer.stream("every_1")
            stream.extend(["a", "b", "c"], [Variable("rough"), Variable("fine")])
            for step in range(start, stop):
                stream.record(step, 0, values[step])
            assert writer.source.data.rough.attrs["keep_bits"] == 7
    expected = rounded(values[:, 0], 7)
    data = xr.open_zarr(tmp_path / "a.zarr", group="scalars/every_1", chunks=None)
    assert np.array_equal(data.rough.values.view(np.uint32), expected.view(np.uint32))
    assert np.array_equal(data.fine.values.view(np.uint32), values[:, 1].view(np.uint32))
    assert (data.rough.attrs["keep_bits"], "keep_bits" in data.fine.attrs) == (7, False)
    level = xr.open_zarr(tmp_path / "a.zarr", group="pyramid/every_1/by64", chunks=None)
    for block in (1, 70):
        rows = expected[64 * block : 64 * (block + 1)]
        assert np.array_equal(level.rough_min[block], rows.min(axis=0))
        assert np.array_equal(level.rough_max[block], rows.max(axis=0))
    record = open_record(tmp_path / "a.zarr")
    assert record.data.rough.attrs["keep_bits"] == 7
    folder = tmp_path / "a.zarr" / "scalars" / "every_1"
    rough, fine = (
        sum(path.stat().st_size for path in (folder / name / "c").rglob("*"))
        for name in ("rough", "fine")
    )
    assert rough < 0.6 * fine


@pytest.mark.parametrize("kept", [0, 23, -1, 1.5, True])
def test_bits_that_cannot_be_kept_are_refused(tmp_path: Path, kept: int) -> None:
    with pytest.raises(ValueError, match=r"keep_bits of 'q' is .*; 1 to 22 of float32's 23 bits"):
        RecordWriter(tmp_path / "a.zarr", title="a", modules=[], keep_bits={"q": kept})
    assert not (tmp_path / "a.zarr").exists()
