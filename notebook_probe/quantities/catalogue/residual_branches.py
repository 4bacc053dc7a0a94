"""Quantities of a residual branch: how much it adds, and to what."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from notebook_probe.errors import UnreadableError
from notebook_probe.quantities.define.decorator import quantity
from notebook_probe.quantities.define.questions import SIGNAL
from notebook_probe.quantities.reduce.arrays import wide
from notebook_probe.quantities.reduce.measure import IN_GRAPHS, measure
from notebook_probe.quantities.reduce.reductions import reduction
from notebook_probe.quantities.reduce.stat import Stat, root

__all__ = ["energy", "residual_change", "residual_ratio"]


@reduction("energy", first_only=True, traced=IN_GRAPHS)
def energy(
    tensor: Tensor, module: nn.Module | None = None, wanted: frozenset[str] = frozenset()
) -> Stat:
    """Measure the sum of squares of a call's first tensor: a branch's, not its mask's.

    Examples
    --------
    >>> import torch
    >>> energy(torch.tensor([3.0, 4.0])).sumsq
    25.0
    """
    return measure(tensor, frozenset({"sumsq"}))


@quantity(source="https://arxiv.org/abs/2110.09456", question=SIGNAL)
def residual_ratio(input_energy: Stat, output_energy: Stat) -> float:
    """Relative size of a branch's output, ``||f(x)||_2 / ||x||_2``.

    Attached at the branch ``f`` of ``x + f(x)``. Usual are values between 0.1 and 1; a branch near
    0 does nothing, and branches above 1 in a row make activations explode with depth.

    Warnings
    --------
    Of the first tensor that comes in, and the first that goes out. Where a norm stands before the
    branch, ``x`` is what the norm gives: there attach `residual_change` at the whole block.
    """
    size = root(input_energy.sumsq)
    return root(output_energy.sumsq) / size if size else math.nan


@quantity(source="https://arxiv.org/abs/2110.09456", question=SIGNAL)
def residual_change(input: Tensor, output: Tensor) -> Tensor:
    """Relative change by a residual block, ``||y - x||_2 / ||x||_2``.

    Attached at a whole block ``y = x + f(x)`` it is the relative size of its branches, wherever
    their norms stand. In a trained deep network it falls with depth; if it is near 0 in all blocks,
    the network is hardly deeper than its shortcut.

    Warnings
    --------
    Of the first tensor that comes in, and the first that goes out; they must have one shape. A
    block with a norm behind the sum moves it by that as well.
    """
    if input.shape != output.shape:
        raise UnreadableError(
            f"what comes in has shape {tuple(input.shape)}, what goes out {tuple(output.shape)}"
        )
    before = wide(input)
    sums = [energy(one).sumsq for one in (wide(output) - before, before)]
    change, size = (torch.as_tensor(one, dtype=torch.float64) for one in sums)
    return (change / size).sqrt().where(size > 0, torch.nan)
