"""The scores of one attention: what its softmax turned into shares of each query's attention.

They are computed again, in pieces of limited size, from the queries and keys that the module has
computed; kernels that never write them down lose nothing by it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import product

import torch
from torch import Tensor

from notebook_probe.errors import UnreadableError

__all__ = ["Attention", "GivenScores", "Products"]

PIECE = 1 << 20
"""Scores of a piece on a CPU, unless those of one query in all heads are more: 4 MB."""

DEVICE_PIECE = 1 << 24
"""Scores of a piece on an accelerator, where many small pieces take long to launch: 64 MB."""


class Attention(ABC):
    """Scores of an attention, (batch, head, query, key).

    Attributes
    ----------
    shape : tuple of int
        Sizes along batch, head, query and key.
    """

    shape: tuple[int, int, int, int]

    def pieces(self) -> Iterator[Tensor]:
        """Every score once: some items, all heads, some queries, all keys, at least in float32.

        A key that a query may not see has the score -inf.

        Examples
        --------
        >>> queries = torch.ones(2, 4, 3, 8)
        >>> [piece.shape for piece in Products.of(queries, queries).pieces()]
        [torch.Size([2, 4, 3, 3])]
        """
        n_items, n_heads, n_queries, n_keys = self.shape
        # The whole matrix of scores is what fused kernels avoid; it must not come back for a
        # measurement.
        most, row = PIECE if self.is_cpu else DEVICE_PIECE, max(1, n_heads * n_keys)
        some_queries = _slices(n_queries, most // row)
        some_items = _slices(n_items, most // (row * max(1, n_queries)))
        # All queries of some items if they fit, else some queries of one item.
        for items, queries in product(some_items, some_queries):
            yield self._piece(items, queries)

    @property
    @abstractmethod
    def is_cpu(self) -> bool:
        """True if its tensors are on the host."""

    @abstractmethod
    def _piece(self, items: slice, queries: slice) -> Tensor:
        """Return a copy of some scores."""


@dataclass(eq=False)
class Products(Attention):
    """Scores of queries and keys, ``q.k * scale`` under a mask; made by `of`."""

    query: Tensor
    """(batch, head, query, channel)"""
    key: Tensor
    """(batch, head, key, channel); of fewer heads when some queries share theirs."""
    mask: Tensor | None
    """(batch, head, query, key): False where a key is hidden, or numbers to add."""
    is_causal: bool
    scale: float
    shape: tuple[int, int, int, int] = field(init=False)

    def __post_init__(self) -> None:
        n_items, n_heads, n_queries, _ = self.query.shape
        self.shape = n_items, n_heads, n_queries, self.key.shape[2]

    @classmethod
    def of(
        cls,
        query: Tensor,
        key: Tensor,
        mask: Tensor | None = None,
        is_causal: bool = False,
        scale: float | None = None,
    ) -> Products:
        """Read tensors as ``scaled_dot_product_attention`` does: (batch, ..., head, row, channel).

        With three axes there is a single head, with two also a single item.
        """
        queries, keys = _four(query.detach()), _four(key.detach())
        if mask is not None:
            mask = _four(mask.detach().expand(*query.shape[:-1], key.shape[-2]))
        scale = query.shape[-1] ** -0.5 if scale is None else scale
        return cls(queries, keys.expand(len(queries), -1, -1, -1), mask, is_causal, scale)

    @property
    def is_cpu(self) -> bool:
        return self.query.is_cpu

    def norm_products(self) -> Tensor:
        """Return each head's largest product of a query's and a key's norm, scaled; (head,)."""
        longest = [_longest(self.query), _longest(self.key)]
        n_sharing = self.query.shape[1] // self.key.shape[1]
        keys = longest[1].repeat_interleave(n_sharing, dim=1)
        return (longest[0] * keys).amax(0) * abs(self.scale)

    def _piece(self, items: slice, queries: slice) -> Tensor:
        query, key = _wide(self.query[items, :, queries]), _wide(self.key[items])
        # Grouped-query attention: several query heads share a key head, without repeating the keys.
        shared = query.unflatten(1, (key.shape[1], -1))
        scores = (shared @ key.unsqueeze(2).mT).flatten(1, 2) * self.scale
        if self.mask is not None:
            scores = _masked(scores, self.mask[items, :, queries])
        if self.is_causal:
            # A causal mask counts from the first query and key, as torch's `is_causal` does.
            later = scores.new_full(scores.shape[-2:], -torch.inf).triu_(1 + queries.start)
            scores += later
        return scores


@dataclass(eq=False)
class GivenScores(Attention):
    """Scores that were written down, as they were handed to a softmax; made by `of`."""

    scores: Tensor
    shape: tuple[int, int, int, int] = field(init=False)

    def __post_init__(self) -> None:
        n_items, n_heads, n_queries, n_keys = self.scores.shape
        self.shape = n_items, n_heads, n_queries, n_keys

    @classmethod
    def of(cls, scores: Tensor) -> GivenScores:
        """Read (batch, ..., head, query, key); of three axes there is a single head."""
        return cls(_four(scores.detach()))

    @property
    def is_cpu(self) -> bool:
        return self.scores.is_cpu

    def _piece(self, items: slice, queries: slice) -> Tensor:
        scores = self.scores[items, :, queries]
        # A copy in any case, as Heads.of overwrites what it gets.
        copy = scores.to(torch.promote_types(scores.dtype, torch.float32), copy=True)
        return copy.masked_fill_(scores <= _hidden(scores), -torch.inf)


def _slices(n: int, size: int) -> list[slice]:
    size = max(1, size)
    return [slice(start, min(start + size, n)) for start in range(0, n, size)]


def _four(tensor: Tensor) -> Tensor:
    """Return the axes before the last two as batch and head."""
    if tensor.is_nested:
        raise UnreadableError("attention over nested tensors cannot be read")
    while tensor.dim() < 3:
        tensor = tensor.unsqueeze(0)
    # A single head is an axis of size 1.
    return tensor.unsqueeze(1) if tensor.dim() == 3 else tensor.flatten(0, -4)


def _longest(rows: Tensor) -> Tensor:
    """Return the largest norm of a row, (batch, head); NaN if one is."""
    wide = torch.promote_types(rows.dtype, torch.float32)
    return torch.linalg.vector_norm(rows, dim=-1, dtype=wide).amax(-1)


def _wide(tensor: Tensor) -> Tensor:
    return tensor.to(torch.promote_types(tensor.dtype, torch.float32))


def _masked(scores: Tensor, mask: Tensor) -> Tensor:
    if mask.dtype is torch.bool:
        return scores.masked_fill_(~mask, -torch.inf)
    scores = scores + mask
    return scores.masked_fill_(scores <= _hidden(mask), -torch.inf)


def _hidden(scores: Tensor) -> float:
    """Return the highest masked score: many masks add the type's lowest number, not -inf."""
    return torch.finfo(scores.dtype).min / 2
