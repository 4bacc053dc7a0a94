"""Fields of protocol buffers, without their schemas: two formats need a handful of them."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import TypeAlias

__all__ = ["BYTES", "FIXED32", "FIXED64", "VARINT", "Field", "double", "fields", "signed", "text"]

VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5
LONGEST_VARINT = 10

Field: TypeAlias = "tuple[int, int, int | bytes]"
"""Number, kind, and value: an int of a varint, else the bytes."""


def fields(message: bytes) -> Iterator[Field]:
    """Yield the fields of a message in order.

    Raises
    ------
    ValueError
        It is damaged.

    Examples
    --------
    >>> [*fields(bytes([0x08, 0x96, 0x01, 0x12, 0x02, 0x68, 0x69]))]
    [(1, 0, 150), (2, 2, b'hi')]
    """
    at, end = 0, len(message)
    while at < end:
        tag, at = _varint(message, at)
        kind = tag & 7
        if kind == VARINT:
            value, at = _varint(message, at)
            yield tag >> 3, kind, value
            continue
        if kind == BYTES:
            size, at = _varint(message, at)
        elif kind in (FIXED32, FIXED64):
            size = 4 if kind == FIXED32 else 8
        else:
            raise ValueError(f"field {tag >> 3} of the unknown kind {kind}")
        if size > end - at:
            raise ValueError(f"field {tag >> 3} of {size} bytes, of which {end - at} are there")
        yield tag >> 3, kind, message[at : at + size]
        at += size


def _varint(message: bytes, at: int) -> tuple[int, int]:
    value = 0
    for place in range(LONGEST_VARINT):
        if at + place >= len(message):
            raise ValueError("a number is cut off")
        byte = message[at + place]
        value |= (byte & 0x7F) << (7 * place)
        if byte < 0x80:
            return value & (2**64 - 1), at + place + 1
    raise ValueError(f"a number has more than {LONGEST_VARINT} bytes")


def signed(value: int | bytes) -> int:
    """Return a varint as a signed number of 64 bits."""
    if isinstance(value, bytes):
        raise ValueError("a number is expected, not bytes")
    return value - 2**64 if value >= 2**63 else value


def double(value: int | bytes) -> float:
    """Return eight bytes as a float64."""
    if isinstance(value, int):
        raise ValueError("eight bytes are expected, not a number")
    try:
        found: float = struct.unpack("<d", value)[0]
    except struct.error as error:
        raise ValueError(str(error)) from error
    return found


def text(value: int | bytes) -> str:
    """Return bytes as text."""
    return value.decode(errors="replace") if isinstance(value, bytes) else ""
