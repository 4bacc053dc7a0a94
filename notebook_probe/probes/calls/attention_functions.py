"""Attention functions of torch, and readers of the scores from their arguments."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

import torch
import torch.nn.functional as F
from torch import Tensor

from notebook_probe.probes.calls.multihead import scores_of_multihead
from notebook_probe.probes.calls.shards import own_heads
from notebook_probe.quantities.reduce.attention_scores import Attention, GivenScores, Products

__all__ = ["READERS", "Reader"]

Reader: TypeAlias = Callable[..., "Attention | None"]
"""Reader of the function's arguments; None where it is no attention."""

FEWEST_AXES = 3
"""Least number of axes of scores: a softmax over two chooses among classes or experts."""


def _scores_of_products(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Attention:
    """Read the scores from the arguments of ``scaled_dot_product_attention``."""
    mask = None if attn_mask is None else own_heads(attn_mask)
    return Products.of(own_heads(query), own_heads(key), mask, is_causal, scale)


def _scores_of_softmax(
    input: Tensor, dim: Any = None, *args: Any, **kwargs: Any
) -> Attention | None:
    """Read the scores from those of a softmax over the last of some axes."""
    is_last = isinstance(dim, int) and dim in (-1, input.dim() - 1)
    if not is_last or input.dim() < FEWEST_AXES or not input.is_floating_point():
        return None
    return GivenScores.of(own_heads(input))


READERS: Mapping[Callable[..., Any], Reader] = {
    F.scaled_dot_product_attention: _scores_of_products,
    F.multi_head_attention_forward: scores_of_multihead,
    F.softmax: _scores_of_softmax,
    torch.softmax: _scores_of_softmax,
    torch.special.softmax: _scores_of_softmax,
    Tensor.softmax: _scores_of_softmax,
}
"""Readers by function; attention computed by other functions is not seen."""
