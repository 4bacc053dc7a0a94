"""Ways to watch a training step: ours, and those that one writes by hand."""

from __future__ import annotations

import io
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, redirect_stdout
from functools import partial
from pathlib import Path
from typing import Any

import torch

import notebook_probe as nbp
from benchmarks.gpu.workload import GpuWorkload
from benchmarks.peers.hooks import Hooks
from benchmarks.probe_sets import SETS

__all__ = ["VARIANTS"]

SETTLE, SETTLE_S = 160, 10.0
"""Steps in which a budget finds how often it may measure; a hundred are measured whole before."""
FIRST = 22
"""Steps at least: in the first twenty, facts look at what the model is given."""
BINS = 64

Step = Callable[[], None]


@contextmanager
def _ours(
    workload: GpuWorkload, probes: Any, budget: float | None = None, settle: int = 0
) -> Iterator[Step]:
    with tempfile.TemporaryDirectory() as folder:
        with redirect_stdout(io.StringIO()):
            store = Path(folder) / "run.zarr"
            run = nbp.watch(workload.model, workload.optimizer, store, probes, budget=budget)
        workload.begin()
        begun = time.monotonic()
        for _ in range(max(settle, FIRST) if workload.is_large else FIRST):
            if time.monotonic() - begun > SETTLE_S:
                break
            workload.step()
        with run:
            yield workload.step


@contextmanager
def _items(workload: GpuWorkload) -> Iterator[Step]:
    hooks = Hooks(workload.model, SETS["P2"])
    workload.begin()
    yield partial(workload.step, hooks.read_parameters)
    hooks.remove()


@contextmanager
def _histograms(workload: GpuWorkload) -> Iterator[Step]:
    """A histogram of each parameter and gradient, brought to the host as wandb does."""
    found: list[list[float]] = []

    @torch.no_grad()
    def read() -> None:
        found.clear()
        for value in workload.model.parameters():
            for tensor in (value, value.grad):
                if tensor is not None:
                    flat = tensor.detach().float()
                    low, high = flat.min().item(), flat.max().item()
                    found.append(flat.histc(BINS, low, high).tolist())

    workload.begin()
    yield partial(workload.step, read)


VARIANTS: dict[str, Callable[[GpuWorkload], AbstractContextManager[Step]]] = {
    "default": partial(_ours, probes="default", budget=5.0, settle=SETTLE),
    "every step": partial(_ours, probes="default"),
    "items": _items,
    "idle": partial(_ours, probes=None),
    "alerts": partial(_ours, probes=("default", "alerts")),
    "histograms": _histograms,
}
