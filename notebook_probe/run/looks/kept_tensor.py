"""What of a tensor is kept when somebody looks: a part of it, and what is true of all of it."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from notebook_probe.axis import ARRAYS
from notebook_probe.quantities.define.decorator import define
from notebook_probe.quantities.define.quantity import Quantity
from notebook_probe.quantities.reduce.attention_scores import Attention
from notebook_probe.record.views.looks import TensorFacts

__all__ = ["TENSORS", "KeptTensor"]

MOST = 2**20
"""Elements of one tensor that are kept."""


class KeptTensor:
    """Some samples of a tensor, and statistics of all of it."""

    def __init__(self, tensor: str, n_samples: int) -> None:
        self.tensor, self._n_samples = tensor, n_samples
        self.facts: TensorFacts | None = None
        """Of the last call in which it was there."""
        self.stored = ""
        """Name of the record's array; empty until something is there."""

    def quantity(self) -> Quantity:
        """What measures it, and leaves its facts here."""
        read, reads = _READERS[self.tensor]

        name = f"look_{self.tensor}"

        def look(value: Any) -> Tensor:
            """The tensor itself."""
            kept = read(self, value)
            self.stored = ARRAYS.stored(name, tuple(kept.shape))
            return kept

        return define(look, reads, name=name, combine="last", axis=ARRAYS)

    def of_batch(self, tensor: Tensor) -> Tensor:
        """Some samples, which lie along the first dimension."""
        n = self._n_samples if tensor.ndim > 1 else MOST
        while n > 1 and tensor[:n].numel() > MOST:
            n //= 2
        return self._kept(tensor, tensor[:n] if tensor.ndim else tensor)

    def whole(self, tensor: Tensor) -> Tensor:
        return self._kept(tensor, tensor)

    def shares(self, attention: Attention) -> Tensor:
        """How each query of some samples shares out its attention, (batch, head, query, key)."""
        n_items, n_heads, n_queries, n_keys = attention.shape
        fitting = max(1, MOST // max(1, n_heads * n_queries * n_keys))
        wanted = min(self._n_samples, fitting, n_items)
        flat: list[Tensor] = []
        for piece in attention.pieces():  # (some items, all heads, some queries, all keys)
            sees_none = (piece == -torch.inf).all(-1, keepdim=True)
            flat.append(torch.softmax(piece, -1).masked_fill(sees_none, 0.0))
            if sum(map(_n_queries_of, flat)) >= wanted * n_queries:
                break
        shares = _joined(flat, n_queries)[:wanted]
        kept = self._kept(shares, shares)
        assert self.facts is not None
        self.facts = self.facts.of_shape(attention.shape)
        return kept

    def _kept(self, tensor: Tensor, part: Tensor) -> Tensor:
        part = part.detach().reshape(part.shape or (1,))
        every, along = 1, 0
        if part.numel() > MOST:
            along = max(range(part.ndim), key=lambda dim: part.shape[dim])
            every = math.ceil(part.numel() / MOST)
            part = part[(slice(None),) * along + (slice(None, None, every),)]
        self.facts = _facts(tensor.detach(), every, along)
        return part


def _n_queries_of(piece: Tensor) -> int:
    return piece.shape[0] * piece.shape[2]


def _joined(pieces: list[Tensor], n_queries: int) -> Tensor:
    """Pieces in the order of items, then queries, as (item, head, query, key)."""
    rows = torch.cat([piece.transpose(1, 2).flatten(0, 1) for piece in pieces])
    n_items = rows.shape[0] // n_queries
    return rows[: n_items * n_queries].unflatten(0, (n_items, n_queries)).transpose(1, 2)


def _facts(tensor: Tensor, every: int, along: int) -> TensorFacts:
    numbers = tensor.double() if tensor.dtype is torch.float64 else tensor.float()
    finite = numbers[torch.isfinite(numbers)]
    low, high = finite.aminmax() if finite.numel() else (finite.sum(), finite.sum())
    std, mean = (
        torch.std_mean(finite, correction=0) if finite.numel() else (finite.sum(), finite.sum())
    )
    n_zero = numbers.numel() - torch.count_nonzero(numbers)
    found = torch.stack([low, mean, high, std, n_zero.to(low.dtype)]).tolist()
    n_nonfinite = numbers.numel() - finite.numel()
    return TensorFacts(
        shape=tuple(tensor.shape),
        dtype=str(tensor.dtype).removeprefix("torch."),
        device=str(tensor.device),
        minimum=found[0] if finite.numel() else math.nan,
        mean=found[1] if finite.numel() else math.nan,
        maximum=found[2] if finite.numel() else math.nan,
        std=found[3] if finite.numel() else math.nan,
        zeros=int(found[4]),
        nonfinite=n_nonfinite,
        every=every,
        along=along,
    )


_Read = Callable[[KeptTensor, Any], Tensor]

_READERS: dict[str, tuple[_Read, Callable[..., None]]] = {
    "input": (KeptTensor.of_batch, lambda input: None),
    "output": (KeptTensor.of_batch, lambda output: None),
    "grad_output": (KeptTensor.of_batch, lambda grad_output: None),
    "weight": (KeptTensor.whole, lambda weight: None),
    "grad": (KeptTensor.whole, lambda grad: None),
    "update": (KeptTensor.whole, lambda update: None),
    "attention": (KeptTensor.shares, lambda attention: None),
}

TENSORS = tuple(_READERS)
"""What is looked at of a module, as far as it has it."""
