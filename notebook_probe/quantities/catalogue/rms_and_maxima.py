"""Scales of single elements, which tensors of different sizes share: root mean squares, maxima."""

from __future__ import annotations

from notebook_probe.quantities.define import questions
from notebook_probe.quantities.define.decorator import quantity
from notebook_probe.quantities.reduce.stat import Stat

__all__ = [
    "grad_abs_max",
    "grad_rms",
    "input_abs_max",
    "input_rms",
    "output_abs_max",
    "output_grad_abs_max",
    "output_grad_rms",
    "output_rms",
    "update_rms",
    "weight_abs_max",
    "weight_rms",
]


@quantity(source="definition", question=questions.LEARNING)
def weight_rms(weight_sumsq: Stat) -> float:
    """Usual size of a weight, ``||W||_2 / sqrt(n)``: comparable between layers of any width.

    Initialisations make it about ``1 / sqrt(inputs)``; what moves far away from there is being
    trained hard, or decays.

    Warnings
    --------
    A few huge weights hide in it: see `weight_abs_max`.
    """
    return weight_sumsq.rms


@quantity(source="https://arxiv.org/abs/2502.16982", question=questions.RATE)
def update_rms(update_sumsq: Stat) -> float:
    """Usual size of the step of a weight, ``||W_after - W_before||_2 / sqrt(n)``.

    Comparable between layers of any shape and between optimizers: divided by the learning rate it
    is 0.2 to 0.4 for AdamW, and what a rule of Muon is scaled to.

    Warnings
    --------
    Weight decay is part of the step.
    """
    return update_sumsq.rms


@quantity(source="definition", question=questions.SIGNAL)
def grad_rms(grad_sumsq: Stat) -> float:
    """Usual size of a gradient, ``||g||_2 / sqrt(n)`` over all parameters below the module.

    Comparable between layers. Falling by a constant factor per layer towards the input, it
    vanishes; below 1e-8 Adam's epsilon rules the step.

    Warnings
    --------
    As applied: after clipping. Embeddings have many exact zeros, which make it small.
    """
    return grad_sumsq.rms


@quantity(source="definition", question=questions.SIGNAL)
def input_rms(input_sumsq: Stat) -> float:
    """Usual size of what comes in, ``||x||_2 / sqrt(n)``.

    About 1 after a normalisation. Comparable between layers and batch sizes.

    Warnings
    --------
    Padding counts as elements and makes it small.
    """
    return input_sumsq.rms


@quantity(source="definition", question=questions.SIGNAL)
def output_rms(output_sumsq: Stat) -> float:
    """Usual size of an activation, ``||y||_2 / sqrt(n)``.

    Equal over the depth when the initialisation fits the activation function; the residual
    stream of a transformer grows with depth by design.

    Warnings
    --------
    A few huge elements make most of it: see `output_abs_max`.
    """
    return output_sumsq.rms


@quantity(source="definition", question=questions.SIGNAL)
def output_grad_rms(grad_output_sumsq: Stat) -> float:
    """Usual size of the gradient that reaches the output, ``||dL/dy||_2 / sqrt(n)``.

    The backward signal, comparable between layers of any width: equal over the depth in a well
    scaled network.

    Warnings
    --------
    With a loss that is a mean over samples it shrinks as the batch grows. Scaled under a
    gradient scaler.
    """
    return grad_output_sumsq.rms


@quantity(source="definition", question=questions.RANGE)
def weight_abs_max(weight_largest: Stat) -> float:
    """Largest weight, ``max |W|``.

    Far above `weight_rms`, say a hundred times, there are outliers, which hurt quantisation.

    Warnings
    --------
    A single element decides it.
    """
    return weight_largest.largest


@quantity(source="definition", question=questions.SPIKE)
def grad_abs_max(grad_largest: Stat) -> float:
    """Largest gradient, ``max |g|`` over all parameters below the module, as applied.

    Jumps when few samples or units carry the step: a rare word, a mislabelled image.

    Warnings
    --------
    A single element decides it. After clipping.
    """
    return grad_largest.largest


@quantity(source="definition", question=questions.RANGE)
def input_abs_max(input_largest: Stat) -> float:
    """Largest element that comes in, ``max |x|``.

    Against the largest number of the type it tells how near overflow is; a sudden rise is often
    a broken batch.

    Warnings
    --------
    A single element decides it.
    """
    return input_largest.largest


@quantity(source="definition", question=questions.RANGE)
def output_abs_max(output_largest: Stat) -> float:
    """Largest activation, ``max |y|``.

    Compare 65504, the largest number of float16. A few channels of transformers hold values a
    thousand times the median; those are the ones to watch.

    Warnings
    --------
    A single element decides it. Infinite values show as infinite, NaN as NaN.
    """
    return output_largest.largest


@quantity(source="definition", question=questions.RANGE)
def output_grad_abs_max(grad_output_largest: Stat) -> float:
    """Largest gradient that reaches the output, ``max |dL/dy|``.

    With `output_grad_rms` it tells whether one sample pulls alone.

    Warnings
    --------
    A single element decides it. Scaled under a gradient scaler.
    """
    return grad_output_largest.largest
