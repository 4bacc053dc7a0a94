"""What it is worth to walk left or right along a corridor, learnt from single steps."""

from __future__ import annotations

from collections.abc import Iterator
from copy import deepcopy
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

__all__ = ["N_PLACES", "QLoss", "error_of", "exact_values", "walks"]

N_PLACES, DISCOUNT = 12, 0.9


def walks(size: int, seed: int) -> Iterator[tuple[Tensor, ...]]:
    """Where one stood, what one did, what it brought, where it led; the last place ends it."""
    drawn = torch.Generator().manual_seed(seed)
    while True:
        place = torch.randint(0, N_PLACES - 1, (size,), generator=drawn)
        action = torch.randint(0, 2, (size,), generator=drawn)
        then = (place + 2 * action - 1).clamp(0)
        yield place, action, (then == N_PLACES - 1).float(), then


def exact_values() -> Tensor:
    """(place, action), by going backwards from the end."""
    value = torch.zeros(N_PLACES)
    place = torch.arange(N_PLACES - 1)
    for _ in range(200):
        ways = [(place + by).clamp(0) for by in (-1, 1)]
        told = torch.stack([(w == N_PLACES - 1) + DISCOUNT * value[w] for w in ways], -1)
        value[:-1] = told.max(-1).values
    return told


class QLoss:
    """Huber loss against a copy of the network that follows it every twenty steps."""

    def __init__(self, model: nn.Module) -> None:
        self._copy, self._n = deepcopy(model), 0

    def __call__(self, model: nn.Module, batch: Any) -> Tensor:
        if self._n % 20 == 0:
            self._copy.load_state_dict(model.state_dict())
        self._n += 1
        place, action, reward, then = batch
        with torch.no_grad():
            later = self._copy(_one_hot(then)).max(-1).values * (then < N_PLACES - 1)
        told = model(_one_hot(place)).gather(1, action[:, None])[:, 0]
        return F.smooth_l1_loss(told, reward + DISCOUNT * later)


def error_of(model: nn.Module) -> float:
    """How far its values are from the exact ones."""
    with torch.no_grad():
        told: Tensor = model(torch.eye(N_PLACES)[:-1])
    return (told - exact_values()).abs().mean().item()


def _one_hot(place: Tensor) -> Tensor:
    return F.one_hot(place, N_PLACES).float()
