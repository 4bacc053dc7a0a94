"""Class of a quantity's cost: the work of a probe of it in the steps where it is due."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal, TypeAlias, get_args

from notebook_probe.quantities.reduce.features import CALL, PARAMETER, REPLAY

__all__ = ["COSTS", "Cost", "cost_of_reading", "dearest", "is_light"]

Cost: TypeAlias = Literal[
    "scalar", "parameters", "activations", "sort", "factorisation", "forward", "backward"
]
"""Class of cost: an existing number; one pass over parameters, or over activations; a histogram
or quantiles; an eigenvalue problem; a further forward pass of the model; gradients or Hessian
products."""

COSTS: tuple[Cost, ...] = get_args(Cost)
"""The cheapest first."""


def is_light(cost: Cost) -> bool:
    """Return whether a quantity keeps only sums, from which its value takes no time."""
    return cost in COSTS[: COSTS.index("sort")]


def dearest(costs: Iterable[Cost]) -> Cost:
    """Return the class of what does all of this.

    >>> dearest(["parameters", "factorisation", "activations"])
    'factorisation'
    """
    return max(costs, key=COSTS.index, default="scalar")


def cost_of_reading(tensor: str) -> Cost:
    """Return the class of one pass over a tensor.

    >>> cost_of_reading("output"), cost_of_reading("state.exp_avg")
    ('activations', 'parameters')
    """
    if tensor in CALL:
        return "activations"
    if tensor in REPLAY:
        return "backward" if tensor == "landscape" else "forward"
    return "parameters" if tensor in PARAMETER or tensor.startswith("state.") else "scalar"
