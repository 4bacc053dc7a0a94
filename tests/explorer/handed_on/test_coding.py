"""Numbers in few bytes: which digits stay."""

from __future__ import annotations

import json
import zlib

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from notebook_probe.explorer.handed_on.coding import EXACT, FIVE_DIGITS, RAW, coded, rounded
from tests.explorer.handed_on.unpacked import Frame, frame

FLOATS = arrays.arrays(np.float32, st.integers(0, 40), elements=st.floats(width=32))


@given(FLOATS)
def test_what_is_exact_comes_back_bit_for_bit(values: np.ndarray) -> None:
    found = decoded(coded({"k": 1}, [memoryview(values.tobytes())], [EXACT]))
    assert found.message == {"k": 1}
    assert found.buffers[0] == values.tobytes()


@pytest.mark.slow
@given(FLOATS)
def test_five_digits_are_kept_of_the_others(values: np.ndarray) -> None:
    found = decoded(coded({}, [memoryview(values.tobytes())], [FIVE_DIGITS])).floats(0)
    assert np.array_equal(found, rounded(values), equal_nan=True)
    normal = np.isfinite(values) & (np.abs(values) > 1e-30)
    error = np.abs(found[normal].astype(np.float64) - values[normal].astype(np.float64))
    assert (error <= np.abs(values[normal].astype(np.float64)) * 2**-16).all()
    kept = ~np.isfinite(values)
    assert np.array_equal(found[kept], values[kept], equal_nan=True)


def test_bytes_stay_as_they_are_and_buffers_stay_apart() -> None:
    states, values = bytes([0, 1, 2]), np.array([1.5, np.nan], np.float32)
    content = coded({}, [memoryview(states), memoryview(values.tobytes())], [RAW, EXACT])
    assert decoded(content).buffers == [states, values.tobytes()]


def test_json_has_no_nan() -> None:
    with pytest.raises(ValueError, match="JSON"):
        coded({"low": float("nan")})
    assert json.dumps(decoded(coded({"low": None})).message) == '{"low": null}'


def decoded(content: bytes) -> Frame:
    return frame(zlib.decompress(content))
