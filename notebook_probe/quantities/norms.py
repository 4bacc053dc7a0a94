"""Sizes: Euclidean norms of weights, gradients, inputs and outputs.

All are pooled over a step: the norm of everything concatenated.
"""

from __future__ import annotations

from torch import Tensor

from notebook_probe.quantities.base import quantity
from notebook_probe.quantities.measure import measure
from notebook_probe.quantities.stat import Stat, root

__all__ = [
    "grad_norm",
    "grad_raw_norm",
    "input_grad_norm",
    "input_norm",
    "output_grad_norm",
    "output_norm",
    "weight_grad_norm",
    "weight_norm",
]


@quantity(aliases=("WeightNorm",), source="Taiyi")
def weight_norm(weight_sumsq: Stat) -> float:
    """Size of the weight, ``||W||_2`` over all its elements, as this step's forward used it."""
    return root(weight_sumsq.sumsq)


@quantity(aliases=("optimizer_grads_l2norm",), source="GoMLX")
def grad_norm(grad_sumsq: Stat) -> float:
    """Size of the gradient, ``||g||_2`` over all parameters below the module, as applied.

    Read when the optimizer steps: after accumulation and clipping. Missing without a gradient.
    """
    return root(grad_sumsq.sumsq)


@quantity(aliases=("InputSndNorm",), source="Taiyi")
def input_norm(input_sumsq: Stat) -> float:
    """Size of what comes in, ``||x||_2`` over all elements of every input tensor."""
    return root(input_sumsq.sumsq)


@quantity(source="definition")
def output_norm(output_sumsq: Stat) -> float:
    """Size of what comes out, ``||y||_2`` over all elements of every output tensor."""
    return root(output_sumsq.sumsq)


@quantity(aliases=("OutputGradSndNorm",), source="Taiyi")
def output_grad_norm(grad_output_sumsq: Stat) -> float:
    """Size of the gradient that reaches the output, ``||dL/dy||_2`` over all elements."""
    return root(grad_output_sumsq.sumsq)


@quantity(source="Taiyi")
def input_grad_norm(grad_input_sumsq: Stat) -> float:
    """Size of the gradient the module sends back, ``||dL/dx||_2`` over all its inputs.

    The module's own share: what other consumers of the same input send does not count. Missing
    when no input needs a gradient.
    """
    return root(grad_input_sumsq.sumsq)


@quantity(source="definition")
def grad_raw_norm(grad_raw_sumsq: Stat) -> float:
    """Size of the gradient as it was accumulated, ``||g||_2`` over all parameters below the module.

    Before clipping, unscaling and the exchange between processes; ``grad_norm`` is as applied.
    """
    return root(grad_raw_sumsq.sumsq)


@quantity(aliases=("WeightGradNorm",), combine="rss", source="Taiyi")
def weight_grad_norm(grad: Tensor) -> float:
    """Size of the gradient of the weight alone, ``||g||_2``; ``grad_norm`` has the bias as well."""
    return root(measure(grad, frozenset({"sumsq"})).sumsq)
