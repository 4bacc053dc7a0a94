"""Networks whose inputs are pairs, or have two ways through."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F

__all__ = ["Factors", "TwoTowers", "alignment", "contrast", "margin"]

Pair = tuple[Tensor, Tensor]


class Factors(nn.Module):
    """What a user thinks of an item: the product of two embeddings."""

    def __init__(self, n_users: int, n_items: int, width: int = 16) -> None:
        super().__init__()
        self.users, self.items = nn.Embedding(n_users, width), nn.Embedding(n_items, width)
        self.head = nn.Linear(width, 1)

    def forward(self, ids: Tensor) -> Tensor:
        return self.head(self.users(ids[:, 0]) * self.items(ids[:, 1]))


class TwoTowers(nn.Module):
    """Two halves of the features, each read by layers of its own, of which one may be cut off."""

    def __init__(self, n_in: int, n_classes: int, *, cut: bool) -> None:
        super().__init__()
        self.n_left, self.cut = n_in // 4, cut
        self.left = nn.Sequential(nn.Linear(self.n_left, 32), nn.ELU(), nn.Linear(32, 16))
        self.right = nn.Sequential(nn.Linear(n_in - self.n_left, 32), nn.ELU(), nn.Linear(32, 16))
        self.head = nn.Linear(32, n_classes)

    def forward(self, x: Tensor) -> Tensor:
        left, right = self.left(x[:, : self.n_left]), self.right(x[:, self.n_left :])
        return self.head(torch.cat([left, right.detach() if self.cut else right], -1))


def margin(model: nn.Module, batch: tuple[Tensor, Tensor, Tensor]) -> Tensor:
    """Alike inputs drawn near, others pushed out to 1 (Hadsell et al. 2006)."""
    first, second, alike = batch
    apart = (model(first) - model(second)).pow(2).sum(-1).sqrt()
    return torch.where(alike, apart.square(), (1 - apart).clamp(min=0).square()).mean()


def contrast(model: nn.Module, batch: Pair) -> Tensor:
    """Each view is told from those of others (InfoNCE)."""
    first, second = _views(model, batch[0])
    return F.cross_entropy(first @ second.T / 0.2, torch.arange(len(first)))


def alignment(model: nn.Module, batch: Pair) -> Tensor:
    """Two views are drawn near, and nothing holds the others apart."""
    first, second = _views(model, batch[0])
    return 1 - (first * second).sum(-1).mean()


def _views(model: nn.Module, x: Tensor) -> Pair:
    noise = 0.1 * torch.randn(2, *x.shape)
    first, second = (F.normalize(model(x + part), dim=-1) for part in noise)
    return first, second
