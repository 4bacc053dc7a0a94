"""Networks that learn where points of a plane lie."""

from __future__ import annotations

import math

import numpy as np
import torch
from torch import Tensor, nn

from benchmarks.rules.data import scikit
from benchmarks.rules.models.plain import mlp

__all__ = ["Denoiser", "Flow", "moons", "roll"]


def moons(n: int, seed: int) -> tuple[Tensor, Tensor]:
    """Points of two interlocking half circles, and which of the two."""
    x, y = scikit().make_moons(n, noise=0.1, random_state=seed)
    return torch.tensor(x, dtype=torch.float32), torch.tensor(y)


def roll(n: int, seed: int) -> tuple[Tensor]:
    """Points of a spiral, standardised."""
    x, _ = scikit().make_swiss_roll(n, noise=0.3, random_state=seed)
    flat = x[:, [0, 2]]
    return (torch.tensor((flat - flat.mean(0)) / np.std(flat), dtype=torch.float32),)


class Denoiser(nn.Module):
    """Which noise was added to a point, given how much (DDPM)."""

    def __init__(self, width: int = 64) -> None:
        super().__init__()
        self.net = mlp(3, width, width, width, 2, act=nn.SiLU)

    def forward(self, x: Tensor, level: Tensor) -> Tensor:
        return self.net(torch.cat([x, level], -1))


class Flow(nn.Module):
    """Affine couplings that turn a density into a normal one (RealNVP); the log likelihood."""

    def __init__(self, depth: int = 4, width: int = 32) -> None:
        super().__init__()
        self.couplings = nn.ModuleList(mlp(1, width, width, 2) for _ in range(depth))

    def forward(self, x: Tensor) -> Tensor:
        first, second = x.unbind(-1)
        log_volume = torch.zeros(len(x))
        for net in self.couplings:
            log_scale, shift = net(first[:, None]).unbind(-1)
            first, second = second * log_scale.exp() + shift, first
            log_volume = log_volume + log_scale
        return log_volume - (first**2 + second**2) / 2 - math.log(2 * math.pi)
