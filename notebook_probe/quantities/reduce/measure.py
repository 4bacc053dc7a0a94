"""Measuring a tensor, once, for every quantity that needs something of it.

On a CPU the elements pass in pieces that stay in cache between two reads; a BLAS dot sums rows of
`ROW` elements in float32, their totals are added in float64.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from notebook_probe.quantities.reduce.arrays import Floats, dense, readable, wide
from notebook_probe.quantities.reduce.quiet import quiet
from notebook_probe.quantities.reduce.reductions import measuring, reduction
from notebook_probe.quantities.reduce.stat import Stat

__all__ = ["STAT", "measure", "measure_difference"]

ROW = 4096
"""Elements of one dot: few enough for its rounding not to show in float32, and for BLAS not to wake
threads of its own, which would then be in the way of torch's.
"""

PIECE = 32
"""Rows read at a time: 512 kB, so that the second and the third sum find them in cache."""

_Array: TypeAlias = npt.NDArray[np.floating[Any]]

_Sums: TypeAlias = tuple[float, float, int]
"""Sum of squares and, where they are asked for, plain sum and number of elements that are not 0."""

_SUMSQ = frozenset({"sumsq", "nonfinite"})
"""Parts that the sum of squares tells where it is finite."""

SMALLEST = 1e-24
"""A smaller sum of squares may have lost some of them to float32's range."""


def measure(tensor: Tensor, parts: frozenset[str]) -> Stat:
    """Measure some ``parts`` of a tensor, in float32 or wider.

    Parameters
    ----------
    tensor : Tensor, any shape and dtype
        Integers and bools are cast, complex numbers count by their modulus, sparse ones densely.
    parts : frozenset of str
        Of sumsq, moments, zeros, nonfinite and largest.

    Returns
    -------
    Stat
        NaN and infinities propagate into ``sumsq``, ``mean`` and ``spread``; where squares leave
        the range of float32 the values are measured again in float64.

    Raises
    ------
    UnreadableError
        A tensor without values, or of a kind nobody can convert.

    Examples
    --------
    >>> stat = measure(torch.tensor([3.0, 4.0, 0.0]), frozenset({"zeros"}))
    >>> stat.sumsq, stat.n_zero
    (25.0, 1)
    """
    return _stat(tensor, None, parts)


def _stats(tensors: Sequence[Tensor], wanted: frozenset[str]) -> list[Stat]:
    """The Stat of each tensor.

    Elements that are not in cache push everything else out of it: one loop reads them all and does
    nothing but that, between what comes before and after it for all tensors.
    """
    arrays = [dense(tensor) for tensor in tensors]
    read = iter(quiet.run(_sums_of_all, [one for one in arrays if one is not None], wanted))
    pairs = [*zip(tensors, arrays, strict=True)]
    others = iter(
        _measure_tensors([readable(one) for one, array in pairs if array is None], wanted)
    )
    return [
        next(others) if array is None else _finished(array, next(read), wanted)
        for _, array in pairs
    ]


@reduction("sumsq", "moments", "zeros", "nonfinite", "largest", batched=_stats)
def _stat(tensor: Tensor, module: nn.Module | None, wanted: frozenset[str]) -> Stat:
    array = dense(tensor)
    if array is None:
        return _measure_tensor(readable(tensor), wanted)
    return _measure_array(array, wanted)


STAT = measuring("sumsq")
"""The reduction behind every `Stat`."""


def measure_difference(new: Tensor, old: Tensor, parts: frozenset[str]) -> Stat:
    """Measure ``new - old`` of two tensors of one shape; a plain float32 ``old`` is written over.

    In float32 or wider. Subtracting in place and reading the result again is cheaper than
    subtracting piece by piece, whatever the caches hold.
    """
    array = dense(old)
    if array is None or new.dtype != old.dtype or new.stride() != old.stride():
        return measure(wide(new) - wide(old), parts)
    torch.sub(new.detach(), old, out=old)
    return _measure_array(array, parts)


_ONES = np.ones(ROW, np.float32)
_ZERO = np.float32(0)


def _measure_array(array: Floats, parts: frozenset[str]) -> Stat:
    return _finished(array, quiet.run(_sums, array, parts), parts)


def _finished(array: Floats, sums: _Sums, parts: frozenset[str]) -> Stat:
    sumsq, total, n_nonzero = sums
    if not SMALLEST < sumsq < math.inf and array.any():
        return quiet.run(_measure_again, array, parts)
    stat = Stat(array.size, sumsq, n_nonfinite=0)
    if parts <= _SUMSQ:
        return stat
    if "moments" in parts:
        stat.mean, stat.spread = _moments(array, sumsq, total)
    if "zeros" in parts:
        stat.n_zero = array.size - n_nonzero
    if "largest" in parts and array.size:
        stat.largest = float(max(array.max(), -array.min())) + 0.0  # of -0.0
    return stat


def _sums_of_all(arrays: list[Floats], parts: frozenset[str]) -> list[_Sums]:
    return [_sums(array, parts) for array in arrays]


def _sums(array: _Array, parts: frozenset[str]) -> _Sums:
    """What is summed of the elements, as far as it is wanted."""
    size = array.size
    if size > ROW:
        return _sums_of_rows(array, parts)
    total = float(array.dot(_ONES[:size])) if "moments" in parts else 0.0
    n_nonzero = int(np.count_nonzero(array)) if "zeros" in parts else 0
    return float(array.dot(array)), total, n_nonzero


def _sums_of_rows(array: _Array, parts: frozenset[str]) -> _Sums:
    """The same of many elements, piece by piece: each is in cache after it was read once."""
    whole = array.size - array.size % ROW
    squares, total, n_nonzero = _sums(array[whole:], parts)
    rows = (array if whole == array.size else array[:whole]).reshape(-1, ROW)
    sums, counts = "moments" in parts, "zeros" in parts
    if not (sums or counts):
        return squares + _dots(rows, rows), total, n_nonzero
    for start in range(0, len(rows), PIECE):
        piece = rows[start : start + PIECE]
        squares += _dots(piece, piece)
        if sums:
            total += _dots(piece, _ONES)
        if counts:
            n_nonzero += int(np.count_nonzero(piece != _ZERO))
    return squares, total, n_nonzero


def _dots(rows: _Array, others: _Array) -> float:
    """Sum of the products, each row's in float32, those of all rows in float64."""
    return sum(np.vecdot(rows, others).tolist())


def _moments(array: Floats, sumsq: float, total: float) -> tuple[float, float]:
    """Mean and sum of squared deviations; read again only where the difference would cancel."""
    size = array.size
    if size == 0:
        return math.nan, 0.0
    mean = total / size
    spread = sumsq - size * mean * mean
    if spread > 0.05 * sumsq:
        return mean, spread
    squares = rest = 0.0  # round the mean as it was found, whose own error is then corrected
    for start in range(0, size, PIECE * ROW):
        deviation = array[start : start + PIECE * ROW].astype(np.float64) - mean
        squares += _sums(deviation, _SUMSQ)[0]
        rest += float(deviation.sum())
    return mean + rest / size, max(0.0, squares - rest * rest / size)


def _measure_again(array: Floats, parts: frozenset[str]) -> Stat:
    """The slow path: something is NaN or infinite, or squares left the range of float32."""
    n_nonfinite = array.size - int(np.count_nonzero(np.isfinite(array)))
    wide = array.astype(np.float64)
    stat = Stat(array.size, _sums(wide, _SUMSQ)[0], n_nonfinite=n_nonfinite)
    if "moments" in parts:
        stat.mean = float(wide.mean())
        stat.spread = float(np.square(wide - stat.mean).sum())
    if "zeros" in parts:
        stat.n_zero = int(np.count_nonzero(array == 0.0))
    if "largest" in parts:
        stat.largest = float(np.abs(array).max())
    return stat


def _measure_tensor(tensor: Tensor, parts: frozenset[str]) -> Stat:
    """Any device and dtype, without a synchronisation: every field is a 0-d float64 tensor."""
    if tensor.device.type == "mps":  # which has no float64
        return _measure_tensor(tensor.cpu(), parts)
    fields: dict[str, Any] = {}
    fields["sumsq"] = torch.linalg.vector_norm(tensor, dtype=torch.float64).square()
    if "moments" in parts:
        fields["mean"] = tensor.mean(dtype=torch.float64)
        fields["spread"] = _spread_of(tensor)
    if "zeros" in parts:
        fields["n_zero"] = (tensor == 0).sum().double()
    if "nonfinite" in parts:
        fields["n_nonfinite"] = (~torch.isfinite(tensor)).sum().double()
    if "largest" in parts and tensor.numel():
        fields["largest"] = tensor.abs().amax().double()
    if tensor.is_cpu:
        fields = {name: float(value) for name, value in fields.items()}
    return Stat(tensor.numel(), **fields)


def _measure_tensors(tensors: list[Tensor], parts: frozenset[str]) -> list[Stat]:
    """The same of many: on an accelerator a few kernels give the norms of all."""
    if parts != {"sumsq"} or any(tensor.device.type in ("cpu", "mps") for tensor in tensors):
        return [_measure_tensor(tensor, parts) for tensor in tensors]
    squares: dict[int, Any] = {}
    for alike in _alike(tensors):
        norms = torch._foreach_norm(alike, 2, torch.float64)
        squares.update(zip(map(id, alike), torch.stack(norms).square().unbind(), strict=True))
    return [Stat(tensor.numel(), squares[id(tensor)]) for tensor in tensors]


def _alike(tensors: list[Tensor]) -> Iterable[list[Tensor]]:
    """Those of one device and type, which one kernel can read."""
    groups: dict[tuple[torch.device, torch.dtype], list[Tensor]] = {}
    for tensor in tensors:
        groups.setdefault((tensor.device, tensor.dtype), []).append(tensor)
    return groups.values()


def _spread_of(tensor: Tensor) -> Tensor:
    """Sum of squared deviations; round the first element, so that a large mean does not cancel."""
    n = tensor.numel()
    shifted = tensor - tensor.flatten()[:1] if n else tensor
    sumsq = torch.linalg.vector_norm(shifted, dtype=torch.float64).square()
    total = shifted.sum(dtype=torch.float64)
    return (sumsq - total.square() / max(n, 1)).clamp(min=0)
