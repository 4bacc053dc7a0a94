"""Networks for signals, and signals."""

from __future__ import annotations

import torch
from torch import Tensor, nn

__all__ = ["Dilated", "Sine", "signals"]


class Dilated(nn.Module):
    """Causal convolutions that look back twice as far each (a TCN without its shortcuts)."""

    def __init__(self, width: int = 16, depth: int = 6) -> None:
        super().__init__()
        self.pads = [2**k for k in range(depth)]
        self.convs = nn.ModuleList(
            nn.Conv1d(width if k else 1, width, 2, dilation=2**k) for k in range(depth)
        )
        self.act, self.head = nn.Tanh(), nn.Conv1d(width, 1, 1)

    def forward(self, x: Tensor) -> Tensor:
        for pad, conv in zip(self.pads, self.convs, strict=True):
            x = self.act(conv(nn.functional.pad(x, (pad, 0))))
        return self.head(x)


class Sine(nn.Module):
    """A linear layer and a sine (SIREN)."""

    def __init__(self, n_in: int, n_out: int, w0: float) -> None:
        super().__init__()
        self.linear, self.w0 = nn.Linear(n_in, n_out), w0
        bound = 1 / n_in if w0 > 1 else (6 / n_in) ** 0.5
        nn.init.uniform_(self.linear.weight, -bound, bound)

    def forward(self, x: Tensor) -> Tensor:
        return torch.sin(self.w0 * self.linear(x))


def signals(n: int, length: int, seed: int) -> tuple[Tensor]:
    """Sums of two sines and a little noise, (signal, 1, time)."""
    drawn = torch.Generator().manual_seed(seed)
    time = torch.arange(length) / 8
    rate, phase = (torch.rand(n, 2, 1, generator=drawn) for _ in range(2))
    waves = torch.sin((1 + rate) * time + 6.28 * phase).sum(1, keepdim=True)
    return (waves + 0.05 * torch.randn(waves.shape, generator=drawn),)
