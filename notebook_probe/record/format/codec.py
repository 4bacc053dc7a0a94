"""One chunk as the bytes of its file: little-endian values, or counted UTF-8, in a blosc frame.

A finished frame ends with a mark and the CRC-32C of everything before it::

    header (16 bytes) | starts of blocks | blocks | "crc3" | crc32c (4 bytes, little endian)
           └ cbytes: the length of all of it

A decoder finds each block by its start and ignores what follows the last, so any reader of blosc
decodes the frame, and a reader that knows the mark can verify it. The stored frame of a growing
chunk has no checksum: rows are written into it in place.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from itertools import accumulate
from typing import Any, TypeAlias

import google_crc32c
import numpy as np
import numpy.typing as npt
from numcodecs import Blosc, VLenUTF8

__all__ = [
    "HEADER_BYTES",
    "check_size",
    "check_sum",
    "decode",
    "decoded_rows",
    "decoded_text",
    "encode",
    "encode_rows",
    "encode_text",
    "is_stored",
    "packed",
    "stored_header",
]

Octets: TypeAlias = npt.NDArray[np.uint8]

HEADER_BYTES = 16
"""A blosc frame's header."""
LENGTHS = struct.Struct("<III")
"""Bytes of the values, of a block of them, and of the frame; from `LENGTHS_AT` on."""
LENGTHS_AT = 4
STORED = 0x02
"""Flag, in the header's third byte, of a frame with uncompressed values."""
IN_ONE_PIECE = 0x10
"""Flag of blocks that are not split by the rank of bytes."""
ONE_PIECE = 0x80 | IN_ONE_PIECE
"""The flags of blocks that are compressed by zstd, unshuffled and each in one piece."""
MARK = b"crc3"
TRAILER = struct.Struct("<4sI")

# Level 0 stores the values as they are: a chunk that is written in place stays a valid frame.
_as_they_are = Blosc(cname="zstd", clevel=0, shuffle=Blosc.SHUFFLE, blocksize=0)
# Shuffled, as bytes of equal rank are similar in float32; level 1 is the knee: higher levels take
# 2 to 10 times as long for a few per cent.
_numbers = Blosc(cname="zstd", clevel=1, shuffle=Blosc.SHUFFLE, blocksize=0)
_text = Blosc(cname="zstd", clevel=1, shuffle=Blosc.NOSHUFFLE, blocksize=0)
_strings = VLenUTF8()


def encode(chunk: npt.NDArray[Any]) -> bytes:
    """Encode a whole chunk of numbers, in C order."""
    little = chunk.dtype.newbyteorder("<")
    return _finished(_numbers.encode(np.ascontiguousarray(chunk, dtype=little)))


def encode_rows(rows: npt.NDArray[Any], shape: tuple[int, ...], fill: float) -> bytes:
    """Encode a chunk of this shape of which these are the first rows; the others are ``fill``."""
    little = rows.dtype.newbyteorder("<")
    values = np.ascontiguousarray(rows, dtype=little)
    return _finished(_compressed(values, shape, fill))


def decode(frame: bytes, dtype: str, shape: tuple[int, ...]) -> npt.NDArray[Any]:
    """Decode a ``frame`` made by `encode` to a writable array.

    Raises
    ------
    ValueError
        The content was damaged.
    """
    little = np.dtype(dtype).newbyteorder("<")
    check_size(frame, little.itemsize * math.prod(shape))
    check_sum(frame)
    # A bytearray: an array over bytes would be read-only.
    return np.frombuffer(bytearray(_numbers.decode(frame)), little).reshape(shape)


def decoded_rows(
    frame: bytes, dtype: str, shape: tuple[int, ...], n_rows: int, most: int
) -> npt.NDArray[Any]:
    """Decode the first rows of a chunk of this shape, and no block behind them.

    Raises
    ------
    ValueError
        The content was damaged, or is more than ``most`` bytes.
    """
    little, row = np.dtype(dtype).newbyteorder("<"), math.prod(shape[1:])
    n_bytes = little.itemsize * row * shape[0]
    check_size(frame, min(n_bytes, most))
    check_sum(frame)
    whole = _FrameBlocks.of(frame)
    n_blocks = max(1, -(-n_rows * row * little.itemsize // whole.block_bytes))
    is_usual = whole.are_apart and LENGTHS.unpack_from(frame, LENGTHS_AT)[0] == n_bytes
    if is_usual and n_blocks < len(whole.blocks):
        frame = _joined(whole, n_blocks * whole.block_bytes, whole.blocks[:n_blocks])
        values = np.frombuffer(_numbers.decode(frame), little)
    else:
        values = np.frombuffer(_numbers.decode(frame), little, shape[0] * row)
    return values[: n_rows * row].reshape(n_rows, *shape[1:])


def decoded_text(frame: bytes, shape: tuple[int, ...], most: int) -> npt.NDArray[Any]:
    """Decode a ``frame`` made by `encode_text` to an array of strings.

    Raises
    ------
    ValueError
        The content was damaged, or is more than ``most`` bytes.
    """
    check_size(frame, most)
    check_sum(frame)
    items = _text.decode(frame)
    count, expected = int.from_bytes(items[:4], "little"), math.prod(shape)
    if count != expected:  # room is made for as many
        raise ValueError(f"it has {count} strings; {expected} are expected")
    return np.asarray(_strings.decode(items)).reshape(shape)


def check_size(frame: bytes | memoryview, most: int) -> None:
    """Raise ValueError for an invalid frame, or one that decodes to more than ``most`` bytes.

    Called first, because decoding allocates as much memory as the frame says.
    """
    if len(frame) < HEADER_BYTES:
        raise ValueError(f"{len(frame)} bytes are no blosc frame")
    n_bytes, _, n_here = struct.unpack_from("<III", frame, 4)
    if n_bytes > most or n_here > len(frame):
        raise ValueError(
            f"a blosc frame of {n_bytes} bytes, {n_here} of them compressed, where {len(frame)} "
            f"lie and {most} are expected"
        )


def check_sum(frame: bytes | Octets) -> None:
    """Raise ValueError for a frame that is cut short, or whose checksum is another."""
    # A view, not a copy: chunks may be large.
    octets = np.frombuffer(frame, np.uint8)
    told = int.from_bytes(octets[12:HEADER_BYTES].tobytes(), "little")
    if told != len(octets):
        raise ValueError(f"it has {len(octets)} bytes, but its header says {told}")
    if len(octets) < HEADER_BYTES + TRAILER.size or is_stored(octets):
        return
    mark, checksum = TRAILER.unpack(octets[-TRAILER.size :].tobytes())
    if mark == MARK and google_crc32c.value(octets[:-4]) != checksum:
        raise ValueError("its bytes are not those that were written: the checksum is another")


def _finished(frame: Any) -> bytes:
    """Return the frame with its checksum, in a header that counts it."""
    octets = np.frombuffer(frame, np.uint8)
    head, blocks = bytearray(octets[:HEADER_BYTES]), octets[HEADER_BYTES:]
    lengths = b""
    if is_stored(octets):
        # No compression makes it smaller, and behind values that are stored a decoder allows for
        # nothing. One block that is as long as its values is copied in the same way.
        head[2], head[8:12] = ONE_PIECE, head[4:8]
        lengths = struct.pack("<II", HEADER_BYTES + 4, len(blocks))
    # The length in the header includes the trailer, which decoders ignore behind the blocks.
    head[12:] = struct.pack("<I", HEADER_BYTES + len(lengths) + len(blocks) + TRAILER.size)
    parts: list[Any] = [bytes(head) + lengths, blocks, MARK]
    checksum = 0
    for part in parts:
        checksum = google_crc32c.extend(checksum, part)
    return b"".join([*parts, struct.pack("<I", checksum)])


@cache
def stored_header(dtype: str, shape: tuple[int, ...]) -> bytes:
    """Return the header that makes a chunk's raw little-endian values a frame."""
    return bytes(_as_they_are.encode(np.zeros(shape, dtype))[:HEADER_BYTES])


def is_stored(frame: bytes | Octets) -> bool:
    """Return whether the values of a frame, given at least its header, are uncompressed."""
    return bool(frame[2] & STORED)


def packed(frame: bytes) -> bytes:
    """Return the same chunk of numbers, with its values compressed."""
    if not is_stored(frame):
        return frame
    return encode(np.frombuffer(_numbers.decode(frame), f"u{frame[3]}"))


def encode_text(texts: Sequence[str], length: int) -> bytes:
    """Encode ``length`` strings, missing ones empty: a count, then each with its length."""
    # Lone surrogates (undecodable file names in error texts) are no UTF-8: they are spelled out.
    encoded = [text.encode(errors="backslashreplace") for text in texts]
    missing = bytes(4 * (length - len(texts)))  # an empty one is its length alone
    items = b"".join(struct.pack("<I", len(item)) + item for item in encoded) + missing
    return _finished(_text.encode(struct.pack("<I", length) + items))


# The last chunk of an array has few rows in a short run: all but its first blocks are blank, and
# alike in every array. Compressing them again took a third of the time of closing a large record.


@dataclass(frozen=True, slots=True)
class _FrameBlocks:
    """The compressed blocks of a frame, in order, and what is equal for all of them."""

    kind: bytes
    """Versions, flags and item size."""
    block_bytes: int
    """Bytes of the values in a block."""
    blocks: tuple[bytes, ...]

    @property
    def are_apart(self) -> bool:
        """True if each block is compressed, and in one piece: its own length comes first."""
        return self.kind[2] & (STORED | IN_ONE_PIECE) == IN_ONE_PIECE

    @classmethod
    def of(cls, frame: bytes) -> _FrameBlocks:
        n_bytes, block_bytes, _ = LENGTHS.unpack_from(frame, LENGTHS_AT)
        kind = frame[:LENGTHS_AT]
        whole = cls(kind, block_bytes, ())
        if not whole.are_apart:
            return whole
        starts = np.frombuffer(frame, "<u4", -(-n_bytes // block_bytes), HEADER_BYTES).tolist()
        ends = [start + 4 + int.from_bytes(frame[start : start + 4], "little") for start in starts]
        blocks = tuple(frame[start:end] for start, end in zip(starts, ends, strict=True))
        return cls(kind, block_bytes, blocks)


def _compressed(values: npt.NDArray[Any], shape: tuple[int, ...], fill: float) -> bytes:
    """Return the frame of a chunk of this shape with these first values, all others ``fill``.

    It is the frame of the whole chunk, byte by byte; only blocks with values are compressed.
    """
    blank, n = _blank(values.dtype.str, shape, fill), math.prod(shape)
    n_filled = -(-values.nbytes // blank.block_bytes)
    if blank.are_apart and n_filled < len(blank.blocks):
        some = _padded(values, n_filled * blank.block_bytes // values.itemsize, fill)
        apart = Blosc(_numbers.cname, _numbers.clevel, _numbers.shuffle, blank.block_bytes)
        filled = _FrameBlocks.of(bytes(apart.encode(some)))
        if (filled.kind, filled.block_bytes) == (blank.kind, blank.block_bytes):
            return _joined(blank, n * values.itemsize, filled.blocks + blank.blocks[n_filled:])
    return bytes(_numbers.encode(_padded(values, n, fill)))  # full, small or incompressible


def _padded(values: npt.NDArray[Any], n: int, fill: float) -> npt.NDArray[Any]:
    padded = np.full(n, fill, values.dtype)
    padded[: values.size] = values.reshape(-1)
    return padded


@cache
def _blank(dtype: str, shape: tuple[int, ...], fill: float) -> _FrameBlocks:
    """Return the blocks of a chunk in which nothing was written."""
    return _FrameBlocks.of(bytes(_numbers.encode(np.full(shape, fill, dtype))))


def _joined(like: _FrameBlocks, n_bytes: int, blocks: tuple[bytes, ...]) -> bytes:
    begin = HEADER_BYTES + 4 * len(blocks)
    *starts, end = accumulate(map(len, blocks), initial=begin)
    header = like.kind + LENGTHS.pack(n_bytes, like.block_bytes, end)
    return b"".join([header, struct.pack(f"<{len(starts)}I", *starts), *blocks])
