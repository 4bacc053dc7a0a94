"""Measuring tensors inside compiled graphs, by operations that torch traces."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from notebook_probe.quantities.reduce.device_stat import NORM, DeviceStat, Parts, one_row, pooled
from notebook_probe.quantities.reduce.stat import ROUNDING, Stat, row_of_numbers

__all__ = ["stat_of_numbers", "stat_of_sums", "traced_shift", "traced_spread", "traced_sums"]

MOST_IN_INT32 = 2**31 - 1


def traced_shift(first: Tensor) -> Tensor:
    """Return the first of some numbers, from which their distances add up without cancelling.

    Examples
    --------
    >>> traced_shift(torch.tensor([3.0, torch.inf]))
    tensor([3., 0.])
    """
    return first.nan_to_num(0.0, 0.0, 0.0)


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


def traced_sums(tensor: Tensor, parts: Parts) -> Tensor:
    """Return the sums of a tensor with elements, (sum,) float64, by operations that torch traces.

    With moments they begin with the first number, and the sums of the distances from it and of
    their squares, else with the sum of squares; then follow the numbers of zeros and of what is not
    finite, and the largest magnitude. What is computed from them is computed on the host: each
    operation is traced several times, and adds to the time of a compiler. It makes one loop of
    plain sums, together with what computes the tensor, which it would read once more for a
    variance. Sums are over the tensor's axes as they are, which a compiler reads in the order of
    the memory. A flat view of images it reads in the order of the view, element by element.

    Examples
    --------
    >>> traced_sums(torch.tensor([3.0, 4.0]), frozenset({"sumsq"}))
    tensor([25.], dtype=torch.float64)
    """
    plain = tensor.detach()
    if plain.is_complex():
        plain = plain.abs()
    wide, n = plain.double(), plain.numel()
    plain = plain if plain.is_floating_point() else wide
    # Inductor adds up whole numbers in half the time of floats, whose rounding it compensates.
    whole = torch.int32 if n <= MOST_IN_INT32 else torch.int64
    found = _distances(wide) if "moments" in parts else [wide.square().sum()]
    if "zeros" in parts:
        found.append((plain == 0).sum(dtype=whole).double())
    if "nonfinite" in parts:
        found.append((plain - plain != 0).sum(dtype=whole).double())
    if "largest" in parts:
        found.append(plain.abs().amax().double())
    return torch.stack(found)


def _distances(wide: Tensor) -> list[Tensor]:
    """Return a number near all others, and the sums of their distances and squares of these."""
    shift = traced_shift(wide.flatten()[0])
    away = wide - shift
    return [shift, away.sum(), away.square().sum()]


def stat_of_sums(sums: Tensor, n: int, parts: Parts) -> DeviceStat | Stat:
    """Return what `traced_sums` has found of a tensor of ``n`` elements.

    Examples
    --------
    >>> parts = frozenset({"sumsq"})
    >>> stat_of_sums(traced_sums(torch.tensor([3.0, 4.0]), parts), 2, parts).sumsq
    25.0
    """
    if sums.is_cpu:
        return stat_of_numbers(sums.tolist(), n, parts)
    return one_row(sums, n, parts)


def stat_of_numbers(numbers: Sequence[float], n: int, parts: Parts) -> Stat:
    """Return what `traced_sums` has found of a tensor of ``n`` elements, as numbers.

    Examples
    --------
    >>> stat_of_numbers([25.0], 2, frozenset({"sumsq"})).sumsq
    25.0
    """
    if parts == NORM:
        return Stat(n, numbers[0])
    return pooled([(n, row_of_numbers(numbers, n, parts))], parts)
