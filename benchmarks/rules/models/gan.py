"""Two networks that train each other, on points of a plane."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.optim import Optimizer

__all__ = ["LOSSES", "Adversaries", "noisy_ring", "spread"]

N_NOISE = 4
LOSSES = ("loss_g", "loss_d")
"""As loops log them, in the order in which `Adversaries` returns them."""


@dataclass(frozen=True)
class Adversaries:
    """One update of the discriminator, then one of the generator (non-saturating)."""

    generator: nn.Module
    discriminator: nn.Module
    of_generator: Optimizer
    of_discriminator: Optimizer

    def __call__(self, i: int, batch: Sequence[Tensor]) -> tuple[float, float]:
        real, noise = batch
        made = self.generator(noise)
        ours, theirs = self.discriminator(real), self.discriminator(made.detach())
        judged = F.softplus(-ours).mean() + F.softplus(theirs).mean()
        self.of_discriminator.zero_grad()
        judged.backward()
        self.of_discriminator.step()
        fooled = F.softplus(-self.discriminator(made)).mean()
        self.of_generator.zero_grad()
        fooled.backward()
        self.of_generator.step()
        return fooled.item(), judged.item()


def noisy_ring(size: int, seed: int) -> Iterator[tuple[Tensor, Tensor]]:
    """Points about a circle of radius 2, and noise to make others from."""
    drawn = torch.Generator().manual_seed(seed)
    while True:
        angle = 2 * torch.pi * torch.rand(size, generator=drawn)
        circle = torch.stack([angle.cos(), angle.sin()], -1)
        yield (
            2 * circle + 0.3 * torch.randn(size, 2, generator=drawn),
            torch.randn(size, N_NOISE, generator=drawn),
        )


def spread(generator: nn.Module) -> float:
    """How far the radii of made points are from 2, on average."""
    noise = torch.randn(512, N_NOISE, generator=torch.Generator().manual_seed(7))
    with torch.no_grad():
        return (generator(noise).norm(dim=-1) - 2).abs().mean().item()
