"""Fewer bits of the mantissa, for quantities that were recorded with a wish for small files."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from notebook_probe.record.format.source import Floats

__all__ = ["check_keep_bits", "read_keep_bits", "rounded"]

MANTISSA_BITS = 23
_EXPONENT = np.uint32(0x7F800000)


def rounded(values: Floats, keep_bits: int | None) -> Floats:
    """Round each value to ``keep_bits`` bits of mantissa, ties to even.

    The relative error is at most ``2 ** -(keep_bits + 1)``; for subnormal numbers the absolute
    error is that of the smallest normal number. NaN with any bits, infinity and zero are not
    changed, the order is kept, and rounding twice changes nothing; a value above the greatest
    representable one becomes that one. None keeps all bits.

    Parameters
    ----------
    values : float32 array
    keep_bits : int or None
        1 to 22.

    Examples
    --------
    >>> rounded(np.array([1.1, -1000.5, np.inf], np.float32), 3).tolist()
    [1.125, -1024.0, inf]
    """
    if keep_bits is None:
        return values
    dropped = MANTISSA_BITS - keep_bits
    bits = np.ascontiguousarray(values).view(np.uint32)
    mask = ~np.uint32((1 << dropped) - 1)
    half = np.uint32((1 << (dropped - 1)) - 1)
    # Half of the dropped part, plus the last kept bit where it is odd: ties go to even.
    up = (bits + half + ((bits >> np.uint32(dropped)) & np.uint32(1))) & mask
    finite = (bits & _EXPONENT) != _EXPONENT
    # Rounding up the largest numbers would give infinity, which was never measured.
    overflows = (up & _EXPONENT) == _EXPONENT
    nearest = np.where(overflows, bits & mask, up)
    # NaN keeps its bits, which tell whether a cell was measured.
    return np.where(finite, nearest, bits).view(np.float32)


def read_keep_bits(text: str) -> int | None:
    """Return the bits from an array's attribute; None if it is invalid."""
    n_bits = int(text) if text.isdecimal() and len(text) < 3 else 0
    return n_bits if 1 <= n_bits < MANTISSA_BITS else None


def check_keep_bits(keep_bits: Mapping[str, int]) -> None:
    """Raise ValueError if a number of bits cannot be kept of a quantity."""
    if not isinstance(keep_bits, Mapping):
        raise ValueError(
            f"keep_bits={keep_bits!r}; bits by the name of a quantity, such as {{'grad_norm': 10}}"
        )
    for quantity, n_bits in keep_bits.items():
        if type(n_bits) is not int or not 1 <= n_bits < MANTISSA_BITS:
            raise ValueError(
                f"keep_bits of {quantity!r} is {n_bits!r}; 1 to {MANTISSA_BITS - 1} of float32's "
                f"{MANTISSA_BITS} bits of mantissa"
            )
