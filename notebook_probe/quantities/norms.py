"""Sizes: Euclidean norms of weights, gradients, inputs, outputs and updates.

All are pooled over a step: the norm of everything concatenated.
"""

from __future__ import annotations

from notebook_probe.quantities.base import quantity
from notebook_probe.quantities.stat import Stat, root

__all__ = [
    "grad_norm",
    "grad_raw_norm",
    "input_grad_norm",
    "input_norm",
    "output_grad_norm",
    "output_norm",
    "update_ratio",
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


@quantity(source="https://cs231n.github.io/neural-networks-3/#ratio")
def update_ratio(update_sumsq: Stat, weight_sumsq: Stat) -> float:
    """Relative step of the weight, ``||W_after - W_before||_2 / (||W_before||_2 + 1e-12)``.

    The difference is the exact one, whatever the optimizer did. About 1e-3 is a usual rule of
    thumb for a healthy learning rate.
    """
    return root(update_sumsq.sumsq) / (root(weight_sumsq.sumsq) + 1e-12)


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
