"""Runs in a folder of the test's own, closed when it ends."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeAlias

import pytest
from torch import nn
from torch.optim import Optimizer

import notebook_probe as nbp
from tests.models import made, mlp
from tests.run.accelerator import Accelerator
from tests.run.programs import Programs

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


@pytest.fixture(scope="session")
def accelerator() -> Iterator[Accelerator]:
    one = Accelerator()
    yield one
    one.end()


@pytest.fixture(scope="session")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Programs]:
    if not hasattr(os, "fork"):
        pytest.skip("no fork on this system")
    one = Programs(tmp_path_factory.mktemp("programs"))
    yield one
    one.end()
