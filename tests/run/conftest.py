"""Runs in a folder of the test's own, closed when it ends."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeAlias

import pytest
from torch import nn
from torch.optim import Optimizer

import notebook_probe as nbp
from tests.models import made, mlp

Watch: TypeAlias = Callable[..., nbp.Run]


@pytest.fixture
def watch(tmp_path: Path) -> Iterator[Watch]:
    """`notebook_probe.watch` with a store of its own for each run, and every due step measured."""
    runs: list[nbp.Run] = []
    models: list[nn.Module] = []  # a run ends with its model

    def begin(model: nn.Module, optimizer: Optimizer | None = None, **options: Any) -> nbp.Run:
        options.setdefault("store", tmp_path / f"{len(runs)}.zarr")
        options.setdefault("budget", None)
        models.append(model)
        runs.append(run := nbp.watch(model, optimizer, **options))
        return run

    yield begin
    for run in runs:
        run.close()


@pytest.fixture
def model() -> nn.Module:
    return made(mlp)
