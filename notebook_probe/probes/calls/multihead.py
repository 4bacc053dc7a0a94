"""Queries, keys and masks inside ``F.multi_head_attention_forward``, computed again."""

from __future__ import annotations

import inspect
from types import SimpleNamespace
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from notebook_probe.errors import UnreadableError
from notebook_probe.quantities.reduce.attention_scores import Products

__all__ = ["scores_of_multihead"]

_SIGNATURE = inspect.signature(F.multi_head_attention_forward)


def scores_of_multihead(*args: Any, **kwargs: Any) -> Products:
    """Take the arguments of the function: rows are along the first axis, items along the second."""
    bound = _SIGNATURE.bind(*args, **kwargs)
    bound.apply_defaults()
    given = SimpleNamespace(**bound.arguments)
    if any(hasattr(one, "placements") for one in bound.arguments.values()):
        raise UnreadableError("nn.MultiheadAttention whose tensors are spread over processes")
    queries, keys = _projected(given)
    return Products.of(queries, keys, *_masks(given, keys))


def _projected(given: SimpleNamespace) -> tuple[Tensor, Tensor]:
    """Return queries and keys (batch, head, row, channel), with the keys that the module adds."""
    if given.use_separate_proj_weight:
        weights = given.q_proj_weight, given.k_proj_weight
    else:
        weights = given.in_proj_weight.chunk(3)[:2]
    biases = (None, None) if given.in_proj_bias is None else given.in_proj_bias.chunk(3)[:2]
    tensors = zip((given.query, given.key), weights, biases, strict=True)
    queries, keys = (_linear(*three) for three in tensors)
    if given.bias_k is not None:
        keys = torch.cat([keys, _wide(given.bias_k).expand(1, keys.shape[1], -1)])
    queries, keys = (
        rows.unflatten(-1, (given.num_heads, -1)).permute(1, 2, 0, 3) for rows in (queries, keys)
    )
    return queries, F.pad(keys, (0, 0, 0, 1)) if given.add_zero_attn else keys


def _linear(rows: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    rows = rows.unsqueeze(1) if rows.dim() == 2 else rows
    return F.linear(_wide(rows), _wide(weight), None if bias is None else _wide(bias))


def _masks(given: SimpleNamespace, keys: Tensor) -> tuple[Tensor | None, bool]:
    """Return what to add to (batch, head, query, key), and whether a hint replaces the mask."""
    hidden, mask = given.key_padding_mask, given.attn_mask
    if given.is_causal and hidden is None and not given.need_weights:
        return None, True
    parts = []
    if mask is not None:
        by_head = mask if mask.dim() == 2 else mask.unflatten(0, (-1, given.num_heads))
        parts.append(_added(by_head, keys))
    if hidden is not None:
        parts.append(_added(torch.atleast_2d(hidden)[:, None, None], keys))
    return (sum(parts[1:], parts[0]) if parts else None), False


def _added(mask: Tensor, keys: Tensor) -> Tensor:
    """Return a mask, True where a key is hidden, as addends; the module's own keys are seen."""
    if mask.dtype is torch.bool:
        mask = torch.zeros_like(mask, dtype=keys.dtype).masked_fill_(mask, -torch.inf)
    return F.pad(mask, (0, keys.shape[-2] - mask.shape[-1]))


def _wide(tensor: Tensor) -> Tensor:
    tensor = tensor.detach()
    return tensor.to(torch.promote_types(tensor.dtype, torch.float32))
