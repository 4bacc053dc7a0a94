"""Mean and standard deviation of inputs and outputs, over all elements of a step."""

from __future__ import annotations

import math

from notebook_probe.quantities.define import questions
from notebook_probe.quantities.define.decorator import quantity
from notebook_probe.quantities.reduce.stat import Stat, root

__all__ = ["input_mean", "input_std", "output_mean", "output_std"]


def _std(stat: Stat) -> float:
    return root(stat.spread / (stat.n - 1)) if stat.n > 1 else math.nan


@quantity(aliases=("batch_input_mean",), source="definition", question=questions.SIGNAL)
def input_mean(input_moments: Stat) -> float:
    """Mean of what comes in, ``mean(x)`` over all elements.

    Near 0 is what most initialisations count on; far from 0 against `input_std`, every unit sees
    almost the same.

    Warnings
    --------
    One number for all channels, which may cancel: see `input_channel_mean`.
    """
    return input_moments.mean


@quantity(aliases=("InputStd", "batch_input_std"), source="Taiyi", question=questions.SIGNAL)
def input_std(input_moments: Stat) -> float:
    """Standard deviation of what comes in, ``sqrt(sum (x - mean)^2 / (n - 1))``.

    Over all elements. About 1 in a well scaled network; shrinking or growing from layer to
    layer, the signal vanishes or explodes. Missing for one element.

    Warnings
    --------
    Differences between channels count as spread, even where no channel varies.
    """
    return _std(input_moments)


@quantity(source="Glorot & Bengio 2010", question=questions.SIGNAL)
def output_mean(output_moments: Stat) -> float:
    """Mean activation, ``mean(y)`` over all elements of the output.

    A drift over the steps moves the layer behind along; after a ReLU it is positive and follows
    the scale.

    Warnings
    --------
    One number for all channels, which may cancel.
    """
    return output_moments.mean


@quantity(source="Glorot & Bengio 2010", question=questions.SIGNAL)
def output_std(output_moments: Stat) -> float:
    """Standard deviation of the activation, ``sqrt(sum (y - mean)^2 / (n - 1))``.

    Over all elements. Equal over the depth is what Glorot's and He's initialisations aim at.
    Falling with depth the signal vanishes, rising it explodes. Missing for one element.

    Warnings
    --------
    Differences between channels count as spread, even where no channel varies.
    """
    return _std(output_moments)
