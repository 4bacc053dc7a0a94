"""Shares of the outputs of bounded activations that are stuck at a bound."""

from __future__ import annotations

import math
from dataclasses import dataclass

from torch import Tensor, nn

from notebook_probe.errors import UnreadableError
from notebook_probe.model.unwrapped import unwrapped
from notebook_probe.quantities.define import questions
from notebook_probe.quantities.define.decorator import quantity
from notebook_probe.quantities.reduce.arrays import readable
from notebook_probe.quantities.reduce.reductions import Traced, reduction
from notebook_probe.quantities.reduce.stat import Number

__all__ = ["LINEAR_PART", "Saturated", "saturated", "saturated_fraction"]

LINEAR_PART: dict[type[nn.Module], tuple[float, float]] = {
    nn.Tanh: (-0.97, 0.97),
    nn.Softsign: (-0.97, 0.97),
    nn.Sigmoid: (0.03, 0.97),
    nn.Hardsigmoid: (0.03, 0.97),
}
"""Outputs between which an activation still passes a gradient; to be added to for one's own."""


@dataclass(slots=True)
class Saturated:
    """Number of elements outside the part where the activation is not saturated."""

    n: int
    n_outside: Number

    def merge(self, other: Saturated) -> Saturated:
        """Return the numbers of both."""
        return Saturated(self.n + other.n, self.n_outside + other.n_outside)


def _bounds(module: nn.Module | None) -> tuple[float, float] | None:
    # Along the bases, so that subclasses of these activations are known, too.
    kinds = type(unwrapped(module)).mro()
    return next((LINEAR_PART[kind] for kind in kinds if kind in LINEAR_PART), None)


def _misfit(module: nn.Module | None) -> str:
    known = ", ".join(kind.__name__ for kind in LINEAR_PART)
    return "" if _bounds(module) else f"is no bounded activation; known are {known}"


def _traced(tensor: Tensor, module: nn.Module | None, wanted: frozenset[str]) -> Tensor:
    low, high = _bounds(module) or (math.nan, math.nan)
    values = tensor.detach()
    return ((values < low) | (values > high)).sum().double()


def _of_sums(sums: Tensor, n: int, wanted: frozenset[str]) -> Saturated:
    return Saturated(n, float(sums) if sums.is_cpu else sums[0])


@reduction("saturated", misfit=_misfit, traced=Traced(_traced, _of_sums))
def saturated(
    tensor: Tensor, module: nn.Module | None = None, wanted: frozenset[str] = frozenset()
) -> Saturated:
    """Count the elements that left ``module`` at a bound of its range; NaN is none.

    Raises
    ------
    UnreadableError
        A module of no class in `LINEAR_PART`.

    Examples
    --------
    >>> import torch
    >>> saturated(torch.tensor([0.1, 0.99, -1.0]), nn.Tanh())
    Saturated(n=3, n_outside=2.0)
    """
    bounds = _bounds(module)
    if bounds is None:
        raise UnreadableError(f"{type(unwrapped(module)).__name__} {_misfit(module)}")
    values = readable(tensor)
    n_outside = ((values < bounds[0]) | (values > bounds[1])).sum().double()
    return Saturated(values.numel(), float(n_outside) if n_outside.is_cpu else n_outside)


@quantity(source="Glorot & Bengio 2010", question=questions.DEAD, bounds=(0, 1))
def saturated_fraction(output_saturated: Saturated) -> Number:
    """Share of outputs at a bound, ``#(|y| > 0.97) / n``, of a sigmoid ``#(|y - 0.5| > 0.47) / n``.

    There a tanh or a sigmoid passes hardly any gradient: beyond a third the layer learns slowly,
    and layer after layer they go the same way. Smaller initial weights, normalisation or another
    activation help.

    Warnings
    --------
    For the modules Tanh, Sigmoid, Softsign and Hardsigmoid: of ``torch.tanh`` in a forward there
    is no module. Gates and attention weights may saturate because they should.
    """
    n = output_saturated.n
    return output_saturated.n_outside / n if n else math.nan
