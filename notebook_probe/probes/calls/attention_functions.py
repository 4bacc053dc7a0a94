"""The functions of torch that compute attention, and how the scores are found in what they take."""

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
"""Takes what the function takes; None where it is no attention."""

FEWEST_AXES = 3
"""Of scores: a softmax over two axes chooses among classes or experts."""


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
    """As ``scaled_dot_product_attention``."""
    mask = None if attn_mask is None else own_heads(attn_mask)
    return Products.of(own_heads(query), own_heads(key), mask, is_causal, scale)


def _scores_of_softmax(
    input: Tensor, dim: Any = None, *args: Any, **kwargs: Any
) -> Attention | None:
    """As every softmax: over the last of some axes it turns scores into shares."""
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
"""Whoever computes attention otherwise is not heard."""
