"""Gradients of a module's outputs, read by tensor hooks that end with the graph they hang on.

Full backward hooks raise behind in-place modules, are silent for dict outputs and change bits.
"""

from __future__ import annotations

import time
import weakref
from collections.abc import Callable

import torch
from torch import Tensor, nn

from notebook_probe.model.reparametrized import weight_of
from notebook_probe.model.unwrapped import unwrapped
from notebook_probe.probes.calls.cut_views import Narrowed
from notebook_probe.probes.reading.attempt import attempt_in_hook
from notebook_probe.probes.reading.plan import ReadingPlan
from notebook_probe.probes.step.gradient_hooks import hook_in_graph
from notebook_probe.probes.step.part import FramePart
from notebook_probe.probes.step.phase import is_traced

__all__ = ["InPlace", "hook_output", "hook_outputs"]


def hook_outputs(
    outputs: list[Tensor], plan: ReadingPlan, frame: FramePart, module: nn.Module, call: int
) -> bool:
    """Put a hook on the gradient of every output; return False if none requires a gradient."""
    is_first = True
    for tensor in outputs:
        if tensor.requires_grad:
            hook_output(tensor, frame, OutputGradientReader(plan, frame, module, call, is_first))
            is_first = False
    return not is_first


def hook_output(tensor: Tensor, frame: FramePart, read: Callable[[Tensor], None]) -> None:
    """Put a hook on one output's gradient, also if the output is a view changed in place."""
    base = tensor._base
    if base is None or not base.requires_grad:
        if tensor.is_leaf:
            frame.hook(tensor, read)
        else:
            frame.awaits_gradient = True
            hook_in_graph(tensor, read)
        return
    seen = _Seen(read)
    frame.hook(tensor, seen)
    frame.hook(base, StandBy(seen, tensor, base))


class _Seen:
    """Passes a view's gradient on, and remembers that it came."""

    __slots__ = ("has_come", "read")

    def __init__(self, read: Callable[[Tensor], None]) -> None:
        self.read = read
        self.has_come = False

    def __call__(self, gradient: Tensor | None) -> None:
        if gradient is not None:
            self.has_come = True
            self.read(gradient)


class OutputGradientReader:
    """Reader of one gradient for the probes of a place."""

    __slots__ = ("_call", "_frame", "_is_first", "_module", "_plan")

    def __init__(
        self, plan: ReadingPlan, frame: FramePart, module: nn.Module, call: int, is_first: bool
    ) -> None:
        self._plan, self._frame, self._call, self._is_first = plan, frame, call, is_first
        self._module = weakref.ref(module)

    def __call__(self, gradient: Tensor | None) -> None:
        if torch.compiler.is_compiling():  # folds away in a compiled region
            return
        begun = time.perf_counter()
        module, plan = self._module(), self._plan
        if gradient is None or module is None or self._frame.closed or is_traced():
            return
        frame = self._frame.receiver()
        if frame is None:
            return
        attempt_in_hook(begun, frame, plan, "backward", self._measure, frame, gradient, module)

    def _measure(self, frame: FramePart, gradient: Tensor, module: nn.Module) -> None:
        plan, call = self._plan, self._call
        for cell in plan.output_gradients:
            if self._is_first or not cell.first_only:
                cell.add(frame, gradient, module, call)
        # As of the output, the first one.
        for function in plan.functions.get("backward", ()) if self._is_first else ():
            given = {
                "grad_output": gradient,
                "weight": weight_of(module),
                "module": unwrapped(module),
            }
            function.call(frame, given, call)


_NOTHING = torch.empty(0)


class InPlace:
    """Notices operations that change a tensor in place, from now on."""

    __slots__ = ("_counter", "_version")

    def __init__(self, tensor: Tensor) -> None:
        # Shares the count of such operations, and after the next line no memory.
        self._counter = tensor.detach()
        self._counter.data = _NOTHING if tensor.is_cpu else tensor.new_empty(0)
        self._version = self._counter._version

    def has_changed(self) -> bool:
        return self._counter._version != self._version


class StandBy:
    """Reader of the gradient of a view's base, in case the view's own hook is not called.

    An in-place operation behind the module takes a view's node, and the hook on it, out of the
    graph; the base's gradient then is with respect to the values before that operation. Reads of
    the base itself by others before it are included.
    """

    __slots__ = ("_narrowed", "_seen", "_view")

    def __init__(self, seen: _Seen, view: Tensor, base: Tensor) -> None:
        self._seen, self._narrowed = seen, Narrowed(view, base)
        self._view = InPlace(view)

    def __call__(self, gradient: Tensor | None) -> None:
        if gradient is None or self._seen.has_come or not self._view.has_changed():
            return  # a view that was not changed was not used
        self._seen.read(self._narrowed(gradient))
