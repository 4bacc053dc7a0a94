"""One chunk as the bytes of its file: little-endian values, or counted UTF-8, in a blosc frame."""

from __future__ import annotations

import math
import struct
from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt
from numcodecs import Blosc

__all__ = [
    "HEADER_BYTES",
    "check_frame",
    "decode",
    "encode",
    "encode_text",
    "is_stored",
    "packed",
    "stored_header",
]

HEADER_BYTES = 16
"""A blosc frame's header."""
STORED = 2
"""The flag, in the header's third byte, of a frame whose values follow as they are."""

_as_they_are = Blosc(cname="zstd", clevel=0, shuffle=Blosc.SHUFFLE, blocksize=0)
_numbers = Blosc(cname="zstd", clevel=1, shuffle=Blosc.SHUFFLE, blocksize=0)
_text = Blosc(cname="zstd", clevel=1, shuffle=Blosc.NOSHUFFLE, blocksize=0)


def encode(chunk: npt.NDArray[Any]) -> bytes:
    """A whole chunk of numbers, in C order."""
    little = chunk.dtype.newbyteorder("<")
    return bytes(_numbers.encode(np.ascontiguousarray(chunk, dtype=little)))


def decode(frame: bytes, dtype: str, shape: tuple[int, ...]) -> npt.NDArray[Any]:
    """The chunk that `encode` made into ``frame``; writable."""
    little = np.dtype(dtype).newbyteorder("<")
    check_frame(frame, little.itemsize * math.prod(shape))
    return np.frombuffer(bytearray(_numbers.decode(frame)), little).reshape(shape)


def check_frame(frame: bytes | memoryview, most: int) -> None:
    """Raise ValueError for what is no frame, or one of more than ``most`` bytes when decoded.

    Asked before, because decoding begins by making as much room as the frame says.
    """
    if len(frame) < HEADER_BYTES:
        raise ValueError(f"{len(frame)} bytes are no blosc frame")
    n_bytes, _, n_here = struct.unpack_from("<III", frame, 4)
    if n_bytes > most or n_here > len(frame):
        raise ValueError(
            f"a blosc frame of {n_bytes} bytes, {n_here} of them compressed, where {len(frame)} "
            f"lie and {most} are expected"
        )


@cache
def stored_header(dtype: str, shape: tuple[int, ...]) -> bytes:
    """What precedes the raw little-endian values of a chunk to make them a frame."""
    return bytes(_as_they_are.encode(np.zeros(shape, dtype))[:HEADER_BYTES])


def is_stored(frame: bytes) -> bool:
    """Whether the values of a frame, of which at least the header is given, are not compressed."""
    return bool(frame[2] & STORED)


def packed(frame: bytes) -> bytes:
    """The same chunk of numbers, its values compressed when they were not."""
    if not is_stored(frame):
        return frame
    return encode(np.frombuffer(_numbers.decode(frame), f"u{frame[3]}"))


def encode_text(texts: Sequence[str], length: int) -> bytes:
    """A chunk of ``length`` strings, the missing ones empty: a count, then each with its length."""
    # Lone surrogates (undecodable file names in error texts) are no UTF-8: they are spelled out.
    encoded = [text.encode(errors="backslashreplace") for text in texts] + [b""] * (
        length - len(texts)
    )
    items = b"".join(struct.pack("<I", len(item)) + item for item in encoded)
    return bytes(_text.encode(struct.pack("<I", length) + items))
