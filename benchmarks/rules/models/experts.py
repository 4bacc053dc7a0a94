"""Networks of parts that share the work."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from benchmarks.rules.models.plain import mlp

__all__ = ["Autoencoder", "Experts", "Translator"]


class Experts(nn.Module):
    """The two of four networks that a gate prefers, weighed by it."""

    def __init__(self, n_in: int, n_classes: int) -> None:
        super().__init__()
        self.gate = nn.Linear(n_in, 4)
        self.experts = nn.ModuleList(mlp(n_in, 32, n_classes) for _ in range(4))

    def forward(self, x: Tensor) -> Tensor:
        best, places = self.gate(x).topk(2)
        weights = torch.zeros(len(x), 4).scatter(1, places, best.softmax(-1))
        told = torch.stack([expert(x) for expert in self.experts], 1)
        return (weights[..., None] * told).sum(1)


class Autoencoder(nn.Module):
    """Down to a few numbers and up again; ``detached`` cuts the way back between the two."""

    def __init__(self, *, detached: bool) -> None:
        super().__init__()
        self.encoder, self.decoder = mlp(64, 48, 12, act=nn.ELU), mlp(12, 48, 64, act=nn.ELU)
        self.detached = detached

    def forward(self, x: Tensor) -> Tensor:
        code = self.encoder(x)
        return self.decoder(code.detach() if self.detached else code)


class Translator(nn.Module):
    """An LSTM reads numbers, another one writes them, told what came before."""

    def __init__(self, n_tokens: int, width: int = 48) -> None:
        super().__init__()
        self.tokens = nn.Embedding(n_tokens + 1, width)
        self.reader = nn.LSTM(width, width, batch_first=True)
        self.writer = nn.LSTM(width, width, batch_first=True)
        self.head = nn.Linear(width, n_tokens)

    def forward(self, source: Tensor, before: Tensor) -> Tensor:
        _, state = self.reader(self.tokens(source))
        told, _ = self.writer(self.tokens(before), state)
        return self.head(told)
