"""Networks that read sequences."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F

__all__ = ["Encoder", "Gpt", "Recurrent", "SelfAttention"]


class SelfAttention(nn.Module):
    """Causal attention of some heads, computed by torch's function."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)

    def forward(self, x: Tensor) -> Tensor:
        batch, tokens, width = x.shape
        shape = (batch, tokens, self.heads, width // self.heads)
        q, k, v = (part.view(shape).transpose(1, 2) for part in self.qkv(x).chunk(3, -1))
        mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.out(mixed.transpose(1, 2).reshape(batch, tokens, width))


class _Block(nn.Module):
    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attn = SelfAttention(width, heads)
        self.mlp = nn.Sequential(
            nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width)
        )

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.attn(self.norm1(x))
        return x + self.mlp(self.norm2(x))


class Gpt(nn.Module):
    """Tokens, places, blocks, a head."""

    def __init__(self, n_tokens: int, width: int = 32, depth: int = 2, context: int = 32) -> None:
        super().__init__()
        self.tokens, self.places = nn.Embedding(n_tokens, width), nn.Embedding(context, width)
        self.blocks = nn.Sequential(*(_Block(width, 4) for _ in range(depth)))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, n_tokens, bias=False)
        for embedding in (self.tokens, self.places):
            nn.init.normal_(embedding.weight, std=0.02)

    def forward(self, ids: Tensor) -> Tensor:
        x = self.tokens(ids) + self.places(torch.arange(ids.shape[1]))
        return self.head(self.norm(self.blocks(x)))


class Recurrent(nn.Module):
    """A recurrent layer, whose last state is read by a linear one."""

    def __init__(self, layer: nn.RNNBase, n_out: int) -> None:
        super().__init__()
        self.rnn, self.head = layer, nn.Linear(layer.hidden_size, n_out)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.rnn(x)[0][:, -1])


class Encoder(nn.Module):
    """Vectors with places, mixed by torch's own attention and averaged."""

    def __init__(self, n_in: int, n_out: int, width: int = 32, length: int = 16) -> None:
        super().__init__()
        self.stem, self.places = nn.Linear(n_in, width), nn.Parameter(torch.zeros(length, width))
        self.attn = nn.MultiheadAttention(width, 4, batch_first=True)
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, n_out)

    def forward(self, x: Tensor) -> Tensor:
        x = self.stem(x) + self.places
        mixed, _ = self.attn(x, x, x, need_weights=False)
        return self.head(self.norm(x + mixed).mean(1))
