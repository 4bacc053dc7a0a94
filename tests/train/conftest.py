from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

import notebook_probe as nbp
from notebook_probe.train import Loop, Trainer

__all__ = ["a_loop", "batches", "small_model", "trainer", "watched"]

Batches = list[tuple[torch.Tensor, torch.Tensor]]


def small_model(seed: int = 0) -> nn.Sequential:
    torch.manual_seed(seed)
    return nn.Sequential(nn.Linear(3, 8), nn.Dropout(0.2), nn.ReLU(), nn.Linear(8, 2))


def batches(n: int, size: int = 4, seed: int = 1) -> Batches:
    generator = torch.Generator().manual_seed(seed)
    return [
        (
            torch.randn(size, 3, generator=generator),
            torch.randint(0, 2, (size,), generator=generator),
        )
        for _ in range(n)
    ]


def trainer(model: nn.Module | None = None, **options: Any) -> Trainer:
    model = small_model() if model is None else model
    optimizer = options.pop("optimizer", None) or torch.optim.AdamW(model.parameters(), 1e-2)
    return Trainer(model, options.pop("loss_fn", nn.functional.cross_entropy), optimizer, **options)


def a_loop(**options: Any) -> Loop:
    return Loop(trainer(**options))


Watch = Callable[..., nbp.Run]


@pytest.fixture
def watched(tmp_path: Path) -> Iterator[Callable[[Loop], nbp.Run]]:
    """Record a loop in a folder of the test's own."""
    runs: list[nbp.Run] = []

    def watch(loop: Loop, **options: Any) -> nbp.Run:
        place = tmp_path / f"{len(runs)}.zarr"
        runs.append(loop.watch(**{"store": place, "probes": None, "budget": None, **options}))
        return runs[-1]

    yield watch
    for run in runs:
        run.close()
