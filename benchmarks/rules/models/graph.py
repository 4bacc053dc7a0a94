"""A graph convolution, the graph a dense matrix."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F

__all__ = ["Gcn", "communities"]


class Gcn(nn.Module):
    """Two layers (Kipf and Welling 2017); the graph is always the same."""

    def __init__(self, edges: Tensor, n_in: int, n_classes: int) -> None:
        super().__init__()
        self.register_buffer("averaged", edges / edges.sum(1, keepdim=True))
        self.first, self.second = nn.Linear(n_in, 32), nn.Linear(32, n_classes)

    def forward(self, x: Tensor) -> Tensor:
        averaged = self.get_buffer("averaged")
        return averaged @ self.second(F.relu(averaged @ self.first(x)))


def communities(n_nodes: int, n_classes: int, seed: int) -> tuple[Tensor, Tensor, Tensor]:
    """Edges, mostly within a community, noisy features and the communities of some nodes."""
    drawn = torch.Generator().manual_seed(seed)
    y = torch.randint(0, n_classes, (n_nodes,), generator=drawn)
    same = y[:, None] == y[None]
    edges = torch.rand(n_nodes, n_nodes, generator=drawn) < torch.where(same, 0.08, 0.01)
    x = torch.randn(n_nodes, 16, generator=drawn)
    x[:, :n_classes] += 0.7 * nn.functional.one_hot(y, n_classes)
    return (edges | edges.T).float() + torch.eye(n_nodes), x, y
