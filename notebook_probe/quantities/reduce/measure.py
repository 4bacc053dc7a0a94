"""Measuring a tensor, once, for every quantity that needs something of it.

On a CPU the elements pass in pieces that stay in cache between two reads; a BLAS dot sums rows of
`ROW` elements in float32, their totals are added in float64.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from notebook_probe.quantities.reduce.arrays import Floats, dense, readable, wide
from notebook_probe.quantities.reduce.device_stat import (
    DeviceStat,
    device_stat,
    device_stats,
    difference_stats,
)
from notebook_probe.quantities.reduce.quiet import quiet
from notebook_probe.quantities.reduce.reductions import Traced, measuring, reduction
from notebook_probe.quantities.reduce.stat import Stat
from notebook_probe.quantities.reduce.traced_stat import (
    stat_of_numbers,
    stat_of_sums,
    traced_sums,
)
from notebook_probe.uninterrupted import uninterrupted

__all__ = [
    "IN_GRAPHS",
    "STAT",
    "measure",
    "measure_changes",
    "measure_difference",
    "measure_differences",
]

ROW = 4096
"""Elements of one dot: few enough for its rounding not to show in float32, and for BLAS not to wake
its own threads, which would then be in the way of torch's.
"""

PIECE = 32
"""Rows read at a time: 512 kB, so that the second and the third sum find them in cache."""

_Array: TypeAlias = npt.NDArray[np.floating[Any]]

_Sums: TypeAlias = tuple[float, float, int]
"""Sum of squares and, if requested, plain sum and number of elements that are not 0."""

_SUMSQ = frozenset({"sumsq", "nonfinite"})
"""Parts that the sum of squares tells where it is finite."""

SMALLEST = 1e-24
"""Least sum of squares that has certainly lost nothing to float32's range."""


def measure(tensor: Tensor, parts: frozenset[str]) -> Stat:
    """Measure some ``parts`` of a tensor, in float32 or wider.

    Parameters
    ----------
    tensor : Tensor, any shape and dtype
        Integers and bools are cast, complex numbers count by their modulus, sparse ones densely.
    parts : frozenset of str
        Subset of sumsq, moments, zeros, nonfinite and largest.

    Returns
    -------
    Stat
        For a tensor on an accelerator a `DeviceStat`, which becomes a `Stat` on the host. NaN and
        infinities propagate into ``sumsq``, ``mean`` and ``spread``; if squares leave the range of
        float32, the values are measured again in float64.

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
    found: Stat = _stat(tensor, None, parts)
    return found


def _stats(tensors: Sequence[Tensor], wanted: frozenset[str]) -> list[Stat | DeviceStat]:
    """Return the Stat of each tensor.

    Elements that are not in cache push everything else out of it: one loop reads them all and does
    nothing but that, between what comes before and after it for all tensors.
    """
    arrays = [dense(tensor) for tensor in tensors]
    seen = [array for array in arrays if array is not None]
    stats: list[Stat | DeviceStat] = [*_stats_of_arrays(seen, wanted)]
    if len(seen) == len(tensors):
        return stats
    pairs = [*zip(tensors, arrays, strict=True)]
    read = iter(stats)
    others = iter(_measure_others([tensor for tensor, array in pairs if array is None], wanted))
    return [next(others if array is None else read) for _, array in pairs]


def _stats_of_arrays(arrays: Sequence[Floats], wanted: frozenset[str]) -> list[Stat]:
    return quiet.run(_stats_in_quiet, arrays, wanted)


IN_GRAPHS = Traced(
    lambda tensor, module, wanted: traced_sums(tensor, wanted), stat_of_sums, stat_of_numbers
)


@reduction(
    "sumsq",
    "moments",
    "zeros",
    "nonfinite",
    "largest",
    batched=_stats,
    of_arrays=_stats_of_arrays,
    traced=IN_GRAPHS,
)
def _stat(tensor: Tensor, module: nn.Module | None, wanted: frozenset[str]) -> Any:
    array = dense(tensor)
    if array is None:
        return _measure_other(tensor, wanted)
    return quiet.run(_stat_in_quiet, array, wanted)


STAT = measuring("sumsq")
"""The reduction behind every `Stat`."""


def measure_difference(new: Tensor, old: Tensor, parts: frozenset[str]) -> Stat:
    """Measure ``new - old`` of two tensors of one shape; a plain float32 ``old`` is written over.

    In float32 or wider. Subtracting in place and reading the result again is cheaper than
    subtracting piece by piece, whatever the caches hold.
    """
    array = dense(old)
    # The strides must agree, since both are read in memory order.
    if array is None or new.dtype != old.dtype or new.stride() != old.stride():
        return measure(wide(new) - wide(old), parts)
    # Into the kept copy: no other memory, and it is still in cache when it is measured.
    torch.sub(new.detach(), old, out=old)
    return quiet.run(_stat_in_quiet, array, parts)


def measure_differences(
    news: Sequence[Tensor], olds: Sequence[Tensor], parts: frozenset[str]
) -> list[Stat | DeviceStat]:
    """Measure ``new - old`` of many pairs, those alike on an accelerator together.

    As `measure_difference`; the plain tensors among the ``olds`` are written over.
    """
    found: list[Stat | DeviceStat | None] = [None] * len(news)
    alike: dict[tuple[torch.device, torch.dtype], list[int]] = {}
    for place, (new, old) in enumerate(zip(news, olds, strict=True)):
        if _is_together(new, old):
            alike.setdefault((new.device, new.dtype), []).append(place)
        else:
            found[place] = measure_difference(new, old, parts)
    for places in alike.values():
        pairs = [news[place] for place in places], [olds[place] for place in places]
        for place, stat in zip(places, difference_stats(*pairs, parts), strict=True):
            found[place] = stat
    return [stat for stat in found if stat is not None]


def measure_changes(
    news: Sequence[Tensor], olds: Sequence[Tensor], arrays: Sequence[Floats], parts: frozenset[str]
) -> list[Stat]:
    """Measure ``new - old`` of many pairs of float32 tensors on the host, alike in shape.

    The ``olds``, of which the ``arrays`` are flat views, are written over.
    """
    with uninterrupted, torch.no_grad():
        torch._foreach_sub_([*olds], [*news])  # the only memory that is written is that of the olds
    stats = _stats_of_arrays(arrays, parts)
    if "moments" in parts:
        for stat in stats:
            stat.mean = 0.0 - stat.mean  # what is measured is old - new
    return stats


def _is_together(new: Tensor, old: Tensor) -> bool:
    """Return whether two real tensors on an accelerator can be subtracted among many."""
    if new.is_cpu or new.device.type == "mps" or new.layout is not torch.strided:
        return False
    return new.is_floating_point() and (new.dtype, new.device) == (old.dtype, old.device)


_ONES = np.ones(ROW, np.float32)
_ZERO = np.float32(0)


def _stats_in_quiet(arrays: Sequence[Floats], parts: frozenset[str]) -> list[Stat]:
    if not parts <= _SUMSQ:
        return [_stat_in_quiet(array, parts) for array in arrays]
    stats = []
    for array in arrays:  # of thousands of parameters: no call for each
        sumsq = float(array.dot(array)) if array.size <= ROW else _sums_of_rows(array, parts)[0]
        is_usual = SMALLEST < sumsq < math.inf
        stats.append(
            Stat(array.size, sumsq, n_nonfinite=0) if is_usual else _stat_in_quiet(array, parts)
        )
    return stats


def _stat_in_quiet(array: Floats, parts: frozenset[str]) -> Stat:
    size, (sumsq, total, n_nonzero) = array.size, _sums(array, parts)
    # Too small or zero: squares may have underflowed. Not finite: they overflowed, or elements are.
    if not SMALLEST < sumsq < math.inf and array.any():
        return _measure_again(array, parts)
    stat = Stat(size, sumsq, n_nonfinite=0)
    if "moments" in parts:
        stat.mean, stat.spread = _moments(array, sumsq, total)
    if "zeros" in parts:
        stat.n_zero = size - n_nonzero
    if "largest" in parts and size:
        # Two passes without a copy; `abs` would allocate one as large as the tensor.
        stat.largest = float(max(array.max(), -array.min())) + 0.0  # of -0.0
    return stat


def _sums(array: _Array, parts: frozenset[str]) -> _Sums:
    """Return the requested sums over the elements."""
    size = array.size
    if size > ROW:
        return _sums_of_rows(array, parts)
    total = float(array.dot(_ONES[:size])) if "moments" in parts else 0.0
    n_nonzero = int(np.count_nonzero(array)) if "zeros" in parts else 0
    return float(array.dot(array)), total, n_nonzero


def _sums_of_rows(array: _Array, parts: frozenset[str]) -> _Sums:
    """Return the sums over many elements, in pieces: each is cached after it was read once."""
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
        # Compared first: count_nonzero is much faster on bools than on floats.
        if counts:
            n_nonzero += int(np.count_nonzero(piece != _ZERO))
    return squares, total, n_nonzero


def _dots(rows: _Array, others: _Array) -> float:
    """Return the sum of the products, each row's in float32, that of all rows in float64."""
    # tolist() gives Python floats, so that the rows are added in float64.
    return sum(np.vecdot(rows, others).tolist())


def _moments(array: Floats, sumsq: float, total: float) -> tuple[float, float]:
    """Mean and sum of squared deviations; read again only where the difference would cancel."""
    size = array.size
    if size == 0:
        return math.nan, 0.0
    mean = total / size
    spread = sumsq - size * mean * mean
    # Cancellation may have cost a factor of 20, about one digit; below that it is read again.
    if spread > 0.05 * sumsq:
        return mean, spread
    squares = rest = 0.0  # around the mean as computed, whose error is then corrected
    for start in range(0, size, PIECE * ROW):
        deviation = array[start : start + PIECE * ROW].astype(np.float64) - mean
        squares += _sums(deviation, _SUMSQ)[0]
        rest += float(deviation.sum())
    return mean + rest / size, max(0.0, squares - rest * rest / size)


def _measure_again(array: Floats, parts: frozenset[str]) -> Stat:
    """Measure slowly: something is NaN or infinite, or squares left the range of float32."""
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


def _measure_others(tensors: Sequence[Tensor], parts: frozenset[str]) -> list[Stat | DeviceStat]:
    """Measure those that numpy cannot see: on an accelerator a few kernels measure many."""
    if any(_is_measured_here(tensor) for tensor in tensors):
        return [_measure_other(tensor, parts) for tensor in tensors]
    return device_stats(tensors, parts)


def _measure_other(tensor: Tensor, parts: frozenset[str]) -> Stat | DeviceStat:
    if _is_measured_here(tensor):
        return _measure_tensor(readable(tensor), parts)
    return device_stat(tensor, parts)


def _is_measured_here(tensor: Tensor) -> bool:
    """Return whether numbers are made at once: on a CPU, and on MPS, which has no float64."""
    return tensor.device.type in ("cpu", "mps")


def _measure_tensor(tensor: Tensor, parts: frozenset[str]) -> Stat:
    """Measure any dtype on the host."""
    tensor = tensor.cpu()
    stat = Stat(
        tensor.numel(), float(torch.linalg.vector_norm(tensor, dtype=torch.float64).square())
    )
    if "moments" in parts:
        stat.mean = float(tensor.mean(dtype=torch.float64))
        stat.spread = float(_spread_of(tensor))
    if "zeros" in parts:
        stat.n_zero = float((tensor == 0).sum())
    if "nonfinite" in parts:
        stat.n_nonfinite = float((~torch.isfinite(tensor)).sum())
    if "largest" in parts and tensor.numel():
        stat.largest = float(tensor.abs().amax())
    return stat


def _spread_of(tensor: Tensor) -> Tensor:
    """Sum the squared deviations from the first element, so that a large mean does not cancel."""
    n = tensor.numel()
    shifted = tensor - tensor.flatten()[:1] if n else tensor
    sumsq = torch.linalg.vector_norm(shifted, dtype=torch.float64).square()
    total = shifted.sum(dtype=torch.float64)
    return (sumsq - total.square() / max(n, 1)).clamp(min=0)
