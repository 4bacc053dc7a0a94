"""The sums behind norms, moments and counts, measured in one pass and merged exactly.

A `Stat` pools over the calls, micro-batches and tensors of a step: merging the parts gives the
same numbers as measuring the concatenation. On CPU its fields are plain float64 numbers; on an
accelerator they are 0-d tensors, so that nothing waits for the device.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import TypeAlias

import numpy as np
import torch
from torch import Tensor

from notebook_probe.quantities.arrays import CHUNK, Floats, dense

__all__ = ["Number", "Stat", "measure", "root"]

Number: TypeAlias = "float | Tensor"

NOT_MEASURED = math.nan


@dataclass(slots=True)
class Stat:
    """Sums over the elements of one or many tensors; a part that was not asked for is NaN."""

    n: int
    sumsq: Number
    """Sum of squares; of squared moduli for complex tensors."""
    mean: Number = NOT_MEASURED
    spread: Number = NOT_MEASURED
    """Sum of squared deviations from the mean."""
    n_zero: Number = NOT_MEASURED
    n_nonfinite: Number = NOT_MEASURED

    def merge(self, other: Stat) -> Stat:
        """The Stat of both together."""
        n = self.n + other.n
        if not self.n or not other.n:
            return other if other.n else self
        shift = other.mean - self.mean
        return Stat(
            n=n,
            sumsq=self.sumsq + other.sumsq,
            mean=self.mean + shift * (other.n / n),
            spread=self.spread + other.spread + shift * shift * (self.n * (other.n / n)),
            n_zero=self.n_zero + other.n_zero,
            n_nonfinite=self.n_nonfinite + other.n_nonfinite,
        )


def root(value: Number) -> Number:
    """Square root of a number or a 0-d tensor; NaN below zero.

    >>> root(9.0)
    3.0
    """
    if isinstance(value, Tensor):
        return value.sqrt()
    return math.sqrt(value) if value >= 0 else math.nan


def measure(tensor: Tensor, parts: frozenset[str]) -> Stat:
    """Measure ``parts`` (of sumsq, moments, zeros, nonfinite) of a tensor, in float32 or wider.

    Parameters
    ----------
    tensor : Tensor, any shape and dtype
        Integers and bools are cast, complex numbers count by their modulus, sparse ones densely.

    Returns
    -------
    Stat
        NaN and infinities propagate into ``sumsq``, ``mean`` and ``spread``; finite values whose
        squares overflow float32 are measured again in float64.

    Examples
    --------
    >>> stat = measure(torch.tensor([3.0, 4.0, 0.0]), frozenset({"zeros"}))
    >>> stat.sumsq, stat.n_zero
    (25.0, 1)
    """
    array = dense(tensor)
    if array is not None:
        return _measure_array(array, parts)
    return _measure_tensor(_plain(tensor), parts)


@lru_cache(maxsize=4)
def _ones(n: int) -> Floats:
    return np.ones(n, np.float32)


def _measure_array(array: Floats, parts: frozenset[str]) -> Stat:
    """One pass in chunks that stay in cache: BLAS dots in float32, totals in float64."""
    with_moments, with_zeros = "moments" in parts, "zeros" in parts
    ones, is_zero = _ones(CHUNK), np.empty(min(array.size, CHUNK), np.bool_)
    sumsq = total = 0.0
    n_zero = 0
    for start in range(0, array.size, CHUNK):
        chunk = array[start : start + CHUNK]
        sumsq += float(chunk.dot(chunk))
        if with_moments:
            total += float(chunk.dot(ones[: chunk.size]))
        if with_zeros:
            n_zero += int(np.count_nonzero(np.equal(chunk, 0.0, out=is_zero[: chunk.size])))
    if not math.isfinite(sumsq):
        return _measure_again(array, parts)
    stat = Stat(array.size, sumsq, n_nonfinite=0)
    if with_moments:
        stat.mean = total / array.size if array.size else math.nan
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
    shifted = np.empty(min(array.size, CHUNK), np.float64)
    for start in range(0, array.size, CHUNK):
        chunk = array[start : start + CHUNK]
        deviation = np.subtract(chunk, mean, out=shifted[: chunk.size])
        total += float(deviation.dot(deviation))
    return total


def _measure_again(array: Floats, parts: frozenset[str]) -> Stat:
    """The slow path: something is NaN or infinite, or squares overflowed float32."""
    n_nonfinite = array.size - int(np.count_nonzero(np.isfinite(array)))
    wide = array.astype(np.float64)
    with np.errstate(invalid="ignore", over="ignore"):
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
