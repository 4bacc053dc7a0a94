"""Attention written by hand in the ways people write it, and what is recorded of it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

import notebook_probe as nbp
from tests.quantities.attention_oracle import Scores, wide

N_ITEMS, LENGTH, WIDTH, HEADS = 3, 7, 16, 4

QUANTITIES = tuple(
    f"attn_{name}"
    for name in (
        "entropy",
        "entropy_min",
        "entropy_share",
        "max_logit",
        "sink_share",
        "narrowest_head",
        "max_logit_head",
        "head_entropy",
        "head_max_logit",
        "head_sink_share",
    )
)


class ByHand(nn.Module):
    """Projections, then whatever ``attend`` does with queries, keys and values of all heads."""

    def __init__(self, attend: Callable[[Tensor, Tensor, Tensor], Tensor], kv_heads: int) -> None:
        super().__init__()
        self.attend = attend
        size = WIDTH // HEADS
        self.heads = {"q": HEADS, "k": kv_heads, "v": kv_heads}
        self.q, self.k, self.v = (nn.Linear(WIDTH, n * size) for n in self.heads.values())
        self.last: tuple[Tensor, Tensor] | None = None

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = (
            layer(x).unflatten(-1, (n, -1)).transpose(1, 2)
            for layer, n in zip((self.q, self.k, self.v), self.heads.values(), strict=True)
        )
        self.last = (q, k)
        return self.attend(q, k, v).transpose(1, 2).flatten(-2)


def by_hand(
    attend: Callable[[Tensor, Tensor, Tensor], Tensor], kv_heads: int = HEADS
) -> nn.Sequential:
    torch.manual_seed(0)
    attention = ByHand(attend, kv_heads)
    with torch.no_grad():
        attention.q.weight *= 6  # scores that differ
    return nn.Sequential(nn.Linear(WIDTH, WIDTH), attention, nn.Linear(WIDTH, 2))


def batch(seed: int = 0) -> Tensor:
    return torch.randn(N_ITEMS, LENGTH, WIDTH, generator=torch.Generator().manual_seed(seed))


def train(model: nn.Module, steps: int = 1) -> None:
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for step in range(steps):
        optimizer.zero_grad()
        model(batch(step)).square().mean().backward()
        optimizer.step()


def recorded(path: Path, model: nn.Module, place: str = "1") -> dict[str, Any]:
    """What one step of training records at a place."""
    with nbp.watch(model, store=path / "run.zarr", probes={place: list(QUANTITIES)}) as run:
        train(model)
        assert not run.status().errors
    return {name: run.series(place, name).values[0] for name in QUANTITIES}


def products(model: nn.Sequential, **given: Any) -> Scores:
    """By numpy, of the queries and keys that a twin computes."""
    attention: Any = model[1]
    model(batch())
    q, k = attention.last
    return Scores.of(wide(q), wide(k), **given)


def agree(found: dict[str, Any], expected: Scores) -> None:
    for name, value in expected.values().items():
        assert found[name] == pytest.approx(value, rel=2e-5, abs=1e-6), name


def eager(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """As models did before there was a fused kernel."""
    scores = q @ k.mT / q.shape[-1] ** 0.5
    scores = scores.masked_fill(~causal(), torch.finfo(scores.dtype).min)
    return F.softmax(scores, dim=-1) @ v


def causal() -> Tensor:
    return torch.ones(LENGTH, LENGTH, dtype=torch.bool).tril()


CAUSAL = np.tril(np.ones((LENGTH, LENGTH), bool))
