"""One training step of a model on a device, in a precision, compiled or not."""

from __future__ import annotations

import gc
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch
from torch import nn
from torch.nn import functional as F

from benchmarks.gpu.models import Build

__all__ = ["PRECISIONS", "GpuWorkload", "made"]

PRECISIONS = ("bf16", "fp32", "compiled")
"""Autocast, none, and bf16 through `torch.compile`; the last takes longest to set up."""

USUAL_BYTES = 32 << 30


class GpuWorkload:
    """A model that trains on one batch of random data.

    Attributes
    ----------
    model : nn.Module
        The one that is watched: a compiled step calls it through a wrapper.
    is_large : bool
        It has the size for a GPU.
    """

    def __init__(self, build: Build, device: str, precision: str) -> None:
        torch.manual_seed(0)
        given = build(device == "cpu", _share(device))
        self.model: nn.Module = given.model.to(device)
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=given.learning_rate)
        self._inputs, self._targets = given.inputs.to(device), given.targets.to(device)
        self.is_large = device != "cpu"
        self._device, self._precision = device, precision
        self._called: Callable[..., Any] = self.model

    def begin(self) -> None:
        """Compile, where that is asked for: after hooks have been put on the model."""
        if self._precision == "compiled":
            backend = "inductor" if self._device == "cuda" else "eager"
            self._called = torch.compile(self.model, backend=backend)

    def step(self, after_backward: Callable[[], None] | None = None) -> None:
        """Train one step; what is read by hand is read after the backward."""
        self.optimizer.zero_grad()
        with self._autocast():
            loss = F.cross_entropy(self._called(self._inputs), self._targets)
        loss.backward()
        if after_backward is not None:
            after_backward()
        self.optimizer.step()

    def _autocast(self) -> AbstractContextManager[Any]:
        if self._precision == "fp32":
            return nullcontext()
        return torch.autocast(self._device, dtype=torch.bfloat16)

    def end(self) -> None:
        """Give the memory of the device back."""
        del self.model, self.optimizer, self._called, self._inputs, self._targets
        torch._dynamo.reset()
        gc.collect()
        if self._device == "cuda":
            torch.cuda.empty_cache()


def _share(device: str) -> float:
    """Share of the usual batch: a card with little memory trains a smaller one."""
    if device != "cuda":
        return 1.0
    total: int = torch.cuda.get_device_properties(0).total_memory
    return min(1.0, total / USUAL_BYTES)


def made(build: Build, device: str, precision: str) -> GpuWorkload:
    """Build a model with a batch; twins are equal."""
    return GpuWorkload(build, device, precision)
