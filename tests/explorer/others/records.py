"""Small records of real runs, as a folder of them holds."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from torch import nn

import notebook_probe as nbp


def model(seed: int = 0, width: int = 3) -> nn.Module:
    torch.manual_seed(seed)
    return nn.Sequential(nn.Linear(2, width), nn.ReLU(), nn.Linear(width, 1))


def train(
    path: Path,
    losses: Sequence[float] = (2.0, 1.0, 0.5),
    *,
    lr: float = 0.1,
    seed: int = 0,
    config: dict[str, Any] | None = None,
    watched: nn.Module | None = None,
    quantities: Sequence[str] = ("update_ratio", "grad_norm"),
) -> Path:
    """One step for each loss; weights and updates are measured at every step."""
    net = watched or model(seed)
    optimizer = torch.optim.SGD(net.parameters(), lr=lr)
    inputs = torch.randn(8, 2, generator=torch.Generator().manual_seed(1))
    with nbp.watch(net, store=path, probes=None, name=path.stem, config=config) as run:
        run.attach("Linear", [*quantities], "every(1)")
        for loss in losses:
            optimizer.zero_grad()
            net(inputs).square().mean().backward()
            run.log(loss=loss)
            optimizer.step()
    return path
