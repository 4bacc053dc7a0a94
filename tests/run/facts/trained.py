"""A small loop whose steps a test may spoil, and the facts that are found in it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeAlias

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

import notebook_probe as nbp

__all__ = ["Said", "small", "train_it"]

Said: TypeAlias = "set[tuple[str, int, tuple[str, ...]]]"
"""Rule, step and modules of each finding."""


def small() -> nn.Sequential:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(8, 8), nn.Tanh(), nn.Linear(8, 2))


def mean_square(output: Tensor, x: Tensor) -> Tensor:
    return (output - x[:, : output.shape[1]]).square().mean()


def nothing(step: int) -> None:
    """Most steps are like any other."""


def train_it(
    folder: Path,
    model: nn.Module,
    optimizers: Sequence[Optimizer],
    *,
    n_steps: int = 30,
    loss: Callable[[Tensor, Tensor], Tensor] = mean_square,
    then: Callable[[int], None] = nothing,
    before_update: Callable[[int], None] = nothing,
    to_none: bool = True,
) -> tuple[Said, Said]:
    """Train, and return the alerts and the remarks."""
    dtype = next(model.parameters()).dtype
    with nbp.watch(model, store=folder / "a.zarr", budget=None) as run:
        for step in range(n_steps):
            then(step)
            optimizer = optimizers[step % len(optimizers)]
            x = torch.rand(16, 8, dtype=dtype)
            found = loss(model(x), x)
            optimizer.zero_grad(set_to_none=to_none)
            found.backward()
            before_update(step)
            optimizer.step()
    assert "facts are off" not in str(run.events)
    alerts, remarks = (
        {(one.rule, one.step, one.modules) for one in found} for found in (run.alerts, run.remarks)
    )
    return alerts, remarks
