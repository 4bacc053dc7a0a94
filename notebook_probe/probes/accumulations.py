"""``grad_raw``: a parameter's gradient after each accumulation, before clipping and unscaling."""

from __future__ import annotations

import time
import weakref
from collections.abc import Callable
from typing import Protocol

import torch
from torch import Tensor
from torch.utils.hooks import RemovableHandle

from notebook_probe.probes.apart import apart
from notebook_probe.probes.frame import StepFrame
from notebook_probe.probes.phase import quiet
from notebook_probe.probes.plan import Plan
from notebook_probe.probes.slots import Slot

__all__ = ["AccumulationHooks"]


class AccumulationListener(Protocol):
    """Who decides in which step an accumulation falls."""

    def accumulated(self) -> StepFrame | None:
        """The frame of a gradient that is being accumulated; None when it is not to be read."""


class AccumulationHooks:
    """Hooks on the parameters whose raw gradients are due in the open step.

    Parameters
    ----------
    listener : AccumulationListener
        Held weakly.
    """

    def __init__(self, listener: AccumulationListener) -> None:
        self._listener = weakref.ref(listener)
        self._handles: dict[Slot, tuple[RemovableHandle, Plan]] = {}

    def set(self, wanted: dict[Slot, Plan]) -> None:
        """Read these from now on, and no others."""
        if not wanted and not self._handles:
            return
        for slot in [*self._handles]:
            handle, plan = self._handles[slot]
            if wanted.get(slot) is not plan or not _is_on(handle, slot.get()):
                handle.remove()
                del self._handles[slot]
        for slot, plan in wanted.items():
            parameter = slot.get()
            if slot not in self._handles and parameter is not None and parameter.requires_grad:
                handle = parameter.register_post_accumulate_grad_hook(self._hook(slot, plan))
                _put_first(handle)
                self._handles[slot] = handle, plan

    def remove(self) -> None:
        self.set({})

    def _hook(self, slot: Slot, plan: Plan) -> Callable[[Tensor], None]:
        listener_of = self._listener

        def read(parameter: Tensor) -> None:
            if torch.compiler.is_compiling() or quiet():
                return
            listener = listener_of()
            frame = listener.accumulated() if listener is not None else None
            if frame is not None and parameter.grad is not None:
                _read(frame, plan, slot, parameter, parameter.grad)

        return read


def _put_first(handle: RemovableHandle) -> None:
    """Before an optimizer that steps, and clears the gradient, in a hook of its own.

    torch walks the hooks in the order of their insertion.
    """
    hooks = handle.hooks_dict_ref() or {}
    for other in [key for key in hooks if key != handle.id]:
        hooks[other] = hooks.pop(other)


def _read(frame: StepFrame, plan: Plan, slot: Slot, parameter: Tensor, gradient: Tensor) -> None:
    begun = time.perf_counter()
    frame.arrivals[plan.counter] += 1
    try:
        apart(_measure, frame, plan, slot, parameter, gradient)
    except Exception as error:  # whatever a tensor is, the backward goes on
        frame.blame_all(plan.of("accumulated"), error)
    seconds = time.perf_counter() - begun
    plan.spent("accumulated", seconds)
    frame.seconds += seconds


def _measure(frame: StepFrame, plan: Plan, slot: Slot, parameter: Tensor, gradient: Tensor) -> None:
    for cell in plan.cells.get("grad_raw", ()):
        cell.put(frame, gradient)
    given = {"grad_raw": gradient, "weight": parameter, "module": slot.owner()}
    for function in plan.at("accumulated"):
        function.clear(frame)  # the gradient is a running sum: its last value is the step's
        function.call(frame, given)


def _is_on(handle: RemovableHandle, parameter: Tensor | None) -> bool:
    """Tell whether the hook is still the parameter's: its contents may have been swapped."""
    hooks = getattr(parameter, "_post_accumulate_grad_hooks", None)
    return hooks is not None and hooks is handle.hooks_dict_ref()
