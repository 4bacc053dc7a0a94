"""Device of a model."""

from __future__ import annotations

import platform
from typing import Any

import torch
from torch import nn

__all__ = ["device_lineage"]


def device_lineage(model: nn.Module | None) -> dict[str, Any]:
    """Return type and name of the first parameter's device, and how many there are.

    Without a model, or without parameters, the processor.

    Examples
    --------
    >>> sorted(device_lineage(torch.nn.Linear(2, 1)))
    ['count', 'name', 'threads', 'type']
    """
    first = next(model.parameters(), None) if model is not None else None
    kind = "cpu" if first is None else first.device.type
    return {
        "type": kind,
        "name": _name(kind, first),
        "count": _count(kind),
        "threads": torch.get_num_threads(),
    }


def _name(kind: str, parameter: torch.Tensor | None) -> str | None:
    if kind == "cuda" and parameter is not None:
        return torch.cuda.get_device_name(parameter.device)
    return (platform.processor() or platform.machine() or None) if kind == "cpu" else None


def _count(kind: str) -> int | None:
    if kind == "cpu":
        return 1
    module = getattr(torch, kind, None)
    count = getattr(module, "device_count", None)
    return int(count()) if callable(count) else None
