"""Gains and shifts of a norm layer: the factor and the addend after it has normalized."""

from __future__ import annotations

from torch import Tensor, nn

from notebook_probe.errors import UnreadableError
from notebook_probe.quantities.define.decorator import quantity
from notebook_probe.quantities.define.questions import SIGNAL
from notebook_probe.quantities.reduce.arrays import readable
from notebook_probe.quantities.reduce.measure import measure
from notebook_probe.quantities.reduce.reductions import reduction
from notebook_probe.quantities.reduce.stat import Stat

__all__ = ["gain", "norm_bias_rms", "norm_gain_rms"]


def _misfit(module: nn.Module) -> str:
    weight = module._parameters.get("weight")
    return "" if weight is not None and weight.dim() == 1 else "has no gain, one weight per channel"


@reduction("gain", misfit=_misfit)
def gain(
    tensor: Tensor, module: nn.Module | None = None, wanted: frozenset[str] = frozenset()
) -> Stat:
    """Measure the sum of squares of a vector.

    Raises
    ------
    UnreadableError
        Several axes: the weight of something else than a norm.

    Examples
    --------
    >>> gain(nn.LayerNorm(4).weight).rms
    1.0
    """
    if tensor.dim() != 1:
        raise UnreadableError(f"of shape {tuple(tensor.shape)}; a norm's gain has one axis")
    return measure(tensor, frozenset({"sumsq"}))


@quantity(source="definition", question=SIGNAL)
def norm_gain_rms(weight_gain: Stat) -> float:
    """Usual gain of a norm layer, ``sqrt(mean gamma^2)``.

    1 at the start. The next layers see activations of about this size; a layer whose
    gain falls towards 0 is being switched off.

    Warnings
    --------
    Some models multiply by ``1 + weight``, as Gemma's norms do: there 0 is the start.
    """
    return weight_gain.rms


@quantity(cost="parameters", source="definition", question=SIGNAL)
def norm_bias_rms(module: nn.Module) -> Tensor:
    """Usual shift of a norm layer, ``sqrt(mean beta^2)``.

    0 at the start. With `norm_gain_rms` it tells how much of what leaves the norm is the same
    for every input. Missing for a norm without a bias.

    Warnings
    --------
    Before a linear layer it can be traded for that layer's bias and means nothing by itself.
    """
    bias = module._parameters.get("bias")
    if bias is None or _misfit(module):
        raise UnreadableError(f"{type(module).__name__} has no gain and bias per channel")
    return readable(bias).square().mean().sqrt()
