"""The module that is meant where ``torch.compile`` has put a wrapper round one."""

from __future__ import annotations

from typing import TypeVar

from torch import nn

__all__ = ["unwrapped"]

Given = TypeVar("Given", nn.Module, "nn.Module | None")


def unwrapped(module: Given) -> Given:
    """The module inside its compiled wrapper; any other is meant itself.

    Examples
    --------
    >>> layer = nn.Linear(2, 3)
    >>> unwrapped(layer) is layer
    True
    """
    while module is not None and "_orig_mod" in module._modules:
        module = module._modules["_orig_mod"]  # type: ignore[assignment]
    return module
