"""A message and its buffers as few bytes: what the browser's ``js/link/saved/pieces.js`` reads.

The bytes of equal rank of all float32 numbers are stored together, exponents with exponents, which
deflates well.
"""

from __future__ import annotations

import json
import struct
import zlib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["EXACT", "FIVE_DIGITS", "RAW", "coded", "rounded"]

RAW, FIVE_DIGITS, EXACT = 0, 3, 4
"""Bytes that are kept of each float32 of a buffer; 0 for a buffer of anything else."""

Bits = npt.NDArray[np.uint32]


def coded(
    message: Mapping[str, Any], buffers: Sequence[memoryview] = (), kept: Sequence[int] = ()
) -> bytes:
    """Deflated: length of a JSON text, that text, and the bytes of the buffers.

    Parameters
    ----------
    kept : sequence of int
        `RAW`, `FIVE_DIGITS` or `EXACT` for each buffer.
    """
    parts = [_planes(bytes(one), n) for one, n in zip(buffers, kept, strict=True)]
    told = {
        "message": message,
        "buffers": [[len(one), n] for one, n in zip(parts, kept, strict=True)],
    }
    text = json.dumps(told, separators=(",", ":"), allow_nan=False).encode()
    return zlib.compress(b"".join([struct.pack("<I", len(text)), text, *parts]), 6)


def rounded(values: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    """To the 16 bits of mantissa that three bytes hold: five digits.

    Examples
    --------
    >>> rounded(np.array([0.5, 0.1, np.nan], np.float32)).tolist()
    [0.5, 0.10000038146972656, nan]
    """
    bits = values.astype("<f4").view("<u4")
    # Rounding up the largest numbers gives infinity, and some NaN another value: these are cut.
    near = ((bits + np.uint32(0x80)) & np.uint32(0xFFFFFF00)).view("<f4")
    cut = (bits & np.uint32(0xFFFFFF00)).view("<f4")
    found: npt.NDArray[np.float32] = np.where(np.isfinite(values) & np.isfinite(near), near, cut)
    return found


def _planes(content: bytes, kept: int) -> bytes:
    if kept == RAW:
        return content
    values = np.frombuffer(content, "<f4")
    values = rounded(values) if kept == FIVE_DIGITS else values
    columns = values.astype(">f4").view(np.uint8).reshape(-1, 4)[:, :kept]
    return columns.T.tobytes()
