"""The devices on which the same scenario runs: the pretended accelerator, and CUDA."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, TypeVar

import pytest
import torch
from torch import Tensor, nn

from tests.run.accelerator import NAME, copies, moved, on_device, waits

__all__ = ["CPU", "ON_CUDA", "Device", "Waited", "needs_cuda", "on_cuda", "on_pretended"]

ON_CUDA = (
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device"),
)

Test = TypeVar("Test", bound=Callable[..., None])


def needs_cuda(test: Test) -> Test:
    """Mark a test that only a CUDA device can run."""
    for mark in ON_CUDA:
        test = mark(test)
    return test


@dataclass
class Waited:
    """How often a block waited for the device; on CUDA waiting raises instead."""

    calls: list[str] = field(default_factory=list)
    copies: list[int] = field(default_factory=list)


@dataclass(frozen=True)
class Device:
    """A place for tensors and models, by its type; a scenario is handed one, in any process."""

    type: str

    @property
    def is_cuda(self) -> bool:
        return self.type == "cuda"

    def put(self, tensor: Tensor) -> Tensor:
        """A copy of a host tensor on the device."""
        if self.type == NAME:
            return on_device(tensor)
        return tensor.detach().clone().to(self.type)

    def moved(self, model: nn.Module) -> nn.Module:
        """Put a model on the device."""
        return moved(model) if self.type == NAME else model.to(self.type)

    @contextmanager
    def no_waiting(self) -> Iterator[Waited]:
        """Count what waits for the device; on CUDA refuse it."""
        waited = Waited()
        if self.is_cuda:
            torch.cuda.synchronize()
            torch.cuda.set_sync_debug_mode("error")
        n_waits, n_copies = len(waits), len(copies)
        try:
            yield waited
        finally:
            if self.is_cuda:
                torch.cuda.set_sync_debug_mode("default")
            waited.calls += waits[n_waits:]
            waited.copies += copies[n_copies:]


CPU = Device("cpu")


def on_cuda(scenario: Callable[..., Any], *given: Any) -> Any:
    """Run a scenario on the CUDA device of this process."""
    with torch.backends.cudnn.flags(enabled=True, deterministic=True, allow_tf32=False):
        return scenario(Device("cuda"), *given)


def on_pretended(scenario: Callable[..., Any], *given: Any) -> Any:
    """Run a scenario on the pretended accelerator, in its process."""
    return scenario(Device(NAME), *given)
