"""Numbers of kernels and of copies to the host in a step, by torch's profiler."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch.profiler import ProfilerActivity, profile

__all__ = ["Launched", "launched"]

STEPS = 4
TO_HOST = "Memcpy DtoH"
VIEWS = frozenset(
    {"aten::detach", "aten::reshape", "aten::view", "aten::select", "aten::slice", "aten::t"}
)
"""Operators that a CPU is not counted for, as they launch nothing on a GPU either."""


@dataclass(frozen=True)
class Launched:
    """Kernels and copies to the host of a step, on average."""

    kernels: float
    copies: float


def launched(step: Callable[[], None], device: str) -> Launched:
    """Profile some steps. On a CPU operators count as kernels, and nothing is copied."""
    activities = [ProfilerActivity.CPU]
    if device == "cuda":
        activities.append(ProfilerActivity.CUDA)
        torch.cuda.synchronize()
    with profile(activities=activities) as profiled:
        for _ in range(STEPS):
            step()
        if device == "cuda":
            torch.cuda.synchronize()
    events: list[Any] = [*(profiled.events() or ())]
    if device != "cuda":
        called = [one.name for one in events if one.cpu_parent is None]
        n_called = sum(name.startswith("aten::") and name not in VIEWS for name in called)
        return Launched(n_called / STEPS, 0.0)
    on_device = [one.name for one in events if one.device_type.name == "CUDA"]
    n_copies = sum(name.startswith(TO_HOST) for name in on_device)
    n_kernels = sum(not name.startswith(("Memcpy", "Memset")) for name in on_device)
    return Launched(n_kernels / STEPS, n_copies / STEPS)
