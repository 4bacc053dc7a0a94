"""Stored part of a tensor in a look, and facts about all of it."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from notebook_probe.axis import ARRAYS
from notebook_probe.probes.reading.host_copy import HostBatch
from notebook_probe.quantities.define.decorator import define
from notebook_probe.quantities.define.quantity import Quantity
from notebook_probe.quantities.reduce.attention_scores import Attention
from notebook_probe.record.views.looks import TensorFacts

__all__ = ["TENSORS", "KeptTensor"]

MOST = 2**20
"""Elements of one tensor that are kept."""


class KeptTensor:
    """Samples of a tensor, at most ``most`` elements, and statistics of all of it."""

    def __init__(self, tensor: str, n_samples: int, most: int | None = None) -> None:
        self.tensor, self._n_samples, self._most = tensor, n_samples, most or MOST
        self._facts: _Facts | None = None
        self.stored = ""
        """Name of the record's array; empty until something is there."""

    @property
    def facts(self) -> TensorFacts | None:
        """Facts of the last call that had the tensor; waits for a device."""
        return None if self._facts is None else self._facts.value()

    @property
    def has_come(self) -> bool:
        """Asking for the facts will not wait."""
        return self._facts is None or self._facts.has_come

    def quantity(self) -> Quantity:
        """Return a quantity that measures the tensor, and stores its facts here."""
        read, reads = _READERS[self.tensor]

        name = f"look_{self.tensor}"

        def look(value: Any) -> Tensor:
            """Return the stored part of the tensor."""
            kept = read(self, value)
            self.stored = ARRAYS.stored(name, tuple(kept.shape))
            return kept

        return define(look, reads, name=name, combine="last", axis=ARRAYS)

    def of_batch(self, tensor: Tensor) -> Tensor:
        """Return some samples, along the first dimension."""
        n = self._n_samples if tensor.ndim > 1 else self._most
        # Halved until it fits: samples stay whole, which is what a look compares.
        while n > 1 and tensor[:n].numel() > self._most:
            n //= 2
        return self._kept(tensor, tensor[:n] if tensor.ndim else tensor)

    def whole(self, tensor: Tensor) -> Tensor:
        return self._kept(tensor, tensor)

    def shares(self, attention: Attention) -> Tensor:
        """Return the attention weights of some samples, (batch, head, query, key)."""
        n_items, n_heads, n_queries, n_keys = attention.shape
        fitting = max(1, self._most // max(1, n_heads * n_queries * n_keys))
        wanted = min(self._n_samples, fitting, n_items)
        flat: list[Tensor] = []
        for piece in attention.pieces():  # (some items, all heads, some queries, all keys)
            sees_none = (piece == -torch.inf).all(-1, keepdim=True)
            flat.append(torch.softmax(piece, -1).masked_fill(sees_none, 0.0))
            if sum(map(_n_queries_of, flat)) >= wanted * n_queries:
                break
        shares = _joined(flat, n_queries)[:wanted]
        return self._kept(shares, shares, attention.shape)

    def _kept(self, tensor: Tensor, part: Tensor, shape: tuple[int, ...] | None = None) -> Tensor:
        # A record has no array without axes.
        part = part.detach().reshape(part.shape or (1,))
        every, along = 1, 0
        if part.numel() > self._most:
            # Thinned along the longest axis, which distorts the picture least.
            along = max(range(part.ndim), key=lambda dim: part.shape[dim])
            every = math.ceil(part.numel() / self._most)
            part = part[(slice(None),) * along + (slice(None, None, every),)]
        # Of the whole tensor: the stored part may miss the one element that is infinite.
        self._facts = _Facts(tensor.detach(), every, along, shape or tuple(tensor.shape))
        return part


def _n_queries_of(piece: Tensor) -> int:
    return piece.shape[0] * piece.shape[2]


def _joined(pieces: list[Tensor], n_queries: int) -> Tensor:
    """Pieces in the order of items, then queries, as (item, head, query, key)."""
    rows = torch.cat([piece.transpose(1, 2).flatten(0, 1) for piece in pieces])
    n_items = rows.shape[0] // n_queries
    return rows[: n_items * n_queries].unflatten(0, (n_items, n_queries)).transpose(1, 2)


class _Facts:
    """Statistics of a whole tensor, on their way to the host where it is on a device."""

    def __init__(self, tensor: Tensor, every: int, along: int, shape: tuple[int, ...]) -> None:
        self._shape, self._every, self._along = tuple(shape), every, along
        self._n = tensor.numel()
        self._dtype = str(tensor.dtype).removeprefix("torch.")
        self._device = str(tensor.device)
        self._statistics = _statistics(tensor)
        self._copy: HostBatch | None = None

    @property
    def _coming(self) -> HostBatch:
        """Copy of the numbers to the host, begun at the first request, between two steps."""
        if self._copy is None:
            self._copy = HostBatch([self._statistics])
        return self._copy

    @property
    def has_come(self) -> bool:
        """The numbers are on the host."""
        return self._coming.has_come

    def value(self) -> TensorFacts:
        """Return the facts; waits for the numbers."""
        (found,) = self._coming.values()
        low, mean, high, std, n_zero, n_finite = found.tolist()
        is_known = n_finite > 0
        return TensorFacts(
            shape=self._shape,
            dtype=self._dtype,
            device=self._device,
            minimum=low if is_known else math.nan,
            mean=mean if is_known else math.nan,
            maximum=high if is_known else math.nan,
            std=std if is_known else math.nan,
            zeros=int(n_zero),
            nonfinite=self._n - int(n_finite),
            every=self._every,
            along=self._along,
        )


def _statistics(tensor: Tensor) -> Tensor:
    """Smallest, mean and largest finite element, their deviation, numbers of zeros and of them."""
    tensor = tensor.cpu() if tensor.device.type == "mps" else tensor  # which has no float64
    numbers = tensor if tensor.dtype is torch.float64 else tensor.float()
    if not numbers.numel():
        return numbers.new_zeros(6, dtype=torch.float64)
    finite = torch.isfinite(numbers)
    n_finite, n_zero = finite.sum().double(), (numbers == 0).sum().double()
    low = numbers.where(finite, math.inf).amin().double()
    high = numbers.where(finite, -math.inf).amax().double()
    # Elements that are not finite are left out here, and counted apart.
    known = numbers.where(finite, 0.0)
    # In two passes: a sum of squares would lose small deviations from a large mean.
    mean = known.sum(dtype=torch.float64) / n_finite
    off = (known - mean).where(finite, 0.0)
    std = (off.square().sum(dtype=torch.float64) / n_finite).sqrt()
    return torch.stack([low, mean, high, std, n_zero, n_finite])


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
"""Tensors of a module that a look shows, if it has them."""
