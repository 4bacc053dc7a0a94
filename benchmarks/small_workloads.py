"""Models of very different size and kind, each with one training step on a fixed batch."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from itertools import pairwise

import torch
from torch import Tensor, nn

from benchmarks.workloads import WORKLOADS, Workload, small_gpt

__all__ = ["OPTIMIZERS", "SIZES", "small_workload", "with_optimizer"]


def _trained(model: nn.Module, inputs: Tensor, n_classes: int) -> Workload:
    labels = torch.randint(0, n_classes, (len(inputs),))
    return Workload(model, torch.optim.SGD(model.parameters(), lr=0.01), inputs, labels)


def perceptron() -> Workload:
    """Two linear layers of width 16, batch 8: all that a step takes is Python."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 2))
    return _trained(model, torch.randn(8, 4), 2)


def deep() -> Workload:
    """48 linear layers of width 16, each with a Tanh: modules without work."""
    torch.manual_seed(0)
    blocks = [nn.Sequential(nn.Linear(16, 16), nn.Tanh()) for _ in range(48)]
    return _trained(nn.Sequential(*blocks, nn.Linear(16, 2)), torch.randn(32, 16), 2)


def lenet() -> Workload:
    """Two convolutions and two linear layers, batch 32 of 1 x 28 x 28."""
    torch.manual_seed(0)
    features = nn.Sequential(
        *(nn.Conv2d(1, 16, 5), nn.ReLU(), nn.MaxPool2d(2)),
        *(nn.Conv2d(16, 32, 5), nn.ReLU(), nn.MaxPool2d(2)),
    )
    head = nn.Sequential(nn.Flatten(), nn.Linear(512, 120), nn.ReLU(), nn.Linear(120, 10))
    return _trained(nn.Sequential(features, head), torch.randn(32, 1, 28, 28), 10)


class _Gcn(nn.Module):
    """Two layers of a graph convolution (Kipf and Welling 2017), the graph a dense matrix."""

    def __init__(self, n_nodes: int, n_in: int) -> None:
        super().__init__()
        edges = (torch.rand(n_nodes, n_nodes) < 0.02).float() + torch.eye(n_nodes)
        self.register_buffer("averaged", edges / edges.sum(1, keepdim=True))
        self.first, self.second = nn.Linear(n_in, 64), nn.Linear(64, 7)
        self.act = nn.ReLU()

    def forward(self, x: Tensor) -> Tensor:
        averaged = self.get_buffer("averaged")
        return averaged @ self.second(self.act(averaged @ self.first(x)))


def gcn() -> Workload:
    """A graph network on 500 nodes."""
    torch.manual_seed(0)
    return _trained(_Gcn(500, 128), torch.randn(500, 128), 7)


class _Lstm(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.lstm, self.head = nn.LSTM(32, 64, batch_first=True), nn.Linear(64, 10)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.lstm(x)[0][:, -1])


def lstm() -> Workload:
    """An LSTM of width 64 over 32 steps, batch 16."""
    torch.manual_seed(0)
    return _trained(_Lstm(), torch.randn(16, 32, 32), 10)


def tiny_gpt() -> Workload:
    """A GPT of 3 blocks of width 64, batch 4 x 32."""
    return small_gpt(width=64, n_blocks=3, batch=4, context=32)


def small_gpt2() -> Workload:
    """A GPT of 4 blocks of width 128, batch 4 x 64."""
    return small_gpt(width=128, n_blocks=4, batch=4, context=64)


class _Attention(nn.Module):
    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)

    def forward(self, x: Tensor) -> Tensor:
        parts = self.qkv(x).unflatten(-1, (3, self.heads, -1)).permute(2, 0, 3, 1, 4)
        mixed = nn.functional.scaled_dot_product_attention(*parts)
        return self.out(mixed.transpose(1, 2).flatten(2))


class _VitBlock(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm1, self.attention = nn.LayerNorm(width), _Attention(width, 4)
        self.norm2 = nn.LayerNorm(width)
        self.mlp = nn.Sequential(
            nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width)
        )

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.attention(self.norm1(x))
        return x + self.mlp(self.norm2(x))


class _Vit(nn.Module):
    """A vision transformer (Dosovitskiy et al. 2021) that averages its tokens."""

    def __init__(self, width: int, n_blocks: int) -> None:
        super().__init__()
        self.patches = nn.Conv2d(3, width, 4, 4)
        self.places = nn.Parameter(torch.randn(64, width) * 0.02)
        self.blocks = nn.Sequential(*(_VitBlock(width) for _ in range(n_blocks)))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, 10)

    def forward(self, x: Tensor) -> Tensor:
        tokens = self.patches(x).flatten(2).transpose(1, 2) + self.places
        return self.head(self.norm(self.blocks(tokens)).mean(1))


def vit() -> Workload:
    """A ViT of 4 blocks of width 64 on 64 patches, batch 8 of 3 x 32 x 32."""
    torch.manual_seed(0)
    return _trained(_Vit(64, 4), torch.randn(8, 3, 32, 32), 10)


def _twice(n_in: int, n_out: int) -> nn.Module:
    ends = (n_in, n_out), (n_out, n_out)
    layers = [(nn.Conv2d(a, b, 3, 1, 1), nn.GroupNorm(4, b), nn.SiLU()) for a, b in ends]
    return nn.Sequential(*(layer for some in layers for layer in some))


class _Unet(nn.Module):
    """Three levels, halved and doubled in size (Ronneberger et al. 2015)."""

    def __init__(self, widths: tuple[int, ...]) -> None:
        super().__init__()
        pairs = [*pairwise(widths)]
        self.first = _twice(1, widths[0])
        self.down = nn.ModuleList(_twice(a, b) for a, b in pairs)
        self.up = nn.ModuleList(nn.ConvTranspose2d(b, a, 2, 2) for a, b in reversed(pairs))
        self.joined = nn.ModuleList(_twice(2 * a, a) for a, _ in reversed(pairs))
        self.head, self.pool = nn.Conv2d(widths[0], 2, 1), nn.MaxPool2d(2)

    def forward(self, x: Tensor) -> Tensor:
        levels = [self.first(x)]
        for down in self.down:
            levels.append(down(self.pool(levels[-1])))
        x = levels.pop()
        for up, joined in zip(self.up, self.joined, strict=True):
            x = joined(torch.cat((levels.pop(), up(x)), 1))
        return self.head(x)


def unet() -> Workload:
    """A U-Net of widths 16, 32 and 64, batch 2 of 1 x 32 x 32, a class for each pixel."""
    torch.manual_seed(0)
    model = _Unet((16, 32, 64))
    labels = torch.randint(0, 2, (2, 32, 32))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    return Workload(model, optimizer, torch.randn(2, 1, 32, 32), labels)


def _adamw(parameters: Iterable[nn.Parameter]) -> torch.optim.Optimizer:
    return torch.optim.AdamW(parameters, lr=1e-3)


def _sgd(parameters: Iterable[nn.Parameter]) -> torch.optim.Optimizer:
    return torch.optim.SGD(parameters, lr=0.01)


OPTIMIZERS: dict[str, Callable[[Iterable[nn.Parameter]], torch.optim.Optimizer]] = {
    "SGD": _sgd,
    "AdamW": _adamw,
}


def with_optimizer(workload: Workload, name: str) -> Workload:
    """The same model and batch, trained by one of `OPTIMIZERS`."""
    return replace(workload, optimizer=OPTIMIZERS[name](workload.model.parameters()))


SIZES = {
    "perceptron": perceptron,
    "48 layers": deep,
    "LeNet": lenet,
    "GCN": gcn,
    "LSTM": lstm,
    "tiny GPT": tiny_gpt,
    "small ViT": vit,
    "small UNet": unet,
    "small GPT-2": small_gpt2,
    **WORKLOADS,
}
"""The smallest first, by what a step takes."""


def small_workload(name: str, optimizer: str) -> Workload:
    """Make the small workload of this name, with an optimizer."""
    return with_optimizer(SIZES[name](), optimizer)
