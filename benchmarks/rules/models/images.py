"""Networks of convolutions, for small images."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F

__all__ = ["ConvAutoencoder", "FunctionalCnn", "ResNet", "Segmenter", "cnn", "discs"]


class FunctionalCnn(nn.Module):
    """Two convolutions and two linear layers, activations called as functions."""

    def __init__(self, n_channels: int = 1, n_classes: int = 10) -> None:
        super().__init__()
        self.conv1, self.conv2 = nn.Conv2d(n_channels, 8, 3), nn.Conv2d(8, 16, 3)
        self.fc1, self.fc2 = nn.Linear(64, 32), nn.Linear(32, n_classes)

    def forward(self, x: Tensor) -> Tensor:
        x = F.max_pool2d(F.relu(self.conv2(F.relu(self.conv1(x)))), 2)
        return self.fc2(F.relu(self.fc1(x.flatten(1))))


def cnn(n_channels: int, n_classes: int, depth: int = 2, width: int = 12) -> nn.Sequential:
    """Convolutions that keep the size, pooled before the head."""
    layers: list[nn.Module] = []
    for i in range(depth):
        layers += [nn.Conv2d(width if i else n_channels, width, 3, padding=1), nn.ReLU()]
    head = (nn.AvgPool2d(2), nn.Flatten(), nn.Linear(16 * width, n_classes))
    return nn.Sequential(*layers, *head)


class _Block(nn.Module):
    def __init__(self, width: int, momentum: float) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(width, width, 3, padding=1, bias=False)
        self.conv2 = nn.Conv2d(width, width, 3, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(width, momentum=momentum)
        self.bn2 = nn.BatchNorm2d(width, momentum=momentum)
        self.relu = nn.ReLU()

    def forward(self, x: Tensor) -> Tensor:
        return self.relu(x + self.bn2(self.conv2(self.relu(self.bn1(self.conv1(x))))))


class ResNet(nn.Module):
    """A stem, some residual blocks of one width, and a head."""

    def __init__(
        self, n_channels: int, n_classes: int, depth: int = 2, momentum: float = 0.1
    ) -> None:
        super().__init__()
        self.stem = nn.Conv2d(n_channels, 12, 3, padding=1, bias=False)
        self.bn, self.relu = nn.BatchNorm2d(12, momentum=momentum), nn.ReLU()
        self.blocks = nn.Sequential(*(_Block(12, momentum) for _ in range(depth)))
        self.head = nn.Linear(12, n_classes)

    def forward(self, x: Tensor) -> Tensor:
        x = self.blocks(self.relu(self.bn(self.stem(x))))
        return self.head(x.mean((2, 3)))


class ConvAutoencoder(nn.Module):
    """Down to 16 numbers and up again."""

    def __init__(self) -> None:
        super().__init__()
        self.encoder = nn.Sequential(
            *(nn.Conv2d(1, 8, 3, 2, 1), nn.GELU(), nn.Conv2d(8, 16, 3, 2, 1), nn.GELU()),
            *(nn.Flatten(), nn.Linear(64, 16)),
        )
        self.decoder = nn.Sequential(
            *(nn.Linear(16, 64), nn.Unflatten(1, (16, 2, 2)), nn.GELU()),
            *(nn.ConvTranspose2d(16, 8, 4, 2, 1), nn.GELU(), nn.ConvTranspose2d(8, 1, 4, 2, 1)),
        )

    def forward(self, x: Tensor) -> Tensor:
        return self.decoder(self.encoder(x))


class Segmenter(nn.Module):
    """A number for each pixel, from a smaller picture and from the picture itself."""

    def __init__(self, width: int = 8) -> None:
        super().__init__()
        self.down = nn.Conv2d(1, width, 3, 2, 1)
        self.middle = nn.Conv2d(width, 2 * width, 3, 2, 1)
        self.up = nn.ConvTranspose2d(2 * width, width, 4, 4)
        self.skip = nn.Conv2d(1, width, 1)
        self.head = nn.Conv2d(width, 1, 3, padding=1)

    def forward(self, x: Tensor) -> Tensor:
        wide = self.up(F.relu(self.middle(F.relu(self.down(x)))))
        return self.head(F.relu(wide + self.skip(x)))


def discs(n: int, seed: int) -> tuple[Tensor, Tensor]:
    """Noisy pictures of 16 x 16 with a bright disc, and where it is."""
    drawn = torch.Generator().manual_seed(seed)
    centre = 4 + 8 * torch.rand(n, 2, 1, 1, generator=drawn)
    radius = 2 + 3 * torch.rand(n, 1, 1, generator=drawn)
    rows = torch.arange(16.0)
    away = (rows[:, None] - centre[:, 0]) ** 2 + (rows - centre[:, 1]) ** 2
    inside = (away < radius**2).float()[:, None]
    return inside + 0.4 * torch.randn(inside.shape, generator=drawn), inside
