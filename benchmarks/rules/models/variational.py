"""A variational autoencoder."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F

__all__ = ["Vae", "evidence"]


class Vae(nn.Module):
    """64 pixels, 8 latent numbers (Kingma and Welling 2014)."""

    def __init__(self) -> None:
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(64, 48), nn.ReLU(), nn.Linear(48, 16))
        self.decoder = nn.Sequential(nn.Linear(8, 48), nn.ReLU(), nn.Linear(48, 64))

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        mean, log_var = self.encoder(x).chunk(2, -1)
        drawn = mean + (log_var / 2).exp() * torch.randn_like(mean)
        return self.decoder(drawn), mean, log_var


def evidence(model: nn.Module, batch: tuple[Tensor, Tensor]) -> Tensor:
    """The negative lower bound, per image."""
    logits, mean, log_var = model(batch[0])
    pixels = F.binary_cross_entropy_with_logits(logits, batch[0].clamp(0, 1), reduction="none")
    divergence = (log_var.exp() + mean.square() - 1 - log_var) / 2
    return pixels.sum(-1).mean() + divergence.sum(-1).mean()
