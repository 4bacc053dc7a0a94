"""Cells that were not measured, and cells measured as NaN: both NaN, with different bits.

Zarr's fill value ``"NaN"`` is one bit pattern, the canonical quiet NaN. A cell that still has
exactly these bits was never measured; a quantity whose result is NaN is stored with another
pattern. Every reader sees NaN in both; only `measured` looks closer.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from notebook_probe.record.format.source import Floats

__all__ = ["MEASURED_NAN", "NOT_MEASURED", "as_measured", "measured"]

NOT_MEASURED_BITS = np.uint32(0x7FC00000)
"""The fill value of every float array; also the bits of ``numpy.nan`` as float32."""

NOT_MEASURED = NOT_MEASURED_BITS.view(np.float32)
MEASURED_NAN = np.uint32(0x7FC00001).view(np.float32)
"""Stored value of a measurement whose result is NaN."""


def as_measured(values: npt.ArrayLike) -> Floats:
    """Return float32 measurements, in which NaN differs from cells that were never written.

    Examples
    --------
    >>> measured(as_measured([1.0, np.nan, 1e300])).tolist()
    [True, True, True]
    """
    with np.errstate(over="ignore"):  # beyond float32 is infinite
        # A copy, as the bits of NaN are changed in place.
        floats = np.array(values, np.float32)
    floats[np.isnan(floats)] = MEASURED_NAN
    return floats


def measured(values: Floats) -> npt.NDArray[np.bool_]:
    """Return the mask of the cells with a measurement, whatever its value; same shape.

    Examples
    --------
    >>> measured(np.array([1.0, np.nan, MEASURED_NAN, np.inf], np.float32)).tolist()
    [True, False, True, True]
    """
    return np.ascontiguousarray(values).view(np.uint32) != NOT_MEASURED_BITS
