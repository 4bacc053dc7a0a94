"""A chunk that is mostly blank is compressed as the whole of it is, byte by byte."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numcodecs import Blosc

from notebook_probe.record.format import codec
from notebook_probe.record.format.chunks import FILL
from notebook_probe.record.format.codec import decode, encode, encode_rows

SHAPES = {"float32": (4096, 16), "float64": (20_000,), "int64": (5_000, 3)}
"""Several blocks each, of which the last is not full for the second and the third."""


def whole(rows: npt.NDArray[np.generic], shape: tuple[int, ...]) -> npt.NDArray[np.generic]:
    chunk = np.full(shape, FILL[rows.dtype.name], rows.dtype)
    chunk[: len(rows)] = rows
    return chunk


def some_rows(dtype: str, stop: int, kind: str) -> npt.NDArray[np.generic]:
    rng = np.random.default_rng(stop)
    shape = (stop, *SHAPES[dtype][1:])
    if kind == "alike":
        return np.full(shape, 3, dtype)
    if kind == "noise":  # no compression makes it smaller
        return rng.integers(0, 2**62, shape).astype(dtype)
    return np.cumsum(rng.integers(-3, 4, shape), axis=0).astype(dtype)


@given(
    dtype=st.sampled_from(sorted(SHAPES)),
    share=st.floats(0, 1),
    kind=st.sampled_from(["alike", "noise", "walk"]),
)
def test_it_is_the_frame_of_the_whole_chunk(dtype: str, share: float, kind: str) -> None:
    shape = SHAPES[dtype]
    rows = some_rows(dtype, round(share * shape[0]), kind)
    frame = encode_rows(rows, shape, FILL[dtype])
    assert frame == encode(whole(rows, shape))
    np.testing.assert_array_equal(decode(frame, dtype, shape), whole(rows, shape))


@pytest.mark.parametrize("dtype", SHAPES)
def test_any_decoder_of_blosc_reads_it(dtype: str) -> None:
    rows = some_rows(dtype, 7, "walk")
    read = np.frombuffer(Blosc().decode(encode_rows(rows, SHAPES[dtype], FILL[dtype])), dtype)
    np.testing.assert_array_equal(read.reshape(SHAPES[dtype]), whole(rows, SHAPES[dtype]))


def test_only_blocks_with_rows_are_compressed(monkeypatch: pytest.MonkeyPatch) -> None:
    n_bytes = []

    class Counted(Blosc):
        def encode(self, buf: npt.NDArray[np.generic]) -> bytes:
            n_bytes.append(buf.nbytes)
            return bytes(super().encode(buf))

    rows, shape = some_rows("float32", 3, "walk"), SHAPES["float32"]
    encode_rows(rows, shape, FILL["float32"])  # from now on the blank chunk is known
    monkeypatch.setattr(codec, "Blosc", Counted)
    encode_rows(rows, shape, FILL["float32"])
    assert len(n_bytes) == 1
    assert n_bytes[0] < np.prod(shape) * 4 / 4
