"""A parameter's gradient while it is accumulated, before clipping and unscaling.

``grad_raw`` is the running sum after an accumulation, ``grad_micro`` what one backward added to it.
"""

from __future__ import annotations

import time
import weakref
from typing import Any, Protocol

import torch
from torch import Tensor
from torch.utils.hooks import RemovableHandle

from notebook_probe.model.parameter_slots import Slot
from notebook_probe.probes.reading.attempt import attempt_in_hook
from notebook_probe.probes.reading.plan import Plan
from notebook_probe.probes.step.calling import seconds_of_a_call
from notebook_probe.probes.step.frame import StepFrame
from notebook_probe.probes.step.phase import is_traced
from notebook_probe.probes.step.plain_mode import plain_mode

__all__ = ["AccumulationHooks"]


class AccumulationListener(Protocol):
    """Who decides in which step an accumulation falls."""

    def accumulated(self, slot: Slot) -> tuple[StepFrame, Plan] | None:
        """The frame of a gradient that is being accumulated, and what is read of it, if anything.

        Of a step that this gradient may have begun.
        """


class AccumulationHooks:
    """Hooks on the parameters whose accumulations are due in the open step.

    Parameters
    ----------
    listener : AccumulationListener
        Held weakly.
    """

    def __init__(self, listener: AccumulationListener) -> None:
        self._listener = weakref.ref(listener)
        self._hooked: dict[Slot, _Hooked] = {}

    def set(self, wanted: dict[Slot, Plan]) -> None:
        """Read these from now on, and no others."""
        if not wanted and not self._hooked:
            return
        for slot in self._hooked.keys() - wanted.keys():
            self._hooked.pop(slot).remove()
        self.add(wanted)

    def add(self, wanted: dict[Slot, Plan]) -> None:
        """Read these too."""
        for slot, plan in wanted.items():
            parameter, old = slot.get(), self._hooked.get(slot)
            arrivals = plan.wants("grad_micro", "accumulated")
            if old is not None and old.is_on(parameter) and old.reads_arrivals >= arrivals:
                continue
            if old is not None:
                self._hooked.pop(slot).remove()
            if parameter is not None and parameter.requires_grad:
                self._hooked[slot] = _Hooked(slot, arrivals, parameter, self._listener)

    def remove(self) -> None:
        self.set({})


class _Hooked:
    """One parameter, and what has arrived of a gradient that is about to be accumulated."""

    def __init__(
        self,
        slot: Slot,
        arrivals: bool,
        parameter: Tensor,
        listener: weakref.ref[AccumulationListener],
    ) -> None:
        self.reads_arrivals = arrivals
        self._slot, self._listener = slot, listener
        self._arrived: Tensor | None = None
        self._kept_s = 0.0
        """What keeping it has taken."""
        self._handle = parameter.register_post_accumulate_grad_hook(self._accumulated)
        _put_first(self._handle)
        self._arrival: RemovableHandle | None = None
        if arrivals:
            self._arrival = parameter.register_hook(self._keep)

    def is_on(self, parameter: Tensor | None) -> bool:
        """Tell whether the hook is still the parameter's: its contents may have been swapped."""
        hooks = getattr(parameter, "_post_accumulate_grad_hooks", None)
        return hooks is not None and hooks is self._handle.hooks_dict_ref()

    def remove(self) -> None:
        self._handle.remove()
        if self._arrival is not None:
            self._arrival.remove()

    def _keep(self, gradient: Tensor) -> None:
        """Also called by ``torch.autograd.grad``, after which nothing is accumulated."""
        if torch.compiler.is_compiling() or is_traced():
            return
        begun = time.perf_counter()
        self._arrived = gradient.detach()
        self._kept_s = time.perf_counter() - begun + seconds_of_a_call("accumulated")

    def _accumulated(self, parameter: Tensor) -> None:
        if torch.compiler.is_compiling() or is_traced():
            return
        begun = time.perf_counter()
        (arrived, kept_s), self._arrived, self._kept_s = (self._arrived, self._kept_s), None, 0.0
        listener = self._listener()
        found = listener.accumulated(self._slot) if listener is not None else None
        if found is not None and parameter.grad is not None:
            given = {"grad_raw": parameter.grad, "grad_micro": arrived, "weight": parameter}
            frame, plan = found
            _read(begun, frame, plan, {**given, "module": self._slot.owner()})
            plan.spent("accumulated", kept_s)
            frame.seconds += kept_s


def _put_first(handle: RemovableHandle) -> None:
    """Before an optimizer that steps, and clears the gradient, in a hook of its own.

    torch walks the hooks in the order of their insertion.
    """
    hooks = handle.hooks_dict_ref() or {}
    for other in [key for key in hooks if key != handle.id]:
        hooks[other] = hooks.pop(other)


def _read(begun: float, frame: StepFrame, plan: Plan, given: dict[str, Any]) -> None:
    frame.arrivals[plan.counter] += 1
    attempt_in_hook(begun, frame, plan, "accumulated", plain_mode, _measure, frame, plan, given)


def _measure(frame: StepFrame, plan: Plan, given: dict[str, Any]) -> None:
    """Of the gradient as a running sum the last value is the step's; micro-batches are pooled."""
    for cell in plan.cells.get("grad_raw", ()):
        cell.put(frame, given["grad_raw"])
    for cell in plan.cells.get("grad_micro", ()):
        if given["grad_micro"] is not None:
            cell.add(frame, given["grad_micro"], None, 0)
    for function in plan.at("accumulated"):
        if "grad_raw" in function.probe.quantity.needs:
            function.put(frame, given)
        else:
            function.call(frame, given)
