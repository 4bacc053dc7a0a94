"""Gradients of a module's outputs, read by tensor hooks that end with the graph they hang on.

Full backward hooks raise behind in-place modules, are silent for dict outputs and change bits.
"""

from __future__ import annotations

import time
import weakref

import torch
from torch import Tensor, nn

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
            tensor.register_hook(reader)
            base = tensor._base
            if base is not None and base.requires_grad:
                base.register_hook(StandBy(reader, tensor))
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
        frame, module = self._frame, self._module()
        if torch.compiler.is_compiling():  # folds away in a compiled region
            return
        if gradient is None or module is None or frame.closed or quiet():
            return
        self.has_spoken = True
        begun = time.perf_counter()
        plan, call = self._plan, self._call
        frame.arrivals[plan.counter] += self._counts
        try:
            for cell in plan.cells.get("grad_output", ()):
                cell.add(frame, gradient, module, call)
            for function in plan.at("backward"):
                given = {"grad_output": gradient, "weight": weight_of(module), "module": module}
                function.call(frame, given, call)
        except Exception as error:  # whatever a tensor is, the backward goes on
            frame.blame_all(plan.of("backward"), error)
        seconds = time.perf_counter() - begun
        plan.spent("backward", seconds)
        frame.seconds += seconds


class StandBy:
    """Reads from the gradient of a view's base, should the view's own hook stay silent.

    An in-place operation behind the module takes a view's node, and the hook on it, out of the
    graph; the base's gradient then is with respect to the values before that operation. Reads of
    the base itself by others before it are included.
    """

    __slots__ = ("_offset", "_reader", "_size", "_stride")

    def __init__(self, reader: GradientReader, view: Tensor) -> None:
        self._reader = reader
        base = view._base
        assert base is not None
        self._size, self._stride = view.size(), view.stride()
        self._offset = view.storage_offset() - base.storage_offset()

    def __call__(self, gradient: Tensor | None) -> None:
        if gradient is None or self._reader.has_spoken:
            return
        laid_out = gradient.contiguous()
        self._reader(laid_out.as_strided(self._size, self._stride, self._offset))
