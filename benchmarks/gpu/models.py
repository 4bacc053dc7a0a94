"""An MLP, ResNet-50 (He et al. 2015) and GPT-2 small (Radford et al. 2019), written out.

Each comes in its own size, for a GPU, and in a small one, in which a CPU runs it in no time.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional as F

__all__ = ["MODELS", "Made"]


@dataclass(frozen=True)
class Made:
    """A model with a batch, on the host."""

    model: nn.Module
    inputs: Tensor
    targets: Tensor
    learning_rate: float


Build = Callable[[bool, float], Made]
"""``build(small, share)``, with a share of the usual batch."""


def _part(n_samples: int, share: float) -> int:
    return max(2, int(share * n_samples))


def _mlp(small: bool, share: float) -> Made:
    """Six linear layers of width 2048, batch 1024."""
    width, n_layers, n_samples = (32, 3, 8) if small else (2048, 6, 1024)
    layers = [nn.Sequential(nn.Linear(width, width), nn.ReLU()) for _ in range(n_layers)]
    model = nn.Sequential(*layers, nn.Linear(width, 10))
    n_samples = _part(n_samples, share)
    return Made(model, torch.randn(n_samples, width), torch.randint(0, 10, (n_samples,)), 1e-2)


class _Bottleneck(nn.Module):
    def __init__(self, n_in: int, width: int, stride: int) -> None:
        super().__init__()
        n_out = 4 * width
        self.conv1, self.bn1 = nn.Conv2d(n_in, width, 1, bias=False), nn.BatchNorm2d(width)
        self.conv2 = nn.Conv2d(width, width, 3, stride, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(width)
        self.conv3, self.bn3 = nn.Conv2d(width, n_out, 1, bias=False), nn.BatchNorm2d(n_out)
        self.relu = nn.ReLU(inplace=True)
        self.shortcut: nn.Module = nn.Identity()
        if stride != 1 or n_in != n_out:
            conv = nn.Conv2d(n_in, n_out, 1, stride, bias=False)
            self.shortcut = nn.Sequential(conv, nn.BatchNorm2d(n_out))

    def forward(self, x: Tensor) -> Tensor:
        y = self.relu(self.bn1(self.conv1(x)))
        y = self.relu(self.bn2(self.conv2(y)))
        return self.relu(self.bn3(self.conv3(y)) + self.shortcut(x))


class _ResNet(nn.Module):
    def __init__(self, depths: tuple[int, ...], width: int) -> None:
        super().__init__()
        stem = nn.Conv2d(3, width, 7, 2, 3, bias=False), nn.BatchNorm2d(width), nn.ReLU(True)
        self.stem = nn.Sequential(*stem, nn.MaxPool2d(3, 2, 1))
        blocks: list[nn.Module] = []
        n_in = width
        for level, depth in enumerate(depths):
            inner = width << level
            for n in range(depth):
                blocks.append(_Bottleneck(n_in, inner, 2 if level and not n else 1))
                n_in = 4 * inner
        self.blocks = nn.Sequential(*blocks)
        self.pool, self.head = nn.AdaptiveAvgPool2d(1), nn.Linear(n_in, 1000)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.pool(self.blocks(self.stem(x))).flatten(1))


def _resnet(small: bool, share: float) -> Made:
    """ResNet-50, batch 64 of 3 x 224 x 224."""
    depths, width, n_samples, size = ((1, 1), 8, 2, 32) if small else ((3, 4, 6, 3), 64, 64, 224)
    n_samples = _part(n_samples, share)
    images = torch.randn(n_samples, 3, size, size)
    return Made(_ResNet(depths, width), images, torch.randint(0, 1000, (n_samples,)), 1e-2)


class _Block(nn.Module):
    def __init__(self, width: int, n_heads: int) -> None:
        super().__init__()
        self.n_heads = n_heads
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.act = nn.Linear(width, 4 * width), nn.GELU(approximate="tanh")
        self.down = nn.Linear(4 * width, width)

    def forward(self, x: Tensor) -> Tensor:
        heads = self.qkv(self.norm1(x)).unflatten(-1, (3, self.n_heads, -1))
        q, k, v = heads.permute(2, 0, 3, 1, 4)
        mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(mixed.transpose(1, 2).flatten(2))
        return x + self.down(self.act(self.up(self.norm2(x))))


class _Gpt2(nn.Module):
    def __init__(self, n_tokens: int, width: int, n_blocks: int, context: int) -> None:
        super().__init__()
        self.tokens, self.places = nn.Embedding(n_tokens, width), nn.Embedding(context, width)
        self.blocks = nn.ModuleList(_Block(width, max(1, width // 64)) for _ in range(n_blocks))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, n_tokens, bias=False)
        self.head.weight = self.tokens.weight
        nn.init.normal_(self.tokens.weight, std=0.02)

    def forward(self, ids: Tensor) -> Tensor:
        x = self.tokens(ids) + self.places(torch.arange(ids.shape[1], device=ids.device))
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x)).flatten(0, 1)


def _gpt2(small: bool, share: float) -> Made:
    """GPT-2 small, 124 million parameters, batch 8 of 1024 tokens."""
    sizes = (97, 32, 2, 16) if small else (50257, 768, 12, 1024)
    n_samples, context = (2, 16) if small else (8, 1024)
    n_samples = _part(n_samples, share)
    ids = torch.randint(0, sizes[0], (n_samples, context + 1))
    return Made(_Gpt2(*sizes), ids[:, :-1], ids[:, 1:].flatten(), 1e-4)


MODELS: dict[str, Build] = {"MLP": _mlp, "GPT-2 small": _gpt2, "ResNet-50": _resnet}
