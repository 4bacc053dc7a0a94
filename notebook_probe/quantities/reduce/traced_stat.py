"""Measuring tensors inside compiled graphs, by operations that torch traces."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from notebook_probe.quantities.reduce.device_stat import NORM, DeviceStat, Parts, one_row, pooled
from notebook_probe.quantities.reduce.stat import Stat

__all__ = ["stat_of_numbers", "stat_of_sums", "traced_shift", "traced_spread", "traced_sums"]

MOST_IN_INT32 = 2**31 - 1
ROUNDING = 1e-13
"""Share of the mean square below which a variance is nothing but the rounding of two sums."""


def traced_shift(first: Tensor) -> Tensor:
    """Return the first of some numbers, from which their distances add up without cancelling.

    Examples
    --------
    >>> traced_shift(torch.tensor([3.0, torch.inf]))
    tensor([3., 0.])
    """
    return torch.where(first.isfinite(), first, 0.0)


def traced_spread(total: Tensor, squares: Tensor, n: int) -> Tensor:
    """Return the sum of the squared distances from the mean, of those from any other number.

    Infinite, or NaN, where ``squares`` is.

    Examples
    --------
    >>> traced_spread(torch.tensor(4.0), torch.tensor(10.0), 2)
    tensor(2.)
    """
    spread = squares - total.square() / n
    spread = torch.where(spread < ROUNDING * squares, 0.0, spread)
    return torch.where(squares.isfinite(), spread, squares)


def _traced_moments(wide: Tensor, n: int) -> list[Tensor]:
    """Return norm, sum and variance, of one pass over the distances from the first number.

    The sum of squares is at least the square of that number, so it does not cancel either.
    """
    shift = traced_shift(wide.flatten()[0])
    away = wide - shift
    total, squares = away.sum(), away.square().sum()
    sumsq = squares + 2.0 * shift * total + n * shift.square()
    sumsq = torch.where(squares.isfinite(), sumsq, squares)
    return [sumsq.sqrt(), total + n * shift, traced_spread(total, squares, n) / n]


def traced_sums(tensor: Tensor, parts: Parts) -> Tensor:
    """Return the sums of a tensor with elements, (sum,) float64, by operations that torch traces.

    In the order of `_sums_of_rows`. A compiler makes one loop of plain sums, together with what
    computes the tensor; it would read the tensor once more for a variance. Sums are over the
    tensor's axes as they are, which a compiler reads in the order of the memory. A flat view of
    images it reads in the order of the view, element by element.

    Examples
    --------
    >>> traced_sums(torch.tensor([3.0, 4.0]), frozenset({"sumsq"}))
    tensor([5.], dtype=torch.float64)
    """
    plain = tensor.detach()
    if plain.is_complex():
        plain = plain.abs()
    wide, n = plain.double(), plain.numel()
    plain = plain if plain.is_floating_point() else wide
    # Inductor adds up whole numbers in half the time of floats, whose rounding it compensates.
    whole = torch.int32 if n <= MOST_IN_INT32 else torch.int64
    found = _traced_moments(wide, n) if "moments" in parts else [wide.square().sum().sqrt()]
    if "zeros" in parts:
        found.append(n - (plain == 0).sum(dtype=whole).double())
    if "nonfinite" in parts:
        found.append((plain - plain != 0).sum(dtype=whole).double())
    if "largest" in parts:
        found.append(plain.abs().amax().double())
    return torch.stack(found)


def stat_of_sums(sums: Tensor, n: int, parts: Parts) -> DeviceStat | Stat:
    """Return what `traced_sums` has found of a tensor of ``n`` elements.

    Examples
    --------
    >>> parts = frozenset({"sumsq"})
    >>> stat_of_sums(traced_sums(torch.tensor([3.0, 4.0]), parts), 2, parts).sumsq
    25.0
    """
    return stat_of_numbers(sums.tolist(), n, parts) if sums.is_cpu else one_row(sums, n, parts)


def stat_of_numbers(numbers: Sequence[float], n: int, parts: Parts) -> Stat:
    """Return what `traced_sums` has found of a tensor of ``n`` elements, as numbers.

    Examples
    --------
    >>> stat_of_numbers([5.0], 2, frozenset({"sumsq"})).sumsq
    25.0
    """
    return Stat(n, numbers[0] ** 2) if parts == NORM else pooled([(n, numbers)], parts)
