"""Measuring a tensor, once, for every quantity that needs something of it.

On a CPU the elements pass in chunks that stay in cache: BLAS dots in float32, totals in float64.
A weight can be measured while it is copied, and an update while it is subtracted, so that memory
is read no more often than the copy needs.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import TypeAlias

import numpy as np
import torch
from torch import Tensor

from notebook_probe.quantities.arrays import CHUNK, Floats, dense
from notebook_probe.quantities.stat import Stat

__all__ = ["measure", "measure_copy", "measure_difference"]

Chunks: TypeAlias = Callable[[], Iterator[Floats]]
"""Yields all elements, piece by piece; may be asked twice."""


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
    if array is None:
        return _measure_tensor(_plain(tensor), parts)
    return _measure_chunks(lambda: _pieces(array), array.size, parts)


def measure_copy(tensor: Tensor, copy: Tensor, parts: frozenset[str]) -> Stat:
    """Copy ``tensor`` into ``copy`` (same shape and dtype) and measure it on the way."""
    source, target = dense(tensor), dense(copy)
    if source is None or target is None or tensor.stride() != copy.stride():
        copy.copy_(tensor.detach())
        return measure(copy, parts)

    def pieces() -> Iterator[Floats]:
        for piece, place in zip(_pieces(source), _pieces(target), strict=True):
            place[:] = piece
            yield place

    return _measure_chunks(pieces, source.size, parts)


def measure_difference(new: Tensor, old: Tensor, parts: frozenset[str]) -> Stat:
    """Measure ``new - old`` of two tensors of one shape, in float32 or wider."""
    after, before = dense(new), dense(old)
    if after is None or before is None or new.stride() != old.stride():
        wide = new.detach().float() if new.dtype.itemsize < 4 else new.detach()
        return measure(wide - old.to(wide.dtype), parts)
    scratch = np.empty(min(after.size, CHUNK), np.float32)

    def pieces() -> Iterator[Floats]:
        for one, other in zip(_pieces(after), _pieces(before), strict=True):
            yield np.subtract(one, other, out=scratch[: one.size])

    return _measure_chunks(pieces, after.size, parts)


def _pieces(array: Floats) -> Iterator[Floats]:
    if array.size <= CHUNK:
        yield array
        return
    for start in range(0, array.size, CHUNK):
        yield array[start : start + CHUNK]


@lru_cache(maxsize=1)
def _ones() -> Floats:
    return np.ones(CHUNK, np.float32)


def _measure_chunks(chunks: Chunks, size: int, parts: frozenset[str]) -> Stat:
    with_moments, with_zeros = "moments" in parts, "zeros" in parts
    sumsq = total = 0.0
    n_zero = 0
    with np.errstate(over="ignore", invalid="ignore"):
        for chunk in chunks():
            sumsq += float(chunk.dot(chunk))
            if with_moments:
                total += float(chunk.dot(_ones()[: chunk.size]))
            if with_zeros:
                n_zero += int(np.count_nonzero(chunk == 0.0))
        if not math.isfinite(sumsq):
            return _measure_again(np.concatenate([piece.copy() for piece in chunks()]), parts)
    stat = Stat(size, sumsq, n_nonfinite=0)
    if with_moments:
        stat.mean = total / size if size else math.nan
        stat.spread = _spread(chunks, size, sumsq, stat.mean)
    if with_zeros:
        stat.n_zero = n_zero
    return stat


def _spread(chunks: Chunks, size: int, sumsq: float, mean: float) -> float:
    """Sum of squared deviations; a second pass only where the difference would cancel."""
    rough = sumsq - size * mean * mean
    if rough > 0.05 * sumsq or size == 0:
        return rough
    total = 0.0
    for chunk in chunks():
        deviation = chunk.astype(np.float64) - mean
        total += float(deviation.dot(deviation))
    return total


def _measure_again(array: Floats, parts: frozenset[str]) -> Stat:
    """The slow path: something is NaN or infinite, or squares overflowed float32."""
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
