"""Sizes: Euclidean norms of weights, gradients, inputs and outputs.

All are pooled over a step: the norm of everything concatenated.
"""

from __future__ import annotations

from torch import Tensor

from notebook_probe.quantities.define import questions
from notebook_probe.quantities.define.decorator import quantity
from notebook_probe.quantities.reduce.measure import measure
from notebook_probe.quantities.reduce.stat import Stat, root

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


@quantity(aliases=("WeightNorm",), source="Taiyi", question=questions.LEARNING)
def weight_norm(weight_sumsq: Stat) -> float:
    """Size of the weight, ``||W||_2`` over all its elements, as this step's forward used it.

    Slow growth is usual without weight decay, a level with it. A jump is a step that was too large.
    In a pruned, normalized or parametrized layer it is the norm of the weight that the forward
    computes with, while `grad_norm` is the norm of the gradients of the optimizer's parameters.

    Warnings
    --------
    Grows with the layer: `weight_rms` compares layers. Before a normalisation the scale of a
    weight means nothing for the output, yet sets the effective learning rate.
    """
    return root(weight_sumsq.sumsq)


@quantity(
    aliases=("optimizer_grads_l2norm", "grad_norm_clipped"),
    source="GoMLX",
    question=questions.SIGNAL,
)
def grad_norm(grad_sumsq: Stat) -> float:
    """Size of the gradient, ``||g||_2`` over all parameters below the module, as applied.

    Read when the optimizer steps: after accumulation and clipping. Much smaller near the input
    than near the output, it vanishes; a jump to ten times its usual size often comes before the
    loss spikes. Missing without a gradient.

    Warnings
    --------
    Grows with the number of parameters: `grad_rms` compares layers. Where you clip, it is the
    clipped one; `grad_raw_norm` is not.
    """
    return root(grad_sumsq.sumsq)


@quantity(aliases=("InputSndNorm",), source="Taiyi", question=questions.SIGNAL)
def input_norm(input_sumsq: Stat) -> float:
    """Size of what comes in, ``||x||_2`` over all elements of every input tensor.

    Followed over steps: a rise tells that the layers before it grow.

    Warnings
    --------
    Grows with the batch and with the width: `input_rms` compares layers and batches.
    """
    return root(input_sumsq.sumsq)


@quantity(source="definition", question=questions.SIGNAL)
def output_norm(output_sumsq: Stat) -> float:
    """Size of what comes out, ``||y||_2`` over all elements of every output tensor.

    Followed over steps: a rise tells that the module amplifies, or is given more.

    Warnings
    --------
    Grows with the batch and with the width: `output_rms` compares layers and batches.
    """
    return root(output_sumsq.sumsq)


@quantity(aliases=("OutputGradSndNorm",), source="Taiyi", question=questions.SIGNAL)
def output_grad_norm(grad_output_sumsq: Stat) -> float:
    """Size of the gradient that reaches the output, ``||dL/dy||_2`` over all elements.

    Seen over the depth it is the backward signal itself: falling towards the input it vanishes,
    rising it explodes.

    Warnings
    --------
    With a loss that is a mean over samples it shrinks as the batch grows. Scaled under a
    gradient scaler.
    """
    return root(grad_output_sumsq.sumsq)


@quantity(source="Taiyi", question=questions.SIGNAL)
def input_grad_norm(grad_input_sumsq: Stat) -> float:
    """Size of the gradient the module sends back, ``||dL/dx||_2`` over all its inputs.

    Against `output_grad_norm` it tells whether the module amplifies or damps the backward
    signal. The module's own share: what other consumers of the same input send does not count.
    Missing when no input needs a gradient.

    Warnings
    --------
    The first layer has none, as its input is data. Scaled under a gradient scaler.
    """
    return root(grad_input_sumsq.sumsq)


@quantity(source="definition", question=questions.SPIKE)
def grad_raw_norm(grad_raw_sumsq: Stat) -> float:
    """Size of the gradient as accumulated, ``||g||_2`` over all parameters below the module.

    Before clipping, unscaling and the exchange between processes; `grad_norm` is as applied,
    and their ratio is what clipping did.

    Warnings
    --------
    Under a gradient scaler it holds the scale, thousands of times the real one.
    """
    return root(grad_raw_sumsq.sumsq)


@quantity(aliases=("WeightGradNorm",), combine="rss", source="Taiyi", question=questions.SIGNAL)
def weight_grad_norm(grad: Tensor) -> float:
    """Size of the gradient of the weight alone, ``||g||_2``; `grad_norm` has the bias as well.

    As `grad_norm`: followed over depth and steps. Missing without a gradient.

    Warnings
    --------
    Grows with the number of weights, and leaves out biases, whose gradients can be the larger
    ones.
    """
    return measure(grad, frozenset({"sumsq"})).sumsq ** 0.5
