"""Three training steps of different length: an MLP, a CIFAR ResNet-18 and a small GPT.

Random data of the right shape: the cost of reading a tensor does not depend on what is in it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ParamSpec, TypeAlias

import torch
from torch import Tensor, nn
from torch.nn import functional as F

__all__ = ["WORKLOADS", "Workload", "mlp", "small_gpt", "twins"]

P = ParamSpec("P")


@dataclass(frozen=True)
class Workload:
    """A model, its optimizer and one training step on a fixed batch."""

    model: nn.Module
    optimizer: torch.optim.Optimizer
    inputs: Tensor
    targets: Tensor
    loss_fn: Callable[[Tensor, Tensor], Tensor] = F.cross_entropy

    def step(self, after_backward: Callable[[], None] | None = None) -> None:
        """Train one step; tools that are told of it by hand are told after the backward."""
        loss = self.loss_fn(self.model(self.inputs), self.targets)
        self.optimizer.zero_grad()
        loss.backward()
        if after_backward is not None:
            after_backward()
        self.optimizer.step()


Twins: TypeAlias = tuple[Workload, Workload]
_spares: list[Workload] = []


def twins(make: Callable[P, Workload], *args: P.args, **kwargs: P.kwargs) -> Twins:
    """Two workloads alike, of which neither is the first of its kind.

    The steps of that one are up to 2 % slower than those of later ones, for its place in memory; a
    third one takes it, and is kept as long as the two are measured.
    """
    _spares[:] = [make(*args, **kwargs)]
    return make(*args, **kwargs), make(*args, **kwargs)


def mlp() -> Workload:
    """4 linear layers of width 512, batch 128, SGD."""
    torch.manual_seed(0)
    layers: list[nn.Module] = []
    for _ in range(3):
        layers += [nn.Linear(512, 512), nn.ReLU()]
    model = nn.Sequential(*layers, nn.Linear(512, 10))
    inputs, labels = torch.randn(128, 512), torch.randint(0, 10, (128,))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    return Workload(model, optimizer, inputs, labels)


class _Block(nn.Module):
    """Out of place, because full backward hooks, which a peer uses, raise on in-place models."""

    def __init__(self, n_in: int, n_out: int, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(n_in, n_out, 3, stride, 1, bias=False)
        self.bn1, self.relu1 = nn.BatchNorm2d(n_out), nn.ReLU()
        self.conv2 = nn.Conv2d(n_out, n_out, 3, 1, 1, bias=False)
        self.bn2, self.relu2 = nn.BatchNorm2d(n_out), nn.ReLU()
        self.shortcut: nn.Module | None = None
        if stride != 1 or n_in != n_out:
            conv = nn.Conv2d(n_in, n_out, 1, stride, bias=False)
            self.shortcut = nn.Sequential(conv, nn.BatchNorm2d(n_out))

    def forward(self, x: Tensor) -> Tensor:
        y = self.bn2(self.conv2(self.relu1(self.bn1(self.conv1(x)))))
        return self.relu2(y + (x if self.shortcut is None else self.shortcut(x)))


class _ResNet(nn.Module):
    """ResNet-18 for 32 x 32 images."""

    def __init__(self) -> None:
        super().__init__()
        stem = [nn.Conv2d(3, 64, 3, 1, 1, bias=False), nn.BatchNorm2d(64), nn.ReLU()]
        self.stem = nn.Sequential(*stem)
        blocks: list[nn.Module] = []
        for n_in, n_out in ((64, 64), (64, 128), (128, 256), (256, 512)):
            stride = 1 if n_in == n_out else 2
            blocks += [_Block(n_in, n_out, stride), _Block(n_out, n_out, 1)]
        self.blocks = nn.Sequential(*blocks)
        self.pool, self.head = nn.AdaptiveAvgPool2d(1), nn.Linear(512, 10)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.pool(self.blocks(self.stem(x))).flatten(1))


def resnet() -> Workload:
    """ResNet-18, batch 16 of 3 x 32 x 32, SGD with momentum."""
    torch.manual_seed(0)
    model = _ResNet()
    inputs, labels = torch.randn(16, 3, 32, 32), torch.randint(0, 10, (16,))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    return Workload(model, optimizer, inputs, labels)


class _GptBlock(nn.Module):
    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
        self.act = nn.GELU()

    def forward(self, x: Tensor) -> Tensor:
        batch, tokens, width = x.shape
        q, k, v = self.qkv(self.norm1(x)).chunk(3, dim=-1)
        shape = (batch, tokens, self.heads, width // self.heads)
        q, k, v = (part.view(shape).transpose(1, 2) for part in (q, k, v))
        mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(mixed.transpose(1, 2).reshape(batch, tokens, width))
        return x + self.down(self.act(self.up(self.norm2(x))))


class _Gpt(nn.Module):
    def __init__(self, n_tokens: int, width: int, n_blocks: int, context: int) -> None:
        super().__init__()
        self.tokens, self.places = nn.Embedding(n_tokens, width), nn.Embedding(context, width)
        self.blocks = nn.ModuleList(_GptBlock(width, 4) for _ in range(n_blocks))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, n_tokens, bias=False)

    def forward(self, ids: Tensor) -> Tensor:
        x = self.tokens(ids) + self.places(torch.arange(ids.shape[1]))
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))


def gpt() -> Workload:
    """Small GPT: 4 blocks of width 256, 4 heads, 512 tokens; batch 8 x 128, AdamW."""
    return small_gpt(width=256, n_blocks=4, batch=8, context=128)


def small_gpt(*, width: int, n_blocks: int, batch: int, context: int) -> Workload:
    """A GPT of 4 heads and 512 tokens, AdamW."""
    torch.manual_seed(0)
    model = _Gpt(n_tokens=512, width=width, n_blocks=n_blocks, context=context)
    ids = torch.randint(0, 512, (batch, context + 1))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)

    def loss_fn(logits: Tensor, targets: Tensor) -> Tensor:
        return F.cross_entropy(logits.flatten(0, 1), targets.flatten())

    return Workload(model, optimizer, ids[:, :-1], ids[:, 1:], loss_fn)


WORKLOADS = {"MLP": mlp, "ResNet-18": resnet, "small GPT": gpt}
