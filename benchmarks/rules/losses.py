"""What a model's outputs are compared with."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn import functional as F

__all__ = ["cross_entropy", "evaluated", "next_token", "reconstruction", "squared_error"]

Pair = tuple[Tensor, Tensor]


def cross_entropy(model: nn.Module, batch: Pair) -> Tensor:
    """Of classes."""
    return F.cross_entropy(model(batch[0]), batch[1])


def squared_error(model: nn.Module, batch: Pair) -> Tensor:
    """Of one number per row."""
    return F.mse_loss(model(batch[0]).squeeze(-1), batch[1])


def reconstruction(model: nn.Module, batch: Pair) -> Tensor:
    """Of the inputs themselves."""
    return F.mse_loss(model(batch[0]), batch[0])


def next_token(model: nn.Module, ids: Tensor) -> Tensor:
    """Of every token, from those before it."""
    return F.cross_entropy(model(ids[:, :-1]).flatten(0, 1), ids[:, 1:].flatten())


def evaluated(model: nn.Module, data: Pair) -> Callable[[], float]:
    """Its cross entropy, as evaluation sees it."""

    def loss() -> float:
        model.eval()
        with torch.no_grad():
            found = F.cross_entropy(model(data[0]), data[1]).item()
        model.train()
        return found

    return loss
