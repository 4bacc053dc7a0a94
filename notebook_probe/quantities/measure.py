"""Measuring a tensor, once, for every quantity that needs something of it.

On a CPU the elements pass in chunks that stay in cache between two reads: BLAS dots in float32,
totals in float64.
"""

from __future__ import annotations

import math
from functools import cache

import numpy as np
import torch
from torch import Tensor

from notebook_probe.quantities.arrays import Floats, dense
from notebook_probe.quantities.stat import Stat

__all__ = ["measure", "measure_difference"]

CHUNK = 1 << 16
"""Elements of one float32 dot: few enough for its rounding not to show in float32."""


SMALLEST = 1e-24
"""A smaller sum of squares may have lost some of them to float32's range."""


def measure(tensor: Tensor, parts: frozenset[str]) -> Stat:
    """Measure ``parts`` (of sumsq, moments, zeros, nonfinite) of a tensor, in float32 or wider.

    Parameters
    ----------
    tensor : Tensor, any shape and dtype
        Integers and bools are cast, complex numbers count by their modulus, sparse ones densely.

    Returns
    -------
    Stat
        NaN and infinities propagate into ``sumsq``, ``mean`` and ``spread``; where squares leave
        the range of float32 the values are measured again in float64.

    Examples
    --------
    >>> stat = measure(torch.tensor([3.0, 4.0, 0.0]), frozenset({"zeros"}))
    >>> stat.sumsq, stat.n_zero
    (25.0, 1)
    """
    array = dense(tensor)
    if array is None:
        return _measure_tensor(_plain(tensor), parts)
    return _measure_array(array, parts)


def measure_difference(new: Tensor, old: Tensor, parts: frozenset[str]) -> Stat:
    """Measure ``new - old`` of two tensors of one shape; a plain float32 ``old`` is written over.

    In float32 or wider. Subtracting in place and reading the result again is cheaper than
    subtracting piece by piece, whatever the caches hold.
    """
    array = dense(old)
    if array is None or new.dtype != old.dtype or new.stride() != old.stride():
        wide = new.detach().float() if new.dtype.itemsize < 4 else new.detach()
        return measure(wide - old.to(wide.dtype), parts)
    torch.sub(new.detach(), old, out=old)
    return _measure_array(array, parts)


@cache
def _ones() -> Floats:
    return np.ones(CHUNK, np.float32)


def _measure_array(array: Floats, parts: frozenset[str]) -> Stat:
    with_moments, with_zeros = "moments" in parts, "zeros" in parts
    size = array.size
    sumsq = total = 0.0
    n_zero = 0
    for start in range(0, size, CHUNK):
        chunk = array[start : start + CHUNK]
        sumsq += float(np.vdot(chunk, chunk))  # unlike dot it is silent about NaN and overflow
        if with_moments:
            total += float(np.vdot(chunk, _ones()[: chunk.size]))
        if with_zeros:
            n_zero += int(np.count_nonzero(chunk == 0.0))
    if not SMALLEST < sumsq < math.inf and array.any():
        with np.errstate(over="ignore", invalid="ignore"):
            return _measure_again(array, parts)
    stat = Stat(size, sumsq, n_nonfinite=0)
    if with_moments:
        stat.mean = total / size if size else math.nan
        stat.spread = _spread(array, sumsq, stat.mean)
    if with_zeros:
        stat.n_zero = n_zero
    return stat


def _spread(array: Floats, sumsq: float, mean: float) -> float:
    """Sum of squared deviations; a second pass only where the difference would cancel."""
    rough = sumsq - array.size * mean * mean
    if rough > 0.05 * sumsq or array.size == 0:
        return rough
    total = 0.0
    for start in range(0, array.size, CHUNK):
        deviation = array[start : start + CHUNK].astype(np.float64) - mean
        total += float(deviation.dot(deviation))
    return total


def _measure_again(array: Floats, parts: frozenset[str]) -> Stat:
    """The slow path: something is NaN or infinite, or squares left the range of float32."""
    n_nonfinite = array.size - int(np.count_nonzero(np.isfinite(array)))
    wide = array.astype(np.float64)
    stat = Stat(array.size, float(wide.dot(wide)), n_nonfinite=n_nonfinite)
    if "moments" in parts:
        stat.mean = float(wide.mean())
        stat.spread = float(np.square(wide - stat.mean).sum())
    if "zeros" in parts:
        stat.n_zero = int(np.count_nonzero(array == 0.0))
    return stat


def _plain(tensor: Tensor) -> Tensor:
    """A dense, real, floating tensor with the same elements, at least float32."""
    tensor = tensor.detach()
    if tensor.is_sparse:
        tensor = tensor.coalesce()
    if tensor.layout is not torch.strided:
        tensor = tensor.to_dense()
    if tensor.is_complex():
        tensor = tensor.abs()
    if not tensor.is_floating_point() or tensor.dtype.itemsize < 4:
        tensor = tensor.float()
    return tensor


def _measure_tensor(tensor: Tensor, parts: frozenset[str]) -> Stat:
    """Any device and dtype, without a synchronisation: every field is a 0-d float64 tensor."""
    wide = tensor.double() if tensor.device.type != "mps" else tensor
    stat = Stat(tensor.numel(), wide.square().sum())
    if "moments" in parts:
        stat.mean = wide.mean()
        stat.spread = (wide - stat.mean).square().sum()
    if "zeros" in parts:
        stat.n_zero = (tensor == 0).sum().to(wide.dtype)
    stat.n_nonfinite = (~torch.isfinite(tensor)).sum().to(wide.dtype)
    if tensor.device.type == "cpu":
        return _numbers(stat)
    return stat


def _numbers(stat: Stat) -> Stat:
    fields = (stat.sumsq, stat.mean, stat.spread, stat.n_zero, stat.n_nonfinite)
    return Stat(stat.n, *(float(field) for field in fields))
