"""Stacks of linear layers."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import torch
from torch import Tensor, nn
from torch.nn import functional as F

__all__ = ["FunctionalMlp", "ResidualMlp", "mlp"]


def mlp(*widths: int, act: Callable[[], nn.Module] = nn.ReLU, norm: bool = False) -> nn.Sequential:
    """Linear layers with activations between them, and BatchNorm where asked for."""
    layers: list[nn.Module] = []
    for n_in, n_out in pairwise(widths[:-1]):
        layers += [nn.Linear(n_in, n_out), *([nn.BatchNorm1d(n_out)] if norm else []), act()]
    return nn.Sequential(*layers, nn.Linear(widths[-2], widths[-1]))


class FunctionalMlp(nn.Module):
    """The same without modules for its activations."""

    def __init__(self, *widths: int, act: Callable[[Tensor], Tensor] = F.relu) -> None:
        super().__init__()
        pairs = pairwise(widths)
        self.layers = nn.ModuleList(nn.Linear(n_in, n_out) for n_in, n_out in pairs)
        self.act = act

    def forward(self, x: Tensor) -> Tensor:
        for layer in self.layers[:-1]:
            x = self.act(layer(x))
        return self.layers[-1](x)


class _Residual(nn.Module):
    def __init__(self, width: int, skip: float) -> None:
        super().__init__()
        self.fc, self.act, self.skip = nn.Linear(width, width), nn.ReLU(), skip

    def forward(self, x: Tensor) -> Tensor:
        return self.skip * x + self.act(self.fc(x))


class ResidualMlp(nn.Module):
    """A deep stack whose layers add to what comes in, unless ``skip`` is 0."""

    def __init__(self, n_in: int, width: int, depth: int, n_out: int, *, skip: float = 1.0) -> None:
        super().__init__()
        self.stem, self.head = nn.Linear(n_in, width), nn.Linear(width, n_out)
        self.blocks = nn.Sequential(*(_Residual(width, skip) for _ in range(depth)))
        with torch.no_grad():
            for block in self.blocks:
                block.get_submodule("fc").get_parameter("weight").mul_(0.3 if skip else 1.0)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.blocks(self.stem(x)))
