"""The module that is meant where ``torch.compile`` has put a wrapper round one."""

from __future__ import annotations

from typing import TypeVar

from torch import nn

__all__ = ["meant"]

Given = TypeVar("Given", nn.Module, "nn.Module | None")


def meant(module: Given) -> Given:
    """The module inside its compiled wrapper; any other is meant itself.

    Examples
    --------
    >>> layer = nn.Linear(2, 3)
    >>> meant(layer) is layer
    True
    """
    while module is not None and (inner := module._modules.get("_orig_mod")) is not None:
        module = inner
    return module
