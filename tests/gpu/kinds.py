"""Four kinds of small models, whose training step waits for no device by itself."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from tests.models import ConvNet, floats, made, mlp

__all__ = ["KINDS", "Kind", "loss_of_output"]

WIDTH, TOKENS = 8, 5


class CausalAttention(nn.Module):
    """One head, written out: what fuses it exists on few devices."""

    def __init__(self) -> None:
        super().__init__()
        self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.register_buffer("unseen", torch.full((TOKENS, TOKENS), -1e4).triu(1))

    def forward(self, x: Tensor) -> Tensor:
        queries, keys, values = self.qkv(x).chunk(3, dim=-1)
        scores = queries @ keys.transpose(-1, -2) / WIDTH**0.5
        return self.out((scores + self.get_buffer("unseen")).softmax(-1) @ values)


class GptBlock(nn.Module):
    """A block of a GPT, of vectors that stand for tokens."""

    def __init__(self) -> None:
        super().__init__()
        self.norm1, self.attention = nn.LayerNorm(WIDTH), CausalAttention()
        self.norm2 = nn.LayerNorm(WIDTH)
        self.mlp = nn.Sequential(nn.Linear(WIDTH, 16), nn.GELU(), nn.Linear(16, WIDTH))

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.attention(self.norm1(x))
        return x + self.mlp(self.norm2(x))


class MixtureOfExperts(nn.Module):
    """Every expert reads every token; of each token the two that the router prefers count."""

    def __init__(self, n_experts: int = 4) -> None:
        super().__init__()
        self.router = nn.Linear(WIDTH, n_experts)
        self.experts = nn.ModuleList(
            nn.Sequential(nn.Linear(WIDTH, 16), nn.ReLU(), nn.Linear(16, WIDTH))
            for _ in range(n_experts)
        )
        self.head = nn.Linear(WIDTH, 3)

    def forward(self, x: Tensor) -> Tensor:
        scores = self.router(x)
        second = scores.topk(2, dim=-1).values[..., 1:]
        shares = scores.masked_fill(scores < second, -1e4).softmax(-1)
        given = torch.stack([expert(x) for expert in self.experts], dim=-1)
        return self.head(x + (given * shares[..., None, :]).sum(-1))


@dataclass(frozen=True)
class Kind:
    """A kind of model and its batches; the module at ``place`` has a weight."""

    build: Callable[[], nn.Module]
    batch: Callable[[int], Tensor]
    place: str

    def made(self) -> nn.Module:
        return made(self.build)


KINDS = {
    "mlp": Kind(mlp, floats(6, 4), "0"),
    "convolution": Kind(lambda: ConvNet(inplace=False), floats(4, 1, 6, 6), "conv2"),
    "gpt block": Kind(GptBlock, floats(3, TOKENS, WIDTH), "mlp.0"),
    "experts": Kind(MixtureOfExperts, floats(3, TOKENS, WIDTH), "experts.1.0"),
}


def loss_of_output(output: Tensor) -> Tensor:
    return (output.float() - 0.3).square().mean()
