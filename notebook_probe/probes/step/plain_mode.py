"""Measurement outside the modes in which the model runs."""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import ExitStack
from types import FrameType
from typing import Any

import torch
from torch.utils._python_dispatch import _disable_current_modes

__all__ = ["is_measuring", "measures_in", "plain_mode"]


def plain_mode(read: Callable[..., object], *given: Any) -> None:
    """Call ``read`` outside of autocast and of dispatch modes.

    Autocast would round our sums. A mode such as selective checkpointing's would take our
    operations for the model's own, and that of a default device would have our numbers made on it.
    A tensor of a user's class is read as a plain one: its
    ``__torch_function__`` may count, or refuse what it does not know.
    """
    has_modes = torch._C._len_torch_dispatch_stack() > 0
    if not has_modes and not torch._C._is_any_autocast_enabled():  # nearly always
        with torch._C.DisableTorchFunction():
            read(*given)
        return
    with ExitStack() as stack:
        stack.enter_context(torch._C.DisableTorchFunction())
        if has_modes:
            stack.enter_context(_disable_current_modes())
        for kind in ("cpu", "cuda"):
            if torch.is_autocast_enabled(kind):
                stack.enter_context(torch.autocast(kind, enabled=False))
        read(*given)


def is_measuring() -> bool:
    """Return whether this thread runs a measurement, not the model."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and frame.f_code not in _measuring:
        frame = frame.f_back
    return frame is not None


_measuring = {plain_mode.__code__}


def measures_in(function: Callable[..., object]) -> None:
    """Note that what a function calls is a measurement, as in `plain_mode`."""
    _measuring.add(function.__code__)
