"""Networks that cut an image into patches."""

from __future__ import annotations

import torch
from torch import Tensor, nn

__all__ = ["PatchTransformer", "mixer"]


class PatchTransformer(nn.Module):
    """Sixteen patches of 2 x 2 and a token for the class, through torch's own encoder layers."""

    def __init__(self, n_classes: int = 10, width: int = 32, depth: int = 2) -> None:
        super().__init__()
        self.stem = nn.Conv2d(1, width, 2, 2)
        self.cls = nn.Parameter(0.02 * torch.randn(1, 1, width))
        self.places = nn.Parameter(0.02 * torch.randn(1, 17, width))
        self.layers = nn.ModuleList(
            nn.TransformerEncoderLayer(
                width, 4, 2 * width, 0.1, "gelu", batch_first=True, norm_first=True
            )
            for _ in range(depth)
        )
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, n_classes)

    def forward(self, x: Tensor) -> Tensor:
        x = self.stem(x).flatten(2).mT
        x = torch.cat([self.cls.expand(len(x), -1, -1), x], 1) + self.places
        for layer in self.layers:
            x = layer(x)
        return self.head(self.norm(x[:, 0]))


class _Residual(nn.Sequential):
    def forward(self, x: Tensor) -> Tensor:
        return x + super().forward(x)


def mixer(n_channels: int, n_classes: int, width: int = 24, depth: int = 2) -> nn.Sequential:
    """Convolutions of each channel alone, then of each place alone (ConvMixer)."""
    layers: list[nn.Module] = [nn.Conv2d(n_channels, width, 2, 2), nn.GELU(), nn.BatchNorm2d(width)]
    for _ in range(depth):
        alone = nn.Conv2d(width, width, 3, padding=1, groups=width)
        layers += [
            _Residual(alone, nn.GELU(), nn.BatchNorm2d(width)),
            *(nn.Conv2d(width, width, 1), nn.GELU(), nn.BatchNorm2d(width)),
        ]
    return nn.Sequential(
        *layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(width, n_classes)
    )
