"""Bins of TensorBoard's histograms, in both of the forms in which it stores them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np

from notebook_probe.old_runs.formats.protobuf import BYTES, double, fields

__all__ = ["proto_bins", "tensor_bins"]

Bins: TypeAlias = "tuple[tuple[Sequence[float], Sequence[float]], Sequence[float]]"
"""Left and right edges, and counts; empty if damaged."""

MIN, MAX, LIMITS, COUNTS = 1, 2, 6, 7
"""Fields of a `HistogramProto`."""
FLOAT32, FLOAT64 = 1, 2
"""Numbers of the dtypes of tensors."""


def proto_bins(message: bytes) -> Bins:
    """Return the bins of a `HistogramProto`; the outer ones end at the extremes of the values."""
    low, high = 0.0, 0.0
    limits: list[float] = []
    counts: list[float] = []
    for number, kind, value in fields(message):
        if number == MIN:
            low = double(value)
        elif number == MAX:
            high = double(value)
        elif number in (LIMITS, COUNTS):
            numbers = limits if number == LIMITS else counts
            packed = kind == BYTES and isinstance(value, bytes)
            numbers += _doubles(value) if packed and isinstance(value, bytes) else [double(value)]
    if not limits or len(limits) != len(counts):
        return ((), ()), ()
    # The first bin starts, and the last one ends, at the end of the floats.
    right = [min(max(limit, low), high) for limit in limits]
    return ([low, *right[:-1]], right), counts


def tensor_bins(tensor: bytes) -> Bins:
    """Return the bins of a tensor with rows of left edge, right edge and count."""
    dtype, content = 0, b""
    for number, _, value in fields(tensor):
        if number == 1 and isinstance(value, int):
            dtype = value
        elif number == 4 and isinstance(value, bytes):
            content = value
        elif number in (5, 6) and isinstance(value, bytes):
            content += value  # packed values, or one of several
    form = {FLOAT32: "<f4", FLOAT64: "<f8"}.get(dtype)
    if form is None or not content or len(content) % (3 * np.dtype(form).itemsize):
        return ((), ()), ()
    left, right, counts = np.frombuffer(content, form).reshape(-1, 3).T.tolist()
    return (left, right), counts


def _doubles(packed: bytes) -> list[float]:
    if len(packed) % 8:
        raise ValueError(f"{len(packed)} bytes of float64 numbers")
    found: list[float] = np.frombuffer(packed, "<f8").tolist()
    return found
