"""Gradients of several layers, and before and after clipping."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from notebook_probe.errors import UnreadableError
from notebook_probe.quantities.define import questions
from notebook_probe.quantities.define.decorator import quantity
from notebook_probe.quantities.reduce.stat import Stat, root

__all__ = ["clip_coefficient", "grad_depth_slope"]


@quantity(units="1/layer", source="https://arxiv.org/abs/2110.09456", question=questions.SIGNAL)
def grad_depth_slope(each_grad_sumsq: Sequence[Stat | None]) -> float:
    """Decades that gradients gain with every layer on their way back, ``slope of log10 ||g_k||_2``.

    The slope of a line, by least squares, through the gradient norms of the modules below that own
    parameters; ``k`` counts them from the last one. Attached to the root it sums up the network:
    near 0 is healthy, -0.3 means that gradients halve with every layer (they vanish towards the
    input), above 0 they grow (they explode). Missing with fewer than two layers that have a
    gradient; one of zeros is left out.

    Warnings
    --------
    The order is that of definition, and wide layers have larger norms than narrow ones: compare
    steps of one model rather than models. Inputs that grow from layer to layer make up for
    gradients that vanish on their way back: `output_grad_norm` shows these alone.
    """
    layers = enumerate(reversed(each_grad_sumsq))
    # A gradient of exactly 0 has no logarithm and would turn the line.
    known = [(k, one.sumsq) for k, one in layers if one is not None and one.sumsq != 0]
    if len(known) < 2:
        raise UnreadableError("fewer than two layers there have a gradient that is not zero")
    depth, sumsq = np.array(known).T
    with np.errstate(invalid="ignore"):
        away = depth - depth.mean()
        # Half of the logarithm of the squares is that of the norm.
        return float(away @ (0.5 * np.log10(sumsq)) / (away @ away))


@quantity(source="definition", question=questions.SPIKE)
def clip_coefficient(grad_sumsq: Stat, grad_raw_sumsq: Stat, loss_scale: float) -> float:
    """Share of the model's gradient left by clipping, ``||g applied||_2 / ||g accumulated||_2``.

    1 where nothing was clipped, ``c / ||g||`` where the norm was clipped to ``c``. Below 1 in
    nearly every step, the threshold is a second learning rate. A gradient scaler's scale is taken
    out.

    Warnings
    --------
    Whatever else changes gradients between the backward and the step counts too, as the mean over
    processes does.
    """
    raw = root(grad_raw_sumsq.sumsq) / loss_scale
    return root(grad_sumsq.sumsq) / raw if raw else math.nan
