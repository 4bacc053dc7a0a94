"""Hearing of the attention that a module computes while its call runs.

torch tells a function mode of every function that is called while it is on; the function itself
runs as usual. A hook puts the mode on when a call begins, and takes it off when it returns. An
interrupt runs no hook: what it leaves behind does nothing, and is taken off at the next occasion.
"""

from __future__ import annotations

import time
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import nn
from torch.overrides import (
    TorchFunctionMode,
    _get_current_function_mode_stack,
    _pop_mode,
    _push_mode,
)

from notebook_probe.errors import UnreadableError
from notebook_probe.model.reparametrized import weight_of
from notebook_probe.model.unwrapped import unwrapped
from notebook_probe.probes.calls.attention_functions import READERS, Reader
from notebook_probe.probes.reading.attempt import attempt_in_hook
from notebook_probe.probes.reading.plan import ReadingPlan
from notebook_probe.probes.step.part import FramePart
from notebook_probe.probes.step.phase import call_is_active, is_traced
from notebook_probe.probes.step.plain_mode import is_measuring

__all__ = ["AttentionMode", "read_attention"]

NO_ATTENTION = UnreadableError(
    "called, but computed no attention: no scaled_dot_product_attention, no nn.MultiheadAttention, "
    "no softmax over the last of three or more axes"
)


def read_attention(
    module: nn.Module, plan: ReadingPlan, frame: FramePart, call: int
) -> AttentionMode | None:
    """Read the attention of the call of ``module`` that begins, until the mode is removed.

    None where the call is inside another one of the same module: that one reads it.
    """
    for mode in _modes():
        is_own = mode.plan is plan  # of an earlier call of this module; another run has its own
        if not mode.is_running(skip=1 if is_own else 0):
            mode.remove()
        elif is_own:
            return None
    mode = AttentionMode(module, plan, frame, call)
    frame.keep(mode)
    _push_mode(mode)
    return mode


class AttentionMode(TorchFunctionMode):
    """Reader of each attention in one call, as it is computed."""

    def __init__(self, module: nn.Module, plan: ReadingPlan, frame: FramePart, call: int) -> None:
        super().__init__()
        self.plan = plan
        self._module, self._frame, self._call = weakref.ref(module), frame, call
        self._has_read = False

    def is_running(self, skip: int = 0) -> bool:
        """Return whether the call is still on this thread's stack, besides ``skip`` later ones."""
        module = self._module()
        return module is not None and call_is_active(module, skip)

    def __torch_function__(
        self, func: Callable[..., Any], types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        kwargs = kwargs or {}
        if torch.compiler.is_compiling():  # a compiled part inside: it is not read
            return func(*args, **kwargs)
        reader = READERS.get(func)
        if reader is not None and self._is_read():
            self._attempt(reader, args, kwargs)
        return func(*args, **kwargs)

    def _is_read(self) -> bool:
        return not (self._frame.closed or is_traced() or is_measuring()) and self.is_running()

    def end(self) -> None:
        """Note that the call has returned."""
        self.remove()
        if not self._has_read:
            self._frame.blame_all(self.plan.of("inside"), NO_ATTENTION)

    def remove(self) -> None:
        """Take it off this thread's stack, if it is there."""
        if self not in _get_current_function_mode_stack():
            return
        above = []
        while (top := _pop_mode()) is not self:
            above.append(top)
        for mode in reversed(above):
            _push_mode(mode)

    def _attempt(self, reader: Reader, args: Any, kwargs: Any) -> None:
        attempt_in_hook(
            time.perf_counter(),
            self._frame,
            self.plan,
            "inside",
            self._read,
            reader,
            args,
            kwargs,
        )

    def _read(self, reader: Reader, args: Any, kwargs: Any) -> None:
        before, self._has_read = self._has_read, True  # also of what cannot be read
        attention = reader(*args, **kwargs)
        module = self._module()
        if attention is None or module is None:
            self._has_read = before
            return
        for cell in self.plan.cells.get("attention", ()):
            cell.add(self._frame, attention, module, self._call)
        given = {"attention": attention, "weight": weight_of(module), "module": unwrapped(module)}
        for function in self.plan.at("inside"):
            function.call(self._frame, given, self._call)


def _modes() -> Iterator[AttentionMode]:
    """Yield the modes that are on in this thread."""
    return (mode for mode in _get_current_function_mode_stack() if isinstance(mode, AttentionMode))
