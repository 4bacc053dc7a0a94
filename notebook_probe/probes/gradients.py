"""Gradients of a module's outputs, read by tensor hooks that end with the graph they hang on.

Full backward hooks raise behind in-place modules, are silent for dict outputs and change bits.
"""

from __future__ import annotations

import time
import weakref

import torch
from torch import Tensor, nn

from notebook_probe.probes.apart import apart
from notebook_probe.probes.frame import StepFrame
from notebook_probe.probes.phase import quiet
from notebook_probe.probes.plan import Plan
from notebook_probe.probes.slots import weight_of

__all__ = ["GradientReader", "hook_outputs"]


def hook_outputs(
    outputs: list[Tensor], plan: Plan, frame: StepFrame, module: nn.Module, call: int
) -> None:
    """Have the gradient of every output read when it arrives."""
    first = True
    for tensor in outputs:
        if tensor.requires_grad:
            reader = GradientReader(plan, frame, module, call, first)
            frame.hook(tensor, reader)
            base = tensor._base
            if base is not None and base.requires_grad:
                frame.hook(base, StandBy(reader, tensor, base))
            first = False


class GradientReader:
    """Reads one gradient for the probes of a place."""

    __slots__ = ("_call", "_counts", "_frame", "_module", "_plan", "has_spoken")

    def __init__(
        self, plan: Plan, frame: StepFrame, module: nn.Module, call: int, counts: bool
    ) -> None:
        self._plan, self._frame, self._call, self._counts = plan, frame, call, counts
        self._module = weakref.ref(module)
        self.has_spoken = False

    def __call__(self, gradient: Tensor | None) -> None:
        if torch.compiler.is_compiling():  # folds away in a compiled region
            return
        if gradient is not None:
            self.has_spoken = True
            self.read(gradient)

    def read(self, gradient: Tensor) -> None:
        """Read what has arrived, unless the step is over."""
        frame, module, plan = self._frame, self._module(), self._plan
        if module is None or frame.closed or quiet():
            return
        begun = time.perf_counter()
        frame.arrivals[plan.counter] += self._counts
        try:
            apart(self._measure, gradient, module)
        except Exception as error:  # whatever a tensor is, the backward goes on
            frame.blame_all(plan.of("backward"), error)
        seconds = time.perf_counter() - begun
        plan.spent("backward", seconds)
        frame.seconds += seconds

    def _measure(self, gradient: Tensor, module: nn.Module) -> None:
        plan, frame, call = self._plan, self._frame, self._call
        for cell in plan.cells.get("grad_output", ()):
            if self._counts or not cell.first_only:
                cell.add(frame, gradient, module, call)
        for function in plan.at("backward"):
            given = {"grad_output": gradient, "weight": weight_of(module), "module": module}
            function.call(frame, given, call)


class StandBy:
    """Reads from the gradient of a view's base, should the view's own hook stay silent.

    An in-place operation behind the module takes a view's node, and the hook on it, out of the
    graph; the base's gradient then is with respect to the values before that operation. Reads of
    the base itself by others before it are included.
    """

    __slots__ = ("_base_layout", "_layout", "_reader")

    def __init__(self, reader: GradientReader, view: Tensor, base: Tensor) -> None:
        self._reader = reader
        offset = view.storage_offset() - base.storage_offset()
        self._layout = view.size(), view.stride(), offset
        self._base_layout = base.size(), base.stride()

    def __call__(self, gradient: Tensor | None) -> None:
        if gradient is None or self._reader.has_spoken:
            return
        like_base = torch.empty_strided(
            *self._base_layout, dtype=gradient.dtype, device=gradient.device
        )
        self._reader.read(like_base.copy_(gradient.detach()).as_strided(*self._layout))
