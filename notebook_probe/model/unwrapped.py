"""Modules inside their wrappers."""

from __future__ import annotations

from typing import TypeVar

import torch
from torch import nn

__all__ = ["unwrap", "unwrapped", "without_wrappers"]

Given = TypeVar("Given", nn.Module, "nn.Module | None")


def unwrapped(module: Given) -> Given:
    """Return the module inside its compiled wrapper; any other is returned itself.

    Examples
    --------
    >>> layer = nn.Linear(2, 3)
    >>> unwrapped(layer) is layer
    True
    """
    while module is not None and "_orig_mod" in module._modules:
        module = module._modules["_orig_mod"]  # type: ignore[assignment]
    return module


def unwrap(model: nn.Module) -> nn.Module:
    """Return the module inside a compiled, DDP or DataParallel wrapper."""
    wrappers = (nn.parallel.DistributedDataParallel, nn.DataParallel)
    while True:
        if isinstance(model, wrappers):
            model = model.module
        elif isinstance(model, torch._dynamo.OptimizedModule):
            model = model._orig_mod
        else:
            return model


def without_wrappers(path: str) -> str:
    """Return the path of a module without compiled wrappers.

    Examples
    --------
    >>> without_wrappers("layer1._orig_mod.conv")
    'layer1.conv'
    """
    if "_orig_mod" not in path:
        return path
    return ".".join(part for part in path.split(".") if part != "_orig_mod")
