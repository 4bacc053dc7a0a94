"""Telling a forward that is run again for its gradients from what a backward pass does itself."""

from __future__ import annotations

import sys
from types import FrameType

import torch
from torch import nn
from torch.autograd.graph import _engine_run_backward
from torch.utils import checkpoint

__all__ = ["is_recomputed"]

_CALL = nn.Module._call_impl.__code__
_BACKWARD = _engine_run_backward.__code__


def is_recomputed() -> bool:
    """Inside a backward pass, whether a forward runs: not a hook of a gradient.

    Between here and the pass there is then a module's call, or a checkpoint.
    """
    # -1 means that no backward pass runs; this costs less than a walk up the stack.
    if torch._C._current_graph_task_id() == -1:
        return False
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and frame.f_code is not _BACKWARD:
        if frame.f_code is _CALL or frame.f_code.co_filename == checkpoint.__file__:
            return True
        frame = frame.f_back
    return False
