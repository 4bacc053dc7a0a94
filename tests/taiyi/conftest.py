"""Monitors that record in a folder of the test's own."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from torch import nn

from notebook_probe.taiyi import Monitor
from tests.models import made
from tests.taiyi.loops import Net


@pytest.fixture
def net() -> Net:
    return made(Net)


@pytest.fixture
def monitored(tmp_path: Path) -> Iterator[Callable[..., Monitor]]:
    """`Monitor` with a store of its own for each."""
    monitors: list[Monitor] = []

    def begin(model: nn.Module, config: Any = None, **watching: Any) -> Monitor:
        monitors.append(
            Monitor(model, config, store=tmp_path / f"{len(monitors)}.zarr", **watching)
        )
        return monitors[-1]

    yield begin
    for monitor in monitors:
        monitor.run.close()
