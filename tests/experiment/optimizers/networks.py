"""A small network, batches for it, and what is compared of two."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

Batches = list[tuple[Tensor, Tensor]]


def network(seed: int = 0) -> nn.Sequential:
    torch.manual_seed(seed)
    return nn.Sequential(nn.Linear(3, 5), nn.Tanh(), nn.Linear(5, 2))


def batches(n: int, size: int = 4, scale: float = 10.0) -> Batches:
    generator = torch.Generator().manual_seed(1)
    return [
        (
            scale * torch.randn(size, 3, generator=generator),
            torch.randn(size, 2, generator=generator),
        )
        for _ in range(n)
    ]


def loss_of(model: nn.Module, batch: tuple[Tensor, Tensor]) -> Tensor:
    return (model(batch[0]) - batch[1]).pow(2).sum()


def same(a: nn.Module, b: nn.Module) -> bool:
    pairs = zip(a.state_dict().values(), b.state_dict().values(), strict=True)
    return all(torch.equal(x, y) for x, y in pairs)


def train(
    model: nn.Module,
    optimizer: Optimizer,
    data: Batches,
    before_step: Callable[[], Any] = lambda: None,
    after_step: Callable[[], Any] = lambda: None,
) -> None:
    for batch in data:
        optimizer.zero_grad()
        loss_of(model, batch).backward()
        before_step()
        optimizer.step()
        after_step()


def same_state(a: Any, b: Any) -> bool:
    """Of nested dicts and lists, tensors bit for bit."""
    if isinstance(a, Tensor):
        return isinstance(b, Tensor) and torch.equal(a, b)
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(same_state(a[key], b[key]) for key in a)
    if isinstance(a, list | tuple):
        return len(a) == len(b) and all(map(same_state, a, b))
    return bool(a == b)
