"""The number in a tensor of one element, as TensorFlow stores it."""

from __future__ import annotations

import struct
from collections.abc import Mapping

from notebook_probe.old_runs.formats.protobuf import VARINT, fields, signed

__all__ = ["scalar_of"]

CONTENT = 4
PACKED: Mapping[int, tuple[int, str]] = {1: (5, "<f"), 2: (6, "<d")}
"""Field of the values and their form, by dtype: float32, float64."""
WHOLE: Mapping[int, tuple[int, str]] = {3: (7, "<i"), 9: (10, "<q"), 10: (11, "<?")}
"""The same of int32, int64, bool, whose values are varints."""


def scalar_of(tensor: bytes) -> float | None:
    """Return the value of a tensor with one element; None for any other.

    Examples
    --------
    >>> scalar_of(bytes([0x08, 1, 0x2A, 4]) + struct.pack("<f", 0.5))
    0.5
    """
    dtype, found = 0, {}
    for number, kind, value in fields(tensor):
        if number == 1 and isinstance(value, int):
            dtype = value
        elif number == 2 and isinstance(value, bytes) and _n_elements(value) != 1:
            return None
        else:
            found[number] = kind, value
    field, form = {**PACKED, **WHOLE}.get(dtype, (0, ""))
    _, content = found.get(CONTENT, (0, b""))
    if isinstance(content, bytes) and content:
        return _unpacked(form, content)
    kind, value = found.get(field, (0, b""))
    if isinstance(value, bytes) and dtype in PACKED:
        return _unpacked(form, value)
    if dtype not in WHOLE:
        return None
    if kind == VARINT:
        return float(signed(value))
    return float(signed(_first_varint(value))) if isinstance(value, bytes) and value else None


def _n_elements(shape: bytes) -> int:
    n = 1
    for number, _, dim in fields(shape):
        if number == 2 and isinstance(dim, bytes):
            sizes = [signed(size) for field, _, size in fields(dim) if field == 1]
            n *= sizes[0] if sizes else 0
    return n


def _unpacked(form: str, content: bytes) -> float | None:
    if not form or struct.calcsize(form) != len(content):
        return None
    return float(struct.unpack(form, content)[0])


def _first_varint(packed: bytes) -> int:
    # Read as a separate field: number 1, kind varint.
    return next(value for _, _, value in fields(b"\x08" + packed) if isinstance(value, int))
