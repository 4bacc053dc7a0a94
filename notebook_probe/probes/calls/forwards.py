"""The calls of the model itself: whether a backward follows is known only when the step is over.

A call that raised, or that was made only to look at its result, is no part of the training. So
what is read of each is kept apart, and a gradient that comes back to it tells that it counts.
"""

from __future__ import annotations

import threading
from contextlib import suppress
from typing import Any

import torch
from torch import Tensor

from notebook_probe.probes.calls.output_gradients import hook_output
from notebook_probe.probes.step.containers import tensors_of
from notebook_probe.probes.step.frame import StepFrame
from notebook_probe.probes.step.part import FramePart
from notebook_probe.probes.step.phase import Phase, is_traced
from notebook_probe.probes.step.plain_mode import plain_mode

__all__ = ["Forwards"]


class Forwards(threading.local):
    """Last call of the model on this thread, and what is read of it.

    Attributes
    ----------
    part : FramePart or None
        Readings of the call, once there are any; None from the beginning of an outermost call.
    """

    def __init__(self) -> None:
        self.part: FramePart | None = None

    def part_of(
        self, step: StepFrame | None, phase: Phase | None, is_of_model: bool
    ) -> FramePart | None:
        """Return the frame for current readings: of the model's call, if they belong to one."""
        if step is None or phase == "own_call":
            return None
        if phase != "training" or not is_of_model:
            return step.loose_part()
        if self.part is None or self.part.closed:
            self.part = step.begin_part()
        return self.part

    def end(self, output: Any) -> None:
        """End the outermost call of the model; without an output if it raised."""
        part = self.part
        if part is None or part.closed or output is None:
            return
        part.has_returned = True
        with suppress(Exception):  # of whatever kind of tensor it is
            plain_mode(_await_gradients, part, output)


def _await_gradients(part: FramePart, output: Any) -> None:
    waiting = [tensor for tensor in tensors_of(output) if tensor.requires_grad]
    part.counts = not waiting  # nothing can come back
    if not part.awaits_gradient:  # else the hook of a module tells
        for tensor in waiting:
            hook_output(tensor, part, _Arrival(part))


class _Arrival:
    """Receiver of gradients that return to a call."""

    __slots__ = ("_part",)

    def __init__(self, part: FramePart) -> None:
        self._part = part

    def __call__(self, gradient: Tensor | None) -> None:
        if gradient is None or torch.compiler.is_compiling() or is_traced():
            return
        if not self._part.closed:
            self._part.receiver()
