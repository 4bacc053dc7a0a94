"""Small trained pieces in or on a network that is kept as it is."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from benchmarks.rules.data import Pair, batches
from benchmarks.rules.losses import cross_entropy

__all__ = ["Lora", "pretrain", "with_lora"]


class Lora(nn.Module):
    """A frozen linear layer with a trained product of low rank beside it (Hu et al. 2021)."""

    def __init__(self, base: nn.Linear, rank: int = 4) -> None:
        super().__init__()
        self.base = base.requires_grad_(False)
        self.lora_A = nn.Linear(base.in_features, rank, bias=False)
        self.lora_B = nn.Linear(rank, base.out_features, bias=False)
        nn.init.zeros_(self.lora_B.weight)

    def forward(self, x: Tensor) -> Tensor:
        return self.base(x) + 2.0 * self.lora_B(self.lora_A(x))


def with_lora(model: nn.Sequential, rank: int = 4) -> nn.Sequential:
    """The same model, each of its linear layers with an adapter."""
    layers = (Lora(layer, rank) if isinstance(layer, nn.Linear) else layer for layer in model)
    return nn.Sequential(*layers)


def pretrain(model: nn.Module, data: Pair, n_steps: int = 150) -> None:
    """Train it before anybody watches."""
    optimizer = torch.optim.Adam(model.parameters(), 3e-3)
    for _, batch in zip(range(n_steps), batches(data, 64, seed=9), strict=False):
        optimizer.zero_grad()
        x, y = batch
        cross_entropy(model, (x, y)).backward()
        optimizer.step()
